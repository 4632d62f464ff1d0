package destination

import (
	"fmt"
	"maps"
	"slices"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
)

// disagreeing is a record whose active identifier names one record, or none, and
// whose other identifier names the bystander; nil: no record.
type disagreeing struct{ sent, bystander *record }

// disagreers is how many records sendsDisagreeing creates for one batch.
const disagreers = 6

// sendsDisagreeing sends, by each identifier and with each operation, a record with the
// other identifier of a later one, of an earlier one, a new record with that of an
// existing one, and in a batch by itself a record with another identifier that no record has.
func (sc *scenario) sendsDisagreeing() error {
	ids, operations := sc.object.identifiers()[:2], lists.Where([]string{rpc.OperationUpsert, rpc.OperationUpdate}, sc.object.accepts)
	var create, send []set
	for i, id := range ids {
		other := ids[1-i]
		if !other.Createable || !other.Updateable {
			sc.note("%s may not be changed, so that no update by %s carries it", other.APIName, id.APIName)
			continue
		}
		for _, op := range operations {
			made, err := sc.withBoth(disagreers+1, id, other)
			if err != nil {
				return err
			}
			var sent []*record
			for _, pair := range [][2]int{{0, 1}, {3, 2}, {disagreers, 4}} { // the one of index 5 has none
				bystander := made[pair[1]]
				r := sc.changed(made[pair[0]], 1).with(other.APIName, bystander.values[other.APIName])
				sc.disagreeing = append(sc.disagreeing, disagreeing{r, bystander})
				sent = append(sent, r)
			}
			free, err := sc.key(sc.object, other)
			if err != nil {
				return err
			}
			alone := sc.changed(made[5], 1).with(other.APIName, free)
			sc.disagreeing = append(sc.disagreeing, disagreeing{sent: alone})
			create = append(create, set{sc.object.creating(), made[:disagreers]})
			send = append(send, set{op, forOperation(op, sent)}, set{op, forOperation(op, []*record{alone})})
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
		if d.bystander == nil {
			sc.freeIdentifierTaken(d)
			continue
		}
		look = append(look, d.sent, d.bystander)
	}
	seen, err := sc.observe(look)
	if err != nil {
		return err
	}
	for _, d := range sc.disagreeing {
		if d.bystander == nil {
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
		if was := sc.before[d.sent.place()]; was.count > 0 && e.Written && b != nil && b.succeeded(d.sent) && len(sc.changedFields(d.sent.object, was, seen[exchange.KeyText(d.sent.key)])) == 0 {
			sc.brokenAs(symptomOldValue, op, "the acknowledged values in "+foreign.Clip(string(d.sent.key), 60), "it is as it was before", reply)
		}
	}
	return sc.held()
}

// freeIdentifierTaken: a record that is there may get another identifier that no record
// has, in a field that may be changed.
func (sc *scenario) freeIdentifierTaken(d disagreeing) {
	b, e := sc.batchWith(d.sent), sc.model.get(d.sent)
	if b != nil && b.refused(d.sent) && e.Exists {
		sc.brokenAs("refused free identifier", b.operation,
			fmt.Sprintf("%s taken with %s %s, which no record has", foreign.Clip(string(d.sent.key), 60), sc.otherIdentifier(d), foreign.Clip(string(d.sent.values[sc.otherIdentifier(d)]), 60)),
			b.why(d.sent), b.reply)
	}
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
