package service

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/quantity"
)

// countersSteps are for CNT: the counters of a run (spec 2.9).
func countersSteps() []engine.Step {
	return []engine.Step{
		step(`^run (\d+) counts$`, func(sc *scenario) any { return sc.runCounts }),
		step(`^([a-z_]+) of run (\d+) is one of "([0-9, ]+)"$`, func(sc *scenario) any { return sc.countsOneOf }),
		step(`^run (\d+) counts no record as updated$`, func(sc *scenario) any { return sc.countsNone }),
		step(`^the sums of run (\d+) agree$`, func(sc *scenario) any { return sc.sumsAgree }),
		step(`^the counters of run (\d+) agree with its history$`, func(sc *scenario) any { return sc.countersAgree }),
	}
}

func (sc *scenario) runCounts(run int, want *engine.Table) error {
	a, err := sc.ran(run)
	if err != nil {
		return err
	}
	for _, line := range engine.Rows(want) {
		name, value := line[0], line[1]
		if n, ok := a.at("data", name).Int(); !ok || strconv.FormatInt(n, 10) != value {
			sc.broken(fmt.Sprintf("%s of run %d is %s", name, run, value), jsonvalue.Raw(a.at("data", name)), a)
		}
	}
	return sc.HeldBy("run %d: %s", run, quantity.Count(len(engine.Rows(want)), "counter"))
}

// countsOneOf is for counters that published examples define in more than one way.
func (sc *scenario) countsOneOf(name string, run int, list string) error {
	a, err := sc.ran(run)
	if err != nil {
		return err
	}
	n, ok := a.at("data", name).Int()
	if !ok || !slices.Contains(strings.Split(list, ", "), strconv.FormatInt(n, 10)) {
		sc.broken(fmt.Sprintf("%s of run %d is one of %s", name, run, list), jsonvalue.Raw(a.at("data", name)), a)
	}
	return sc.HeldBy("%s is %d", name, n)
}

// countsNone: a run that failed may leave its counters out.
func (sc *scenario) countsNone(run int) error {
	a, err := sc.ran(run)
	if err != nil {
		return err
	}
	updated := a.at("data", "records_updated")
	if n, ok := updated.Int(); ok && n != 0 || !ok && jsonvalue.Raw(updated) != "null" {
		sc.broken("records_updated is 0 or null", jsonvalue.Raw(updated), a)
	}
	return sc.HeldBy("records_updated is %s", jsonvalue.Raw(updated))
}

// sumsAgree: what was processed is what was to be sent, and became something.
func (sc *scenario) sumsAgree(run int) error {
	from, err := sc.ran(run)
	if err != nil {
		return err
	}
	sum := map[string]int64{}
	for _, name := range []string{"records_processed", "source_record_updates", "source_record_deletes", "records_updated", "records_failed"} {
		var ok bool
		if sum[name], ok = from.at("data", name).Int(); !ok {
			sc.broken(name+" is an integer", jsonvalue.Raw(from.at("data", name)), from)
		}
	}
	processed := sum["records_processed"]
	if found := sum["source_record_updates"] + sum["source_record_deletes"]; found != processed {
		sc.broken("records_processed is source_record_updates and source_record_deletes together", fmt.Sprintf("%d, and not %d", processed, found), from)
	}
	if became := sum["records_updated"] + sum["records_failed"]; became != processed {
		sc.broken("records_processed is records_updated and records_failed together", fmt.Sprintf("%d, and not %d", processed, became), from)
	}
	return sc.HeldBy("%s processed", quantity.Count(processed, "record"))
}

// countersAgree counts the lines of the history.
func (sc *scenario) countersAgree(run int) error {
	lines, a, err := sc.history(run, "")
	if err != nil {
		return err
	}
	ended, err := sc.ran(run)
	if err != nil {
		return err
	}
	count := map[string]int64{}
	for _, l := range lines {
		count[l.Status]++
	}
	for status, name := range map[string]string{"succeeded": "records_updated", "rejected": "records_failed"} {
		if n, _ := ended.at("data", name).Int(); n != count[status] {
			sc.broken(fmt.Sprintf("as many records are %s as %s says: %d", status, name, n), fmt.Sprintf("%d", count[status]), ended, a)
		}
	}
	return sc.HeldBy("%s in the history", quantity.Count(len(lines), "record"))
}

// alertsSteps are for ALRT: alerts, which are e-mails (spec 2.8, 6). No one sees
// them but in the mailbox of a stand-in.
func alertsSteps() []engine.Step {
	return []engine.Step{
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

func (sc *scenario) watchedSync(n, invalid int, settings *engine.Table) error {
	if err := sc.someDestination(); err != nil {
		return err
	}
	rows, err := sc.newDataset(partly(n, invalid))
	if err != nil {
		return err
	}
	changes := map[string]any{}
	for _, line := range engine.Rows(settings) {
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
			return engine.Outcome(conformance.Inconclusive, "", "no e-mail has come")
		}
		for _, m := range mails {
			if text := jsonvalue.Text(m.Get("subject")) + "\n" + jsonvalue.Text(m.Get("text")); !strings.Contains(text, label) {
				sc.broken("the label of the sync, "+label, text, a)
			}
		}
	}
	return sc.Held()
}
