package service

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// countersSteps are for CNT, the counters of a run (spec 2.9), and for ALRT: alerts, which
// are e-mails (spec 2.8, 6). No one sees them but in the mailbox of a stand-in.
func countersSteps() []engine.Step {
	return []engine.Step{
		step(`^run (\d+) counts no record as updated$`, (*scenario).countsNone),
		step(`^the counters of run (\d+) agree with its history$`, (*scenario).countersAgree),

		step(`^a workspace whose notices go to (\d+) address(?:es)?$`, (*scenario).noticedWorkspace),
		step(`^a sync of (\d+) rows, (\d+) of them invalid, with:$`, (*scenario).watchedSync),
		step(`^the source has (\d+) rows, (\d+) of them invalid$`, (*scenario).rowsBecome),
		step(`^(no|\d+) e-mails? (?:has|have) come$`, (*scenario).mailsHaveCome),
	}
}

// countsNone: a run that failed may leave its counters out.
func (sc *scenario) countsNone(run int) error {
	a := sc.ran(run)
	updated := a.at("data", "records_updated")
	if n, ok := updated.Int(); ok && n != 0 || !ok && jsonvalue.Raw(updated) != "null" {
		sc.broken("records_updated is 0 or null", jsonvalue.Raw(updated), a)
	}
	return sc.HeldBy("records_updated is %s", jsonvalue.Raw(updated))
}

// countersAgree counts the lines of the history.
func (sc *scenario) countersAgree(run int) error {
	lines, a := sc.history(run, "")
	ended := sc.ran(run)
	count := map[string]int64{}
	for _, l := range lines {
		count[jsonvalue.Text(l.Get("status"))]++
	}
	for status, name := range map[string]string{"succeeded": "records_updated", "rejected": "records_failed"} {
		if n, _ := ended.at("data", name).Int(); n != count[status] {
			sc.broken(fmt.Sprintf("as many records are %s as %s says: %d", status, name, n), fmt.Sprintf("%d", count[status]), ended, a)
		}
	}
	return sc.HeldBy("%s in the history", quantity.Count(len(lines), "record"))
}

// noticedWorkspace is a workspace with notification_emails of its own (spec 2.14),
// so that no one else's e-mails are looked at.
func (sc *scenario) noticedWorkspace(addresses int) {
	var to []string
	for range addresses {
		to = append(to, sc.email("notice"))
	}
	id, key := sc.newWorkspace(map[string]any{"notification_emails": to})
	sc.key, sc.words["workspace"], sc.noticed = key, strconv.FormatInt(id, 10), to
	sc.ownSource()
}

// partly are n rows of which some are invalid: they have no identifier.
func partly(n, invalid int) table {
	t := numbered(1, n)
	for i := range invalid {
		t.rows[i]["id"] = nil
	}
	return t
}

func (sc *scenario) watchedSync(n, invalid int, settings *engine.Table) {
	changes := map[string]any{}
	for _, line := range engine.Rows(settings) {
		var value any
		if err := json.Unmarshal([]byte(line[1]), &value); err != nil {
			stop(fmt.Errorf("read %s: %w", line[0], err))
		}
		changes[line[0]] = value // null leaves the field out
	}
	sc.syncOfRows(partly(n, invalid), "upsert", changes)
}

func (sc *scenario) rowsBecome(n, invalid int) {
	sc.holds(sc.latest().rows, partly(n, invalid))
}

// mailboxOf is where a stand-in shows the e-mails to an address.
func mailboxOf(address string) string { return "/mailbox?to=" + url.QueryEscape(address) }

// mailsTo are the e-mails to an address once nothing is under way any more.
func (sc *scenario) mailsTo(address string) ([]*wire.Node, *answer) {
	sc.control("POST", "/settle", nil)
	a := sc.control("GET", mailboxOf(address), nil)
	return jsonvalue.Items(a.at("mails")), a
}

func (sc *scenario) mailsHaveCome(how string) error {
	want, _ := strconv.Atoi(how) // "no" is none
	for _, address := range sc.noticed {
		mails, a := sc.mailsTo(address)
		if len(mails) != want {
			sc.broken(fmt.Sprintf("%d e-mails about the sync", want), subjects(mails), a)
		}
	}
	return sc.HeldBy("%s e-mails to %s", how, quantity.Count(len(sc.noticed), "address"))
}

// subjects says which e-mails have come.
func subjects(mails []*wire.Node) string {
	out := lists.Of(mails, func(m *wire.Node) string { return jsonvalue.Text(m.Get("subject")) })
	return fmt.Sprintf("%d: %s", len(mails), strings.Join(out, "; "))
}
