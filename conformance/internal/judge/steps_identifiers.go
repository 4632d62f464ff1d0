package judge

import (
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
	other           rpc.Field // the other identifier
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
			made, err := sc.withBoth(disagreers+1, id, other)
			if err != nil {
				return err
			}
			var sent, alone []*write.Record
			for _, pair := range [][2]int{{0, 1}, {3, 2}, {disagreers, 4}} { // the last two have none
				d := disagreeing{sc.Changed(made[pair[0]], 1).With(other.APIName, made[pair[1]].Values[other.APIName]), made[pair[1]], other}
				sc.disagreeing, sent = append(sc.disagreeing, d), append(sent, d.sent)
			}
			for _, r := range made[disagreers-2 : disagreers] {
				free, err := sc.Key(sc.Object, other)
				if err != nil {
					return err
				}
				d := disagreeing{sent: sc.Changed(r, 1).With(other.APIName, free), other: other}
				sc.disagreeing, alone = append(sc.disagreeing, d), append(alone, d.sent)
			}
			create = append(create, write.Set{Operation: sc.Object.Creating(), Records: made[:disagreers]})
			send = append(send, write.Set{Operation: op, Records: write.ForOperation(op, sent)}, write.Set{Operation: op, Records: write.ForOperation(op, alone)})
		}
	}
	if len(send) == 0 {
		return nil
	}
	return sc.sendsAfter(create, send, &write.Sending{Alone: true}, &write.Sending{Alone: true})
}

// withBoth makes records that carry two identifiers.
func (sc *Scenario) withBoth(n int, id, other rpc.Field) ([]*write.Record, error) {
	made, err := sc.Make(n, sc.Object.Creating(), id, &write.Sending{})
	for i, r := range made {
		if r.Values[other.APIName] != nil {
			continue
		}
		key, err := sc.Key(sc.Object, other)
		if err != nil {
			return nil, err
		}
		made[i] = r.With(other.APIName, key)
	}
	return made, err
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
	if len(sc.disagreeing) == 0 {
		return nil
	}
	var look []*write.Record
	for _, d := range sc.disagreeing {
		if look = append(look, d.sent); d.bystander != nil {
			look = append(look, d.bystander)
		}
	}
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
	return sc.Held()
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
	if changed := sc.changedFields(d.bystander.Object, before, got); len(changed) > 0 {
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
		len(sc.changedFields(d.sent.Object, was, seen[exchange.KeyText(d.sent.Key)])) == 0
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
func (sc *Scenario) changedFields(o *write.Object, before, after write.Observed) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(before.Fields)), func(name string) bool {
		f, ok := o.Field(name)
		return !ok || !write.BothWays(f) || model.OrNull(before.Fields[name]) == model.OrNull(after.Fields[name])
	})
}
