package judge

import (
	"fmt"
	"maps"
	"slices"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/cleanup"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/lists"
)

// disagreeing is a record whose active identifier names one record, or none, and
// whose other identifier names the bystander; nil: no record.
type disagreeing struct{ sent, bystander *write.Record }

// disagreers is how many records sendsDisagreeing creates for one batch.
const disagreers = 7

// sendsDisagreeing sends, by each identifier and with each operation, a record with the
// other identifier of a later one, of an earlier one, a new record with that of an
// existing one, and in a batch by themselves records with another identifier that no record has.
func (sc *Scenario) sendsDisagreeing() error {
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
			var sent []*write.Record
			for _, pair := range [][2]int{{0, 1}, {3, 2}, {disagreers, 4}} { // the last two have none
				bystander := made[pair[1]]
				r := sc.Changed(made[pair[0]], 1).With(other.APIName, bystander.Values[other.APIName])
				sc.disagreeing = append(sc.disagreeing, disagreeing{r, bystander})
				sent = append(sent, r)
			}
			var alone []*write.Record
			for _, r := range made[disagreers-2 : disagreers] {
				free, err := sc.Key(sc.Object, other)
				if err != nil {
					return err
				}
				taken := sc.Changed(r, 1).With(other.APIName, free)
				sc.disagreeing = append(sc.disagreeing, disagreeing{sent: taken})
				alone = append(alone, taken)
			}
			create = append(create, write.Set{Operation: sc.Object.Creating(), Records: made[:disagreers]})
			send = append(send, write.Set{Operation: op, Records: write.ForOperation(op, sent)}, write.Set{Operation: op, Records: write.ForOperation(op, alone)})
		}
	}
	if len(send) == 0 {
		return nil
	}
	for _, sets := range [][]write.Set{create, send} {
		sc.Sets = sets
		if err := sc.SendSets(&write.Sending{Alone: true}); err != nil {
			return err
		}
	}
	return nil
}

// withBoth makes records that carry two identifiers.
func (sc *Scenario) withBoth(n int, id, other rpc.Field) ([]*write.Record, error) {
	made, err := sc.Make(n, sc.Object.Creating(), id, &write.Sending{})
	if err != nil {
		return nil, err
	}
	for i, r := range made {
		if _, ok := r.Values[other.APIName]; ok {
			continue
		}
		key, err := sc.Key(sc.Object, other)
		if err != nil {
			return nil, err
		}
		made[i] = r.With(other.APIName, key)
	}
	return made, nil
}

// onlyActiveChanged looks at the fields that identify nothing: who keeps an identifier
// that two records claim is for the destination to decide, or to refuse.
func (sc *Scenario) onlyActiveChanged() error {
	if len(sc.disagreeing) == 0 {
		return nil
	}
	if err := sc.NeedReadback(); err != nil {
		return err
	}
	var look []*write.Record
	for _, d := range sc.disagreeing {
		if look = append(look, d.sent); d.bystander != nil {
			look = append(look, d.bystander)
		}
	}
	seen, err := sc.observeUntil(look, sc.identifiersStored)
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
			sc.freeIdentifierTaken(d, seen[exchange.KeyText(d.sent.Key)])
			continue
		}
		before, got := sc.Before[d.bystander.Place()], seen[exchange.KeyText(d.bystander.Key)]
		if before.Count == 0 {
			continue
		}
		op, reply := sc.operationOf(d.sent), sc.ReplyFor(d.sent)
		what := fmt.Sprintf("%s as it was, which only %s of %s names", foreign.Clip(string(d.bystander.Key), 60), sc.otherIdentifier(d), foreign.Clip(string(d.sent.Key), 60))
		if got.Count == 0 {
			sc.BrokenAs("another record gone", op, what, "it is not there under this "+d.bystander.ID.APIName, reply)
			continue
		}
		changed := sc.changedFields(d.bystander.Object, before, got)
		if len(changed) > 0 {
			sc.BrokenAs("another record changed", op, what, fmt.Sprintf("%s is %s", changed[0], foreign.Clip(OrNull(got.Fields[changed[0]]), 120)), reply)
			continue
		}
		sc.Saw(conformance.SeenStored, 1)
		b, e := sc.batchWith(d.sent), sc.Model.Get(d.sent)
		if op == rpc.OperationUpsert && b != nil && b.Succeeded(d.sent) && seen[exchange.KeyText(d.sent.Key)].Count == 0 {
			sc.BrokenAs(symptomIgnored, op, fmt.Sprintf("the acknowledged record %s in the destination, or refused: another one has its %s", foreign.Clip(string(d.sent.Key), 60), sc.otherIdentifier(d)),
				"it is not there", reply)
			continue
		}
		if was := sc.Before[d.sent.Place()]; was.Count > 0 && e.Written && b != nil && b.Succeeded(d.sent) && len(sc.changedFields(d.sent.Object, was, seen[exchange.KeyText(d.sent.Key)])) == 0 {
			sc.BrokenAs(symptomOldValue, op, "the acknowledged values in "+foreign.Clip(string(d.sent.Key), 60), "it is as it was before", reply)
		}
	}
	sc.Explain(func(s string) bool { return s == symptomKept }, "the update leaves out every identifier, and not the active one alone.", false)
	sc.Explain(func(s string) bool { return s == "another record gone" }, "a row that has the same value in another unique column is replaced or removed (REPLACE, INSERT OR REPLACE, UPDATE OR REPLACE), or either identifier matches.", false)
	sc.Explain(func(s string) bool { return s == symptomIgnored }, "a conflict in the other identifier is ignored without a word (INSERT OR IGNORE, ON CONFLICT DO NOTHING, an error that is swallowed).", false)
	return sc.Held()
}

const (
	symptomKept    = "kept identifier"
	symptomIgnored = "ignored conflict"
)

// freeIdentifierTaken: a record that is there may get another identifier that no record
// has, in a field that may be changed.
func (sc *Scenario) freeIdentifierTaken(d disagreeing, got write.Observed) {
	b, e, name := sc.batchWith(d.sent), sc.Model.Get(d.sent), sc.otherIdentifier(d)
	if b == nil || !e.Exists {
		return
	}
	free := d.sent.Values[name]
	what := fmt.Sprintf("%s with %s %s, which no record has", foreign.Clip(string(d.sent.Key), 60), name, foreign.Clip(string(free), 60))
	if b.Refused(d.sent) {
		sc.BrokenAs("refused free identifier", b.Operation, what, b.WhyOf(d.sent), b.Reply)
		return
	}
	if b.Succeeded(d.sent) && e.Written && !sc.hasIdentifier(d, got) {
		symptom := symptomKept
		if was := sc.Before[d.sent.Place()]; was.Count > 0 && len(sc.changedFields(sc.Object, was, got)) == 0 {
			symptom = symptomOldValue // nothing of the change was made
		}
		sc.BrokenAs(symptom, b.Operation, what, "it is "+foreign.Clip(OrNull(got.Fields[name]), 60), b.Reply)
	}
}

// hasIdentifier reports whether a record has the other identifier that it was sent with, as
// far as a read-back shows it.
func (sc *Scenario) hasIdentifier(d disagreeing, got write.Observed) bool {
	name := sc.otherIdentifier(d)
	f, _ := sc.Object.Field(name)
	stored, shown := got.Fields[name]
	same, _ := hook.SameValue(f, d.sent.Values[name], stored)
	return same || !shown || got.Count != 1
}

// identifiersStored reports whether all that was acknowledged is there.
func (sc *Scenario) identifiersStored(seen map[string]write.Observed) bool {
	return !slices.ContainsFunc(sc.disagreeing, func(d disagreeing) bool {
		got, b := seen[exchange.KeyText(d.sent.Key)], sc.batchWith(d.sent)
		if b == nil || !b.Succeeded(d.sent) || b.Operation != rpc.OperationUpsert {
			return false
		}
		return got.Count == 0 || d.bystander == nil && !sc.hasIdentifier(d, got)
	})
}

func (sc *Scenario) otherIdentifier(d disagreeing) string {
	for _, f := range sc.Object.Identifiers()[:2] {
		if f.APIName != d.sent.ID.APIName {
			return f.APIName
		}
	}
	return ""
}

// changedFields are the fields of a record, identifiers aside, that are not as before.
func (sc *Scenario) changedFields(o *write.Object, before, after write.Observed) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(before.Fields)), func(name string) bool {
		f, ok := o.Field(name)
		return !ok || !write.BothWays(f) || OrNull(before.Fields[name]) == OrNull(after.Fields[name])
	})
}
