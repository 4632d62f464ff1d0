package destination

import (
	"fmt"
	"maps"
	"slices"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/lists"
)

// disagreeing is a record whose active identifier names one record, or none, and
// whose other identifier names the bystander; nil: no record.
type disagreeing struct{ sent, bystander *record }

// disagreers is how many records sendsDisagreeing creates for one batch.
const disagreers = 7

// sendsDisagreeing sends, by each identifier and with each operation, a record with the
// other identifier of a later one, of an earlier one, a new record with that of an
// existing one, and in a batch by themselves records with another identifier that no record has.
func (sc *scenario) sendsDisagreeing() error {
	ids, operations := sc.object.identifiers()[:2], lists.Where([]string{rpc.OperationUpsert, rpc.OperationUpdate}, sc.object.accepts)
	var create, send []set
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
			var sent []*record
			for _, pair := range [][2]int{{0, 1}, {3, 2}, {disagreers, 4}} { // the last two have none
				bystander := made[pair[1]]
				r := sc.changed(made[pair[0]], 1).with(other.APIName, bystander.values[other.APIName])
				sc.disagreeing = append(sc.disagreeing, disagreeing{r, bystander})
				sent = append(sent, r)
			}
			var alone []*record
			for _, r := range made[disagreers-2 : disagreers] {
				free, err := sc.key(sc.object, other)
				if err != nil {
					return err
				}
				taken := sc.changed(r, 1).with(other.APIName, free)
				sc.disagreeing = append(sc.disagreeing, disagreeing{sent: taken})
				alone = append(alone, taken)
			}
			create = append(create, set{sc.object.creating(), made[:disagreers]})
			send = append(send, set{op, forOperation(op, sent)}, set{op, forOperation(op, alone)})
		}
	}
	if len(send) == 0 {
		return nil
	}
	for _, sets := range [][]set{create, send} {
		sc.sets = sets
		if err := sc.sendSets(&sending{alone: true}); err != nil {
			return err
		}
	}
	return nil
}

// withBoth makes records that carry two identifiers.
func (sc *scenario) withBoth(n int, id, other rpc.Field) ([]*record, error) {
	made, err := sc.make(n, sc.object.creating(), id, &sending{})
	if err != nil {
		return nil, err
	}
	for i, r := range made {
		if _, ok := r.values[other.APIName]; ok {
			continue
		}
		key, err := sc.key(sc.object, other)
		if err != nil {
			return nil, err
		}
		made[i] = r.with(other.APIName, key)
	}
	return made, nil
}

// onlyActiveChanged looks at the fields that identify nothing: who keeps an identifier
// that two records claim is for the destination to decide, or to refuse.
func (sc *scenario) onlyActiveChanged() error {
	if len(sc.disagreeing) == 0 {
		return nil
	}
	if err := sc.needReadback(); err != nil {
		return err
	}
	var look []*record
	for _, d := range sc.disagreeing {
		if look = append(look, d.sent); d.bystander != nil {
			look = append(look, d.bystander)
		}
	}
	seen, err := sc.observeUntil(look, sc.identifiersStored)
	if err == nil && !sc.identifiersStored(seen) {
		if err = elapse(sc.ctx, lateDelete); err == nil { // a write that is late is for DUR-002
			seen, err = sc.observe(look)
		}
	}
	if err != nil {
		return err
	}
	for _, d := range sc.disagreeing {
		if d.bystander == nil {
			sc.freeIdentifierTaken(d, seen[exchange.KeyText(d.sent.key)])
			continue
		}
		before, got := sc.before[d.bystander.place()], seen[exchange.KeyText(d.bystander.key)]
		if before.count == 0 {
			continue
		}
		op, reply := sc.operationOf(d.sent), sc.replyFor(d.sent)
		what := fmt.Sprintf("%s as it was, which only %s of %s names", foreign.Clip(string(d.bystander.key), 60), sc.otherIdentifier(d), foreign.Clip(string(d.sent.key), 60))
		if got.count == 0 {
			sc.brokenAs("another record gone", op, what, "it is not there under this "+d.bystander.id.APIName, reply)
			continue
		}
		changed := sc.changedFields(d.bystander.object, before, got)
		if len(changed) > 0 {
			sc.brokenAs("another record changed", op, what, fmt.Sprintf("%s is %s", changed[0], foreign.Clip(orNull(got.fields[changed[0]]), 120)), reply)
			continue
		}
		sc.Saw(conformance.SeenStored, 1)
		b, e := sc.batchWith(d.sent), sc.model.get(d.sent)
		if op == rpc.OperationUpsert && b != nil && b.succeeded(d.sent) && seen[exchange.KeyText(d.sent.key)].count == 0 {
			sc.brokenAs(symptomIgnored, op, fmt.Sprintf("the acknowledged record %s in the destination, or refused: another one has its %s", foreign.Clip(string(d.sent.key), 60), sc.otherIdentifier(d)),
				"it is not there", reply)
			continue
		}
		if was := sc.before[d.sent.place()]; was.count > 0 && e.Written && b != nil && b.succeeded(d.sent) && len(sc.changedFields(d.sent.object, was, seen[exchange.KeyText(d.sent.key)])) == 0 {
			sc.brokenAs(symptomOldValue, op, "the acknowledged values in "+foreign.Clip(string(d.sent.key), 60), "it is as it was before", reply)
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
func (sc *scenario) freeIdentifierTaken(d disagreeing, got observed) {
	b, e, name := sc.batchWith(d.sent), sc.model.get(d.sent), sc.otherIdentifier(d)
	if b == nil || !e.Exists {
		return
	}
	free := d.sent.values[name]
	what := fmt.Sprintf("%s with %s %s, which no record has", foreign.Clip(string(d.sent.key), 60), name, foreign.Clip(string(free), 60))
	if b.refused(d.sent) {
		sc.brokenAs("refused free identifier", b.operation, what, b.whyOf(d.sent), b.reply)
		return
	}
	if b.succeeded(d.sent) && e.Written && !sc.hasIdentifier(d, got) {
		symptom := symptomKept
		if was := sc.before[d.sent.place()]; was.count > 0 && len(sc.changedFields(sc.object, was, got)) == 0 {
			symptom = symptomOldValue // nothing of the change was made
		}
		sc.brokenAs(symptom, b.operation, what, "it is "+foreign.Clip(orNull(got.fields[name]), 60), b.reply)
	}
}

// hasIdentifier reports whether a record has the other identifier that it was sent with, as
// far as a read-back shows it.
func (sc *scenario) hasIdentifier(d disagreeing, got observed) bool {
	name := sc.otherIdentifier(d)
	f, _ := sc.object.field(name)
	stored, shown := got.fields[name]
	same, _ := hook.SameValue(f, d.sent.values[name], stored)
	return same || !shown || got.count != 1
}

// identifiersStored reports whether all that was acknowledged is there.
func (sc *scenario) identifiersStored(seen map[string]observed) bool {
	return !slices.ContainsFunc(sc.disagreeing, func(d disagreeing) bool {
		got, b := seen[exchange.KeyText(d.sent.key)], sc.batchWith(d.sent)
		if b == nil || !b.succeeded(d.sent) || b.operation != rpc.OperationUpsert {
			return false
		}
		return got.count == 0 || d.bystander == nil && !sc.hasIdentifier(d, got)
	})
}

func (sc *scenario) otherIdentifier(d disagreeing) string {
	for _, f := range sc.object.identifiers()[:2] {
		if f.APIName != d.sent.id.APIName {
			return f.APIName
		}
	}
	return ""
}

// changedFields are the fields of a record, identifiers aside, that are not as before.
func (sc *scenario) changedFields(o *object, before, after observed) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(before.fields)), func(name string) bool {
		f, ok := o.field(name)
		return !ok || !bothWays(f) || orNull(before.fields[name]) == orNull(after.fields[name])
	})
}
