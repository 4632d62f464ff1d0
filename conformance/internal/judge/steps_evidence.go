package judge

import (
	"fmt"
	"html"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// evidenceSteps judge what the destination holds: by read-back, else by witness
// operations, else they are INCONCLUSIVE. Presence, identity and values are
// separate claims: a value that was altered does not make its record absent.
func evidenceSteps() []definition {
	return []definition{
		step(`^every acknowledged record (is in the destination|is in the destination, where a read-back shows it|is stored exactly|exists once|has its new values|of the run is as it was acknowledged)$`,
			func(sc *Scenario) any { return func(claim string) error { return storedClaims[claim](sc) } }),
		step(`^every deleted record is there again$`, func(sc *Scenario) any { return sc.presentAgain }),
		step(`^no deleted value is there again, where a read-back shows it$`, func(sc *Scenario) any { return sc.noDeletedValues }),
		step(`^no (record|copy in another object) exists$`, func(sc *Scenario) any { return sc.noneThere }),
		step(`^(every record|every other record|everything else) is unchanged by the last batch$`, func(sc *Scenario) any { return sc.unchanged }),
		step(`^(every record has the values of one batch|it is noted which values are stored)$`,
			func(sc *Scenario) any { return func(claim string) error { return storedClaims[claim](sc) } }),
	}
}

var storedClaims = map[string]func(*Scenario) error{
	"is in the destination":                             (*Scenario).present,
	"is in the destination, where a read-back shows it": (*Scenario).presentIfShown,
	"is stored exactly":                                 (*Scenario).storedExactly,
	"exists once":                                       (*Scenario).existOnce,
	"has its new values":                                (*Scenario).haveChanged,
	"of the run is as it was acknowledged":              (*Scenario).acknowledgedKept,

	"every record has the values of one batch": (*Scenario).valuesOfOneBatch,
	"it is noted which values are stored":      (*Scenario).notesStored,
}

// unanswered reports latest batches that crashed as a whole: an odd record may
// fail, its batch may not. The error of a lone record is a refusal of it.
func (sc *Scenario) unanswered() {
	for _, b := range sc.Latest {
		lone := len(b.Records) == 1 && b.Reply.IsError()
		if !b.Answered() && !lone {
			sc.BrokenFor(b.Operation, "a result for each record", b.Reply.Short(), b.Reply)
		}
	}
}

// expectations are the records of the latest batches with what must be stored.
func (sc *Scenario) expectations(want func(*write.Expected) bool) []*write.Expected {
	latest := map[model.Place]bool{}
	for _, s := range sc.Sets {
		for _, r := range s.Records {
			latest[r.Place()] = true
		}
	}
	return lists.Where(sc.Model.All(), func(e *write.Expected) bool { return e.Known && want(e) && latest[e.Record.Place()] })
}

func exists(e *write.Expected) bool { return e.Exists }

// written are the records that the latest batch has created or changed: one that it
// refused shows nothing, whatever is there from before.
func written(e *write.Expected) bool { return e.Exists && e.Written }

// standing are those, and the ones that an insert has skipped.
func standing(e *write.Expected) bool {
	return e.Exists && (e.Written || e.Operation == rpc.OperationInsert)
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
	sc.unanswered()
	if err := sc.Held(); err != nil {
		return err
	}
	due := sc.expectations(written)
	if len(due) == 0 {
		return sc.noneAccepted()
	}
	if sc.Readback == nil {
		return sc.Witnessed(write.RecordsOf(due), true)
	}
	seen, err := sc.observeUntil(write.RecordsOf(due), func(s map[string]write.Observed) bool { return len(notThere(due, s)) == 0 })
	if err != nil {
		return err
	}
	lost := notThere(due, seen)
	if err := sc.reportMissing(lost, len(due)); err != nil {
		return err
	}
	sc.Saw(conformance.SeenStored, len(due)-len(lost))
	for _, e := range due {
		if seen[exchange.KeyText(e.Record.Key)].Count > 0 {
			sc.j.storedBy.Store(e.Record.Object.APIName+" "+e.Operation, true)
		}
	}
	return sc.Held()
}

// presentAgain judges records that were created, deleted and sent again as they were.
// Refusing one of them has no reason in its values, which were accepted before.
func (sc *Scenario) presentAgain() error {
	refused := sc.expectations(func(e *write.Expected) bool { return e.Created && !e.Exists && e.Refused && e.Changes == 0 })
	for _, e := range refused {
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

// symptoms name what was observed, so that findings of one cause can be kept apart from
// findings of another.
const (
	symptomOldValue = "old value"
)

// reportMissing adds a finding for the first few records that are not there. A
// record that is there under an altered identifier is reported as that.
func (sc *Scenario) reportMissing(lost []*write.Expected, of int) error {
	for i, e := range lost {
		if i == 3 {
			break
		}
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

// alteredKey looks for a record under the forms that endpoints turn an
// identifier into; "" when it is under none of them.
func (sc *Scenario) alteredKey(r *write.Record) (string, error) {
	text := exchange.KeyText(r.Key)
	if r.ID.Type != rpc.TypeString {
		return "", nil
	}
	var forms []*write.Record
	for _, other := range []string{strings.ToLower(text), strings.ToUpper(text), strings.TrimSpace(text), values.Normalise(text), html.EscapeString(text)} {
		if other == text {
			continue
		}
		c := *r
		c.Key = values.Quote(other)
		forms = append(forms, &c)
	}
	if len(forms) == 0 {
		return "", nil
	}
	seen, err := sc.Observe(forms)
	if err != nil {
		return "", err
	}
	for _, f := range forms {
		if seen[exchange.KeyText(f.Key)].Count > 0 {
			return string(f.Key), nil
		}
	}
	return "", nil
}
