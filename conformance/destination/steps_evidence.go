package destination

import (
	"fmt"
	"html"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/values"
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
			func(sc *scenario) any { return func(claim string) error { return storedClaims[claim](sc) } }),
		step(`^every deleted record is there again$`, func(sc *scenario) any { return sc.presentAgain }),
		step(`^no deleted value is there again, where a read-back shows it$`, func(sc *scenario) any { return sc.noDeletedValues }),
		step(`^no (record|copy in another object) exists$`, func(sc *scenario) any { return sc.noneThere }),
		step(`^(every record|every other record|everything else) is unchanged by the last batch$`, func(sc *scenario) any { return sc.unchanged }),
		step(`^(every record has the values of one batch|it is noted which values are stored)$`,
			func(sc *scenario) any { return func(claim string) error { return storedClaims[claim](sc) } }),
	}
}

var storedClaims = map[string]func(*scenario) error{
	"is in the destination":                             (*scenario).present,
	"is in the destination, where a read-back shows it": (*scenario).presentIfShown,
	"is stored exactly":                                 (*scenario).storedExactly,
	"exists once":                                       (*scenario).existOnce,
	"has its new values":                                (*scenario).haveChanged,
	"of the run is as it was acknowledged":              (*scenario).acknowledgedKept,

	"every record has the values of one batch": (*scenario).valuesOfOneBatch,
	"it is noted which values are stored":      (*scenario).notesStored,
}

// unanswered reports latest batches that crashed as a whole: an odd record may
// fail, its batch may not. The error of a lone record is a refusal of it.
func (sc *scenario) unanswered() {
	for _, b := range sc.latest {
		lone := len(b.records) == 1 && b.reply.IsError()
		if !b.answered() && !lone {
			sc.brokenFor(b.operation, "a result for each record", b.reply.Short(), b.reply)
		}
	}
}

// expectations are the records of the latest batches with what must be stored.
func (sc *scenario) expectations(want func(*expected) bool) []*expected {
	latest := map[place]bool{}
	for _, s := range sc.sets {
		for _, r := range s.records {
			latest[r.place()] = true
		}
	}
	return lists.Where(sc.model.all(), func(e *expected) bool { return e.Known && want(e) && latest[e.record.place()] })
}

func exists(e *expected) bool { return e.Exists }

// written are the records that the latest batch has created or changed: one that it
// refused shows nothing, whatever is there from before.
func written(e *expected) bool { return e.Exists && e.Written }

// standing are those, and the ones that an insert has skipped.
func standing(e *expected) bool {
	return e.Exists && (e.Written || e.Operation == rpc.OperationInsert)
}

func recordsOf(es []*expected) []*record {
	out := make([]*record, len(es))
	for i, e := range es {
		out[i] = e.record
	}
	return out
}

// noneAccepted: that records are refused shows nothing of what the endpoint does
// with those that it accepts. OPS-007, RES-020 and DAT-014 judge refusals.
func (sc *scenario) noneAccepted() error {
	said := ""
	if sc.Refusal() != "" {
		said = "; the endpoint says: " + sc.Refusal()
	}
	return inconclusive("fixtures", "every record was refused, so that nothing could be seen%s", said)
}

// present judges existence and identity, by read-back or by witnesses.
func (sc *scenario) present() error {
	sc.unanswered()
	if err := sc.Held(); err != nil {
		return err
	}
	due := sc.expectations(written)
	if len(due) == 0 {
		return sc.noneAccepted()
	}
	if sc.readback == nil {
		return sc.witnessed(recordsOf(due), true)
	}
	seen, err := sc.observeUntil(recordsOf(due), func(s map[string]observed) bool { return len(notThere(due, s)) == 0 })
	if err != nil {
		return err
	}
	lost := notThere(due, seen)
	if err := sc.reportMissing(lost, len(due)); err != nil {
		return err
	}
	sc.Saw(conformance.SeenStored, len(due)-len(lost))
	for _, e := range due {
		if seen[exchange.KeyText(e.record.key)].count > 0 {
			sc.storedBy.Store(e.record.object.APIName+" "+e.Operation, true)
		}
	}
	return sc.Held()
}

// presentAgain judges records that were created, deleted and sent again as they were.
// Refusing one of them has no reason in its values, which were accepted before.
func (sc *scenario) presentAgain() error {
	refused := sc.expectations(func(e *expected) bool { return e.Created && !e.Exists && e.Refused && e.Changes == 0 })
	for _, e := range refused {
		b := sc.batchAt(e.record)
		sc.brokenAs(symptomMissing, b.operation, "the deleted record "+string(e.record.key)+" created again", b.whyOf(e.record), b.reply)
	}
	return sc.present()
}

// presentIfShown is present for checks that have evidence without a read-back.
func (sc *scenario) presentIfShown() error {
	if sc.readback == nil || len(sc.expectations(written)) == 0 {
		return nil
	}
	return sc.present()
}

func notThere(due []*expected, seen map[string]observed) []*expected {
	return lists.Where(due, func(e *expected) bool { return seen[exchange.KeyText(e.record.key)].count == 0 })
}

// symptoms name what was observed, so that findings of one cause can be kept apart from
// findings of another.
const (
	symptomMissing  = "not there"
	symptomRenamed  = "under another identifier"
	symptomOldValue = "old value"
)

// reportMissing adds a finding for the first few records that are not there. A
// record that is there under an altered identifier is reported as that.
func (sc *scenario) reportMissing(lost []*expected, of int) error {
	for i, e := range lost {
		if i == 3 {
			break
		}
		actual, symptom := "it is not there", symptomMissing
		other, err := sc.alteredKey(e.record)
		if err != nil {
			return err
		}
		if other != "" {
			actual, symptom = "it is there as "+other+": the identifier was altered on its way", symptomRenamed
		}
		if i == 0 && len(lost) > 3 {
			actual += fmt.Sprintf("; %d of %s %s missing", len(lost), quantity.Count(of, "acknowledged record"), quantity.Verb(len(lost), "is", "are"))
		}
		sc.brokenAs(symptom, sc.operationOf(e.record), "the acknowledged record "+foreign.Clip(string(e.record.key), 80)+" in the destination", actual, sc.replyFor(e.record))
	}
	sc.unmet.lost = append(sc.unmet.lost, lost...)
	return nil
}

// alteredKey looks for a record under the forms that endpoints turn an
// identifier into; "" when it is under none of them.
func (sc *scenario) alteredKey(r *record) (string, error) {
	text := exchange.KeyText(r.key)
	if r.id.Type != rpc.TypeString {
		return "", nil
	}
	var forms []*record
	for _, other := range []string{strings.ToLower(text), strings.ToUpper(text), strings.TrimSpace(text), values.Normalise(text), html.EscapeString(text)} {
		if other == text {
			continue
		}
		c := *r
		c.key = values.Quote(other)
		forms = append(forms, &c)
	}
	if len(forms) == 0 {
		return "", nil
	}
	seen, err := sc.observe(forms)
	if err != nil {
		return "", err
	}
	for _, f := range forms {
		if seen[exchange.KeyText(f.key)].count > 0 {
			return string(f.key), nil
		}
	}
	return "", nil
}
