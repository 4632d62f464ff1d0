package judge

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// These steps judge what the destination holds: by read-back, else by witness operations,
// else they are INCONCLUSIVE. Presence, identity and values are separate claims: a value
// that was altered does not make its record absent.

var evidenceSentences = sentences{
	`^every acknowledged record is in the destination$`:                             (*Scenario).present,
	`^every acknowledged record is in the destination, where a read-back shows it$`: (*Scenario).presentIfShown,
	`^every acknowledged record is stored exactly$`:                                 (*Scenario).storedExactly,
	`^every acknowledged record exists once$`:                                       (*Scenario).existOnce,
	`^every acknowledged record has its new values$`:                                (*Scenario).haveChanged,
	`^every deleted record is there again$`:                                         (*Scenario).presentAgain,
	`^no record exists$`:                                                            (*Scenario).noneExists,
	`^no copy in another object exists$`:                                            (*Scenario).nowhereElse,
}

func evidenceSteps() []engine.Step {
	return []engine.Step{
		engine.NewStep(`^(every record|every other record|everything else|`+leftAlone+`) is unchanged by the last batch$`, func(sc *Scenario) any { return sc.unchanged }),
	}
}

// unanswered reports latest batches that crashed as a whole: an odd record may fail, its batch may not.
// The error of a lone record is a refusal of it. One batch that hangs beside others shows nothing of its values.
func (sc *Scenario) unanswered() error {
	for _, b := range sc.Latest {
		late := b.Reply.Kind == wire.KindTimeout
		switch lone := len(b.Records) == 1 && b.Reply.IsError(); {
		case late && !sc.Confirming():
			return wire.ErrSilent // judged once more, alone
		case late:
			sc.brokenBy(either("one of its values makes the endpoint hang", "what an earlier call holds, such as a lock, does", "the request below, after a restart,"),
				"hangs", b.Operation, "a result for each record", b.Reply.Short(), b.Reply)
		case !b.Answered() && !lone:
			sc.BrokenFor(b.Operation, "a result for each record", b.Reply.Short(), b.Reply)
		}
	}
	return sc.Held()
}

// ofSets are the records of all sets.
func (sc *Scenario) ofSets() []*write.Record {
	return slices.Concat(lists.Of(sc.Sets, func(s write.Set) []*write.Record { return s.Records })...)
}

// expectations are the records of the latest batches with what must be stored.
func (sc *Scenario) expectations(want func(*write.Expected) bool) []*write.Expected {
	latest := map[model.Place]bool{}
	for _, r := range sc.ofSets() {
		latest[r.Place()] = true
	}
	return lists.Where(sc.Model.All(), func(e *write.Expected) bool { return e.Known && want(e) && latest[e.Record.Place()] })
}

func exists(e *write.Expected) bool { return e.Exists }

// written: a record that the latest batch refused shows nothing, whatever is there from before.
func written(e *write.Expected) bool { return e.Exists && e.Written }

// due are the records that must be there as they were acknowledged: at least one.
func (sc *Scenario) due() ([]*write.Expected, error) {
	if err := sc.unanswered(); err != nil {
		return nil, err
	}
	due := sc.expectations(written)
	if len(due) == 0 {
		return nil, sc.noneAccepted()
	}
	return due, nil
}

// observeDue reads records back until good holds, and reports those that are missing. The claim is
// INCONCLUSIVE without a hook.
func (sc *Scenario) observeDue(what string, due []*write.Expected, good func(map[string]write.Observed) bool) (map[string]write.Observed, error) {
	if err := sc.needReadbackOf(what); err != nil {
		return nil, err
	}
	seen, err := sc.ObserveUntil(write.RecordsOf(due), good)
	if err == nil {
		err = sc.reportMissing(notThere(due, seen), len(due))
	}
	return seen, err
}

// noneAccepted: that records are refused shows nothing of what the endpoint does
// with those that it accepts. OPS-007, RES-020 and DAT-014 judge refusals.
func (sc *Scenario) noneAccepted() error {
	said := ""
	if sc.Refusal() != "" {
		said = "; the endpoint says: " + sc.Refusal()
	}
	return engine.Inconclusive("fixtures", "every record was refused, so that nothing could be seen%s", said)
}

// present judges existence and identity, by read-back or by witnesses.
func (sc *Scenario) present() error {
	due, err := sc.due()
	if err != nil {
		return err
	}
	if sc.Readback == nil {
		return sc.Witnessed(write.RecordsOf(due), true)
	}
	seen, err := sc.observeDue("whether a record is there", due, func(s map[string]write.Observed) bool { return len(notThere(due, s)) == 0 })
	if err != nil {
		return err
	}
	sc.Saw(conformance.SeenStored, len(due)-len(notThere(due, seen)))
	for _, e := range due {
		if seen[exchange.KeyText(e.Record.Key)].Count > 0 {
			sc.j.storedBy.Store(e.Record.Object.APIName+" "+e.Operation, true)
		}
	}
	return sc.Held()
}

// presentAgain judges deleted records that were sent again: their values were accepted before.
func (sc *Scenario) presentAgain() error {
	for _, e := range sc.expectations(func(e *write.Expected) bool { return e.Created && !e.Exists && e.Refused && e.Changes == 0 }) {
		b := sc.BatchAt(e.Record)
		sc.BrokenAs(write.SymptomMissing, b.Operation, "the deleted record "+string(e.Record.Key)+" created again", b.WhyOf(e.Record), b.Reply)
	}
	return sc.present()
}

// presentIfShown is present for checks that have evidence without a read-back.
func (sc *Scenario) presentIfShown() error {
	if sc.Readback == nil || len(sc.expectations(written)) == 0 {
		return nil
	}
	return sc.present()
}

func notThere(due []*write.Expected, seen map[string]write.Observed) []*write.Expected {
	return lists.Where(due, func(e *write.Expected) bool { return seen[exchange.KeyText(e.Record.Key)].Count == 0 })
}

// Symptoms name what was observed, by which findings of one cause are known.
const (
	symptomOldValue = "old value"
	symptomLeft     = "still there after its delete"
	symptomCopies   = "copies"
)

// reportMissing adds a finding for the first few records that are not there, or there under an altered identifier.
func (sc *Scenario) reportMissing(lost []*write.Expected, of int) error {
	for i, e := range lost[:min(len(lost), 3)] {
		actual, symptom := "it is not there", write.SymptomMissing
		other, err := sc.alteredKey(e.Record)
		if err != nil {
			return err
		}
		if other != "" {
			actual, symptom = "it is there as "+other+": the identifier was altered on its way", write.SymptomRenamed
		}
		if i == 0 && len(lost) > 3 {
			actual += fmt.Sprintf("; %d of %s %s missing", len(lost), quantity.Count(of, "acknowledged record"), quantity.Verb(len(lost), "is", "are"))
		}
		sc.BrokenAs(symptom, sc.operationOf(e.Record), "the acknowledged record "+foreign.Clip(string(e.Record.Key), 80)+" in the destination", actual, sc.ReplyFor(e.Record))
	}
	sc.Unmet.Lost = append(sc.Unmet.Lost, lost...)
	return nil
}

// alteredKey looks for a record under the forms that endpoints turn an identifier into; "" for none.
func (sc *Scenario) alteredKey(r *write.Record) (string, error) {
	text := exchange.KeyText(r.Key)
	others := slices.DeleteFunc([]string{strings.ToLower(text), strings.ToUpper(text), strings.TrimSpace(text), values.Normalise(text), html.EscapeString(text)},
		func(other string) bool { return other == text })
	if r.ID.Type != rpc.TypeString || len(others) == 0 {
		return "", nil
	}
	forms := lists.Of(others, r.Under)
	seen, err := sc.Observe(forms)
	if i := slices.IndexFunc(forms, func(f *write.Record) bool { return seen[exchange.KeyText(f.Key)].Count > 0 }); i >= 0 {
		return string(forms[i].Key), nil
	}
	return "", err
}

// noneExists: no record of the latest batches is there, but those whose delete was not acknowledged.
func (sc *Scenario) noneExists() error {
	removed := func(r *write.Record) bool {
		e := sc.Model.Get(r) // a delete that was not acknowledged removes nothing
		return sc.operationOf(r) != rpc.OperationDelete || e.Known && !e.Exists
	}
	records := lists.Where(sc.ofSets(), removed)
	if len(records) == 0 {
		return sc.noneAccepted()
	}
	if sc.Readback == nil {
		for _, s := range sc.Sets { // each has one active identifier
			if err := sc.Witnessed(lists.Where(s.Records, removed), false); err != nil {
				return err
			}
		}
		return sc.updatesFind()
	}
	seen, err := sc.ObserveUntil(records, func(s map[string]write.Observed) bool { return len(s) == 0 })
	if err != nil {
		return err
	}
	for _, r := range records {
		if seen[exchange.KeyText(r.Key)].Count > 0 {
			symptom := "still there"
			if sc.operationOf(r) == rpc.OperationDelete {
				symptom, sc.Unmet.Left = symptomLeft, append(sc.Unmet.Left, r)
			}
			sc.BrokenAs(symptom, sc.LastOperation(), "no record "+string(r.Key)+" in the destination", "it is there under this "+r.ID.APIName, sc.ReplyFor(r))
			continue
		}
		sc.Saw(conformance.SeenAbsent, 1)
		if sc.Before[r.Place()].Count > 0 {
			sc.Saw(conformance.SeenDeleted, 1)
		}
	}
	return sc.updatesFind()
}

// updatesFind is the control of an update that was skipped: one of a record that is there is taken.
func (sc *Scenario) updatesFind() error {
	if sc.Held() != nil || sc.LastOperation() != rpc.OperationUpdate {
		return sc.Held()
	}
	found, err := sc.Finds(rpc.OperationUpdate)
	if err == nil && !found {
		err = engine.Inconclusive("", "an update of a record that is there is refused as well (OPS-007), so that its refusal shows nothing")
	}
	return err
}

func (sc *Scenario) existOnce() error {
	due := sc.expectations(func(e *write.Expected) bool {
		return e.Exists && (e.Written || e.Operation == rpc.OperationInsert) // an insert may have skipped it
	})
	if len(due) == 0 {
		return sc.noneAccepted()
	}
	if sc.Readback == nil { // a witness shows a loss, and no copies
		return cmp.Or(sc.Witnessed(write.RecordsOf(due), true), sc.needReadbackOf("how many copies of a record there are"))
	}
	seen, err := sc.ObserveUntil(write.RecordsOf(due), func(seen map[string]write.Observed) bool { return len(notThere(due, seen)) == 0 })
	if err != nil {
		return err
	}
	for _, e := range due {
		switch n := seen[exchange.KeyText(e.Record.Key)].Count; n {
		case 1:
			sc.Saw(conformance.SeenStored, 1)
		case 0:
			sc.Unmet.Lost = append(sc.Unmet.Lost, e)
			sc.BrokenAs(write.SymptomMissing, sc.operationOf(e.Record), "one record "+string(e.Record.Key), "it is not there", sc.ReplyFor(e.Record))
		default:
			sc.brokenByCopies(e.Record, n)
		}
	}
	return sc.Held()
}

func (sc *Scenario) nowhereElse() error {
	due := sc.expectations(written)
	if len(due) == 0 {
		return sc.noneAccepted()
	}
	looked := 0
	for _, o := range sc.otherObjects(sc.Object) {
		for _, id := range o.Identifiers() {
			fits := lists.Where(due, func(e *write.Expected) bool { return e.Record.ID.Type == id.Type })
			elsewhere := lists.Of(fits, func(e *write.Expected) *write.Record { return &write.Record{Object: o, ID: id, Key: e.Record.Key} })
			seen, err := sc.Observe(elsewhere)
			if err != nil {
				return err
			}
			looked += len(elsewhere)
			for _, r := range elsewhere {
				if seen[exchange.KeyText(r.Key)].Count > 0 {
					sc.BrokenFor(sc.LastOperation(), fmt.Sprintf("%s in %q only", r.Key, sc.Object.APIName), fmt.Sprintf("%q holds it too", o.APIName), sc.ReplyFor(due[0].Record))
				}
			}
		}
	}
	if looked == 0 {
		return line.NotApplicable("no other object has an identifier of the same type")
	}
	sc.Saw(conformance.SeenAbsent, looked)
	return sc.Held()
}
