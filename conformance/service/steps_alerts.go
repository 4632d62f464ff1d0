package service

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/quantity"
)

// alertsSteps are for ALRT: alerts, which are e-mails (spec 2.8, 6). No one sees
// them but in the mailbox of a stand-in.
func alertsSteps() []conformance.Step {
	return []conformance.Step{
		step(`^a workspace whose notices go to (\d+) address(?:es)?$`, func(sc *scenario) any { return sc.noticedWorkspace }),
		step(`^a sync of (\d+) rows, (\d+) of them invalid, with:$`, func(sc *scenario) any { return sc.watchedSync }),
		step(`^the source has (\d+) rows, (\d+) of them invalid$`, func(sc *scenario) any { return sc.rowsBecome }),
		step(`^(no|\d+) e-mails? (?:has|have) come$`, func(sc *scenario) any { return sc.mailsHaveCome }),
		step(`^(\d+) e-mails? (?:has|have) come to every address$`, func(sc *scenario) any { return sc.everyoneHasMail }),
		step(`^each e-mail names the sync$`, func(sc *scenario) any { return sc.mailNamesSync }),
	}
}

// noticedWorkspace is a workspace with notification_emails of its own (spec 2.14),
// so that no one else's e-mails are looked at.
func (sc *scenario) noticedWorkspace(addresses int) error {
	var to []string
	for range addresses {
		to = append(to, sc.email("notice"))
	}
	id, key, err := sc.newWorkspace(map[string]any{"notification_emails": to})
	if err != nil {
		return err
	}
	sc.key, sc.named.workspace, sc.noticed = key, some(id), to
	return sc.ownSource()
}

// partly are n rows of which some are invalid: they have no identifier.
func partly(n, invalid int) table {
	t := numbered(1, n)
	for i := range invalid {
		t.rows[i]["id"] = nil
	}
	return t
}

func (sc *scenario) watchedSync(n, invalid int, settings *wire.DataTable) error {
	if err := sc.someDestination(); err != nil {
		return err
	}
	rows, err := sc.newDataset(partly(n, invalid))
	if err != nil {
		return err
	}
	changes := map[string]any{}
	for _, line := range settings.Rows() {
		var value any
		if err := json.Unmarshal([]byte(line[1]), &value); err != nil {
			return fmt.Errorf("read %s: %w", line[0], err)
		}
		changes[line[0]] = value // null leaves the field out
	}
	_, err = sc.newSync(sc.dest, rows, "upsert", changes)
	return err
}

func (sc *scenario) rowsBecome(n, invalid int) error {
	return sc.holds(sc.latest().rows, partly(n, invalid))
}

// mailsTo are the e-mails to an address once nothing is under way any more.
func (sc *scenario) mailsTo(address string) ([]*wire.Node, *answer, error) {
	if _, err := sc.control("POST", "/settle", nil); err != nil {
		return nil, nil, err
	}
	a, err := sc.control("GET", "/mailbox?to="+url.QueryEscape(address), nil)
	if err != nil {
		return nil, nil, err
	}
	return itemsOf(a.at("mails")), a, nil
}

func (sc *scenario) mailsHaveCome(how string) error {
	want, _ := strconv.Atoi(how) // "no" is none
	for _, address := range sc.noticed {
		mails, a, err := sc.mailsTo(address)
		if err != nil {
			return err
		}
		if len(mails) != want {
			sc.broken(fmt.Sprintf("%d e-mails about the sync", want), subjects(mails), a)
		}
	}
	return sc.HeldBy("%s e-mails", how)
}

// subjects says which e-mails have come.
func subjects(mails []*wire.Node) string {
	var out []string
	for _, m := range mails {
		out = append(out, jsonvalue.Text(m.Get("subject")))
	}
	return fmt.Sprintf("%d: %s", len(mails), strings.Join(out, "; "))
}

func (sc *scenario) everyoneHasMail(want int) error {
	sc.Proof("%s", quantity.Count(len(sc.noticed), "address"))
	return sc.mailsHaveCome(strconv.Itoa(want))
}

func (sc *scenario) mailNamesSync() error {
	s := sc.latest()
	label := fmt.Sprint(s.body["label"])
	for _, address := range sc.noticed {
		mails, a, err := sc.mailsTo(address)
		if err != nil {
			return err
		}
		if len(mails) == 0 {
			return conformance.Outcome(conformance.Inconclusive, "", "no e-mail has come")
		}
		for _, m := range mails {
			if text := jsonvalue.Text(m.Get("subject")) + "\n" + jsonvalue.Text(m.Get("text")); !strings.Contains(text, label) {
				sc.broken("the label of the sync, "+label, text, a)
			}
		}
	}
	return sc.Held()
}
