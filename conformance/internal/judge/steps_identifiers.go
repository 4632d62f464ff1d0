package judge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/cleanup"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/lists"
)

// disagreeing is a record whose other identifier names the bystander; nil: no record.
type disagreeing struct {
	sent, bystander *write.Record
	other           rpc.Field       // the other identifier
	by              json.RawMessage // its new or old value, by which a later batch names the record; nil: none does
	isNew           bool            // it is the new one
}

// sendsDisagreeing sends, by each identifier and with each operation, records with the other identifier of a later, an
// earlier and an existing one, and in their own batch records with another identifier that no record has.
func (sc *Scenario) sendsDisagreeing() error {
	const disagreers = 7 // records that are created for one batch
	ids, operations := sc.Object.Identifiers()[:2], lists.Where([]string{rpc.OperationUpsert, rpc.OperationUpdate}, sc.Object.Accepts)
	var create, send []write.Set
	for i, id := range ids {
		other := ids[1-i]
		if !other.Createable || !other.Updateable {
			sc.Note("%s may not be changed, so that no update by %s carries it", other.APIName, id.APIName)
			continue
		}
		for _, op := range operations {
			made, err := sc.Make(disagreers+1, sc.Object.Creating(), id, &write.Sending{Reshape: write.WithIdentifiers})
			if err != nil {
				return err
			}
			var sent []*write.Record
			change := func(r, bystander *write.Record, key, by json.RawMessage) {
				sent = append(sent, write.ForOperation(op, []*write.Record{sc.Changed(r, 1).With(other.APIName, key)})...)
				sc.disagreeing = append(sc.disagreeing, disagreeing{sent[len(sent)-1], bystander, other, by, bytes.Equal(key, by)})
			}
			for _, pair := range [][2]int{{0, 1}, {3, 2}, {disagreers, 4}} { // the last two have none
				change(made[pair[0]], made[pair[1]], made[pair[1]].Values[other.APIName], nil)
			}
			for i, r := range made[disagreers-2 : disagreers] {
				free, err := sc.Key(sc.Object, other)
				if err != nil {
					return err
				}
				change(r, nil, free, [][]byte{free, r.Values[other.APIName]}[i])
			}
			create = append(create, write.Set{Operation: sc.Object.Creating(), Records: made[:disagreers]})
			send = append(send, write.Set{Operation: op, Records: sent[:3]}, write.Set{Operation: op, Records: sent[3:]})
		}
	}
	if len(send) == 0 {
		return nil
	}
	return sc.sendsAfter(create, send, &write.Sending{Alone: true}, &write.Sending{Alone: true})
}

const (
	symptomKept      = "kept identifier"
	symptomIgnored   = "ignored conflict"
	symptomTakenBack = "taken back with another record"
	symptomGone      = "another record gone"
)

// onlyActiveChanged looks at the fields that identify nothing: who keeps an identifier
// that two records claim is for the destination to decide, or to refuse.
func (sc *Scenario) onlyActiveChanged() error {
	look := write.RecordsOf(sc.Model.All())
	seen, err := sc.ObserveUntil(look, sc.identifiersStored)
	if err == nil && !sc.identifiersStored(seen) {
		if err = line.Elapse(sc.Ctx, cleanup.LateDelete); err == nil { // a write that is late is for DUR-002
			seen, err = sc.Observe(look)
		}
	}
	if err != nil {
		return err
	}
	for _, d := range sc.disagreeing {
		if d.bystander == nil {
			sc.freeIdentifierTaken(d, seen)
		} else if before := sc.Before[d.bystander.Place()]; before.Count > 0 {
			sc.bystanderKept(d, before, seen)
		}
	}
	for symptom, c := range map[string][2]string{
		symptomKept: {"the update leaves out every identifier, and not the active one alone.", "leave out the active identifier alone, and write the others."},
		symptomGone: {"a row that has the same value in another unique column is replaced or removed (REPLACE, INSERT OR REPLACE, UPDATE OR REPLACE), or either identifier matches.",
			"match by the active identifier alone, and refuse the record that collides with another one."},
		symptomIgnored: {"a conflict in the other identifier is ignored without a word (INSERT OR IGNORE, UPDATE OR IGNORE, ON CONFLICT DO NOTHING, an error that is swallowed).",
			"refuse the record that collides: name the active column alone in ON CONFLICT, and let every other error fail the record."},
		symptomTakenBack: {"the refusal of another record takes back the whole batch, and the others are acknowledged all the same.",
			"let each record have the result of its own write: a savepoint for each, or a failure of all that were taken back."},
		symptomOldValue: {"a change by this identifier is acknowledged and never made: the statement looks for another identifier, or matches no row and that is not checked.", ""},
	} {
		sc.Explain(func(s string) bool { return s == symptom && sc.Confirming() }, c[0], c[1], false) // one that passes alone has another cause
	}
	if err := sc.unchanged(leftAlone); err != nil {
		return err
	}
	return sc.newIdentifierFinds(seen)
}

// bystanderKept: the bystander is as it was, and the record that was sent is there if acknowledged.
func (sc *Scenario) bystanderKept(d disagreeing, before write.Observed, seen map[string]write.Observed) {
	got, sent := seen[exchange.KeyText(d.bystander.Key)], seen[exchange.KeyText(d.sent.Key)]
	op, reply, key := sc.operationOf(d.sent), sc.ReplyFor(d.sent), foreign.Clip(string(d.sent.Key), 60)
	what := fmt.Sprintf("%s as it was, which only %s of %s names", foreign.Clip(string(d.bystander.Key), 60), d.other.APIName, key)
	if got.Count == 0 {
		sc.BrokenAs(symptomGone, op, what, "it is not there under this "+d.bystander.ID.APIName, reply)
		return
	}
	if changed := sc.changedFields(before, got); len(changed) > 0 {
		sc.BrokenAs("another record changed", op, what, fmt.Sprintf("%s is %s", changed[0], foreign.Clip(model.OrNull(got.Fields[changed[0]]), 120)), reply)
		return
	}
	sc.Saw(conformance.SeenStored, 1)
	actual, symptom := "it is as it was before", symptomIgnored
	if b := sc.batchWith(d.sent); b != nil && b.Succeeded(d.sent) && op == rpc.OperationUpsert && sent.Count == 0 {
		actual = "it is not there"
	} else if !sc.unmade(d, seen) {
		return
	}
	without := func(o disagreeing) bool { return o.bystander == nil && o.sent.ID == d.sent.ID && sc.unmade(o, seen) }
	if alone := sc.tries(op, d.sent); alone != nil && alone.Refused(d.sent) {
		symptom = symptomTakenBack
	} else if slices.ContainsFunc(sc.disagreeing, without) { // nor is a change without a conflict
		symptom = symptomOldValue
	}
	sc.BrokenAs(symptom, op, fmt.Sprintf("the acknowledged values in %s, or a refusal: another record has its %s", key, d.other.APIName), actual, reply)
}

// unmade reports whether nothing of an acknowledged change of a record was made.
func (sc *Scenario) unmade(d disagreeing, seen map[string]write.Observed) bool {
	b, was := sc.batchWith(d.sent), sc.Before[d.sent.Place()]
	return b != nil && b.Succeeded(d.sent) && sc.Model.Get(d.sent).Written && was.Count > 0 &&
		len(sc.changedFields(was, seen[exchange.KeyText(d.sent.Key)])) == 0
}

// freeIdentifierTaken: a record that is there may get another identifier that no record has.
func (sc *Scenario) freeIdentifierTaken(d disagreeing, seen map[string]write.Observed) {
	b, e, name, got := sc.batchWith(d.sent), sc.Model.Get(d.sent), d.other.APIName, seen[exchange.KeyText(d.sent.Key)]
	if b == nil || !e.Exists {
		return
	}
	what := fmt.Sprintf("%s with %s %s, which no record has", foreign.Clip(string(d.sent.Key), 60), name, foreign.Clip(string(d.sent.Values[name]), 60))
	switch {
	case b.Refused(d.sent):
		sc.BrokenAs("refused free identifier", b.Operation, what, b.WhyOf(d.sent), b.Reply)
	case !b.Succeeded(d.sent) || !e.Written || sc.hasIdentifier(d, got):
	case sc.unmade(d, seen):
		sc.BrokenAs(symptomOldValue, b.Operation, what, "it is "+foreign.Clip(model.OrNull(got.Fields[name]), 60), b.Reply)
	default:
		sc.BrokenAs(symptomKept, b.Operation, what, "it is "+foreign.Clip(model.OrNull(got.Fields[name]), 60), b.Reply)
	}
}

// newIdentifierFinds: a record that got another identifier is changed by the new value of that, and not by the old one.
func (sc *Scenario) newIdentifierFinds(seen map[string]write.Observed) error {
	var due []disagreeing
	sc.Sets = nil
	for _, d := range sc.disagreeing {
		if e := sc.Model.Get(d.sent); d.by == nil || !e.Known || !e.Written || seen[exchange.KeyText(d.sent.Key)].Fields[d.other.APIName] == nil {
			continue
		}
		op := sc.operationOf(d.sent)
		made, err := sc.Make(1, op, d.other, &write.Sending{})
		if err != nil {
			return err
		}
		r := made[0].With(d.other.APIName, d.by)
		for _, f := range sc.Object.Identifiers() {
			if raw, has := d.sent.Values[f.APIName]; has && d.isNew && r.Values[f.APIName] != nil {
				r = r.With(f.APIName, raw)
			}
		}
		r.Odd.What = "a changed identifier" // its key is new to the ledger, and the record may be there
		due, sc.Sets = append(due, d), append(sc.Sets, write.Set{Operation: op, Records: []*write.Record{r}})
	}
	if err := sc.SendSets(&write.Sending{}); err != nil {
		return err
	}
	seen, err := sc.Observe(lists.Of(due, func(d disagreeing) *write.Record { return d.sent }))
	if err != nil {
		return err
	}
	for i, b := range sc.Latest {
		if now := *due[i].sent; !due[i].isNew {
			sc.keptAsItWas(&now, seen, false)
		} else if now.Values = b.Records[0].Values; b.Succeeded(b.Records[0]) {
			for _, diff := range sc.same([]*write.Expected{write.AsSent(&now)}, seen) {
				sc.BrokenAs(diff.Symptom, b.Operation, diff.Expected, diff.Actual, b.Reply)
			}
		}
	}
	sc.Explain(func(string) bool { return true }, "an index (a map, a cache, a table of keys) still has the old value of an identifier that was changed, or lacks the new one.",
		"change every index of a record in the same step as the record, or look records up by their own values.", false)
	return sc.Held()
}

// hasIdentifier reports whether a record has the other identifier, as far as a read-back shows it.
func (sc *Scenario) hasIdentifier(d disagreeing, got write.Observed) bool {
	stored, shown := got.Fields[d.other.APIName]
	same, _ := hook.SameValue(d.other, d.sent.Values[d.other.APIName], stored)
	return same || !shown || got.Count != 1
}

// identifiersStored reports whether all that was acknowledged is there.
func (sc *Scenario) identifiersStored(seen map[string]write.Observed) bool {
	return !slices.ContainsFunc(sc.disagreeing, func(d disagreeing) bool {
		got, b := seen[exchange.KeyText(d.sent.Key)], sc.batchWith(d.sent)
		return b != nil && b.Succeeded(d.sent) && b.Operation == rpc.OperationUpsert && (got.Count == 0 || d.bystander == nil && !sc.hasIdentifier(d, got))
	})
}

// changedFields are the fields of a record, identifiers aside, that are not as before.
func (sc *Scenario) changedFields(before, after write.Observed) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(before.Fields)), func(name string) bool {
		f, ok := sc.Object.Field(name)
		return !ok || !write.BothWays(f) || sc.Hides(sc.Object.APIName, name) || model.OrNull(before.Fields[name]) == model.OrNull(after.Fields[name])
	})
}
