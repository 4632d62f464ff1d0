package destination

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/causes"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// purpose is one thing that an operation is for: new records of insert and
// upsert, records that are there for upsert, update and delete (spec 4.2).
type purpose struct {
	operation string
	existing  bool
}

func (p purpose) String() string {
	if p.existing {
		return p.operation + " of records that are there"
	}
	return p.operation + " of new records"
}

// purposes of the operations that the object advertises.
func (o *object) purposes(deletes bool) []purpose {
	return lists.Where([]purpose{
		{rpc.OperationInsert, false}, {rpc.OperationUpsert, false}, {rpc.OperationUpsert, true},
		{rpc.OperationUpdate, true}, {rpc.OperationDelete, true},
	}, func(p purpose) bool {
		return o.accepts(p.operation) && (deletes || p.operation != rpc.OperationDelete)
	})
}

// sendsQualifying sends, for each purpose of each operation, records that
// qualify for it: those that must be there are created first.
func (sc *scenario) sendsQualifying(n int, which, how string) error {
	m, err := sc.manner(how)
	if err != nil {
		return err
	}
	m.alone = true // a batch that is refused as a whole is split, as the service does
	sc.sets, sc.purposes = nil, nil
	var prepare []set
	for _, p := range sc.object.purposes(which != "each operation") {
		made, err := sc.make(n, p.operation, rpc.Field{}, m)
		if err != nil {
			return err
		}
		if p.existing {
			creating := sc.object.creating()
			if creating == "" {
				sc.Note("%s is not judged: the object has no operation that creates records", p)
				continue
			}
			full, err := sc.make(n, creating, rpc.Field{}, &sending{})
			if err != nil {
				return err
			}
			prepare = append(prepare, set{creating, full})
			made = nil
			for _, r := range full {
				made = append(made, m.shape(sc, sc.changed(r, 1)))
			}
			made = forOperation(p.operation, made)
		}
		sc.sets = append(sc.sets, set{p.operation, made})
		sc.purposes = append(sc.purposes, p)
	}
	if len(sc.sets) == 0 {
		return inconclusive("", "the object has no operation that creates records, so that none is there to be changed")
	}
	due := sc.sets
	if len(prepare) > 0 {
		sc.sets = prepare
		if err := sc.sendSets(&sending{}); err != nil {
			return err
		}
	}
	sc.sets = due
	return sc.sendSets(m)
}

// accepted counts what became of the records of one set of the latest When.
func (sc *scenario) accepted(s set) (yes, no int, refusal string, where *reply) {
	for _, b := range sc.latest {
		if b.operation != s.operation {
			continue
		}
		for _, r := range b.records {
			if !slices.ContainsFunc(s.records, func(o *record) bool { return o.place() == r.place() }) {
				continue
			}
			switch {
			case b.succeeded(r):
				yes++
			case b.refused(r):
				no++
				if refusal == "" {
					refusal, where = b.refusalOf(r), b.reply
				}
			}
		}
	}
	return yes, no, refusal, where
}

// refusedAmongOthers adds a finding where the first record of a set that was refused next to
// others is taken when it is sent again, alone.
func (sc *scenario) refusedAmongOthers(s set) bool {
	for _, b := range sc.latest {
		for _, r := range b.records {
			if b.operation != s.operation || len(b.records) == 1 || !b.failed(r) || !slices.Contains(s.records, r) {
				continue
			}
			alone, err := sc.apart().writeOne(b.operation, []*record{r}, plan{})
			if err != nil || !alone.succeeded(r) {
				return false
			}
			sc.refusedInBatch(b, r)
			return true
		}
	}
	return false
}

// operationsAccept: an operation that is advertised takes at least one of the
// records that it is for, and no record is refused for the others next to it.
func (sc *scenario) operationsAccept() error {
	for i, s := range sc.sets {
		p := sc.purposes[i]
		yes, no, refusal, where := sc.accepted(s)
		switch {
		case yes > 0 || no == 0:
			sc.Proof("%s: %d accepted", p, yes)
			if no > 0 && !sc.refusedAmongOthers(s) {
				sc.Note("%s: %d of %d were refused: %s", p, no, yes+no, foreign.Clip(refusal, 200))
			}
		case p.existing && !sc.wasCreated(s):
			sc.Note("%s is not judged: no record was created for it", p)
		case sc.wideKeys(s, refusal):
			if sc.keysTooWide == "" {
				sc.keysTooWide = fmt.Sprintf("%s: %s refused, perhaps for their identifiers, which are integers beyond 32 bits: %s", p, allRecords(no), foreign.Clip(refusal, 200))
			}
		default:
			symptom := "refused " + p.String()
			if where.IsError() {
				symptom = where.Symptom()
			}
			sc.brokenAs(symptom, s.operation, p.String()+" accepted, with values of the declared types",
				fmt.Sprintf("%s refused: %s", allRecords(no), foreign.Clip(refusal, 300)), where)
		}
	}
	if err := sc.Held(); err != nil {
		return err
	}
	if sc.keysTooWide != "" {
		return inconclusive(deciderKeys, "%s", sc.keysTooWide)
	}
	return nil
}

// unseenPurpose is a purpose of which not one record was accepted, though records
// were sent for it: what the others show is no evidence of it.
func (sc *scenario) unseenPurpose() (purpose, bool) {
	if len(sc.sets) != len(sc.purposes) {
		return purpose{}, false // the scenario ended before they were sent
	}
	for i, p := range sc.purposes {
		if yes, no, _, _ := sc.accepted(sc.sets[i]); yes == 0 && no > 0 && (!sc.leastPlan || !p.existing || !sc.changesNothing(sc.sets[i])) {
			return p, true
		}
	}
	return purpose{}, false
}

// refusedForItself reports whether an ordinary change of such a record has an error
// too: then it is not the plan.
func (sc *scenario) refusedForItself(p purpose) bool {
	fuller, err := sc.make(1, sc.object.creating(), rpc.Field{}, &sending{})
	if err != nil {
		return true
	}
	if b, err := sc.writeOne(sc.object.creating(), fuller, plan{}); err != nil || !b.succeeded(fuller[0]) {
		return true
	}
	change := forOperation(p.operation, []*record{sc.changed(fuller[0], 1)})
	b, err := sc.writeOne(p.operation, change, plan{})
	return err != nil || b.reply.IsError()
}

// changesNothing reports whether the records carry nothing but what identifies them.
func (sc *scenario) changesNothing(s set) bool {
	return !slices.ContainsFunc(s.records, func(r *record) bool { return len(sc.fieldsThatChange(r)) > 0 })
}

// wasCreated reports whether a record of the set was acknowledged when it was
// created, and is there where a read-back tells.
func (sc *scenario) wasCreated(s set) bool {
	return slices.ContainsFunc(s.records, func(r *record) bool {
		before, looked := sc.before[r.place()]
		return sc.model.get(r).Created && (!looked || before.count > 0)
	})
}

// deciderKeys decides what was refused for the keys that the judge has chosen.
const deciderKeys = "--key-range"

// wideKeys reports whether the set has integer identifiers that a column of 32 bits
// cannot hold, which the author did not choose: the active one, or another that the
// refusal speaks of.
func (sc *scenario) wideKeys(s set, refusal string) bool {
	if sc.opts.KeyFrom != 0 || sc.opts.KeyTo != 0 {
		return false
	}
	r := s.records[0]
	for _, id := range r.object.identifiers() {
		raw, sent := r.values[id.APIName]
		if !sent || id.Type != rpc.TypeInteger || len(raw) <= len("2147483647") {
			continue
		}
		if id.APIName == r.id.APIName || speaksOfRange(refusal, id, raw) {
			return true
		}
	}
	return false
}

func speaksOfRange(refusal string, f rpc.Field, raw json.RawMessage) bool {
	refusal = strings.ToLower(refusal)
	return slices.ContainsFunc([]string{strings.ToLower(f.APIName), strings.ToLower(f.Label), string(raw), "range", "overflow", "too large", "too big", "32"},
		func(word string) bool { return word != "" && strings.Contains(refusal, word) })
}

// leastPlanWorks: a record that carries only what every plan must map is taken
// where a fuller one is. An update without anything to change may be refused.
func (sc *scenario) leastPlanWorks() error {
	sc.leastPlan = true
	for i, s := range sc.sets {
		p := sc.purposes[i]
		yes, no, refusal, where := sc.accepted(s)
		if yes+no == 0 {
			if err := sc.leastUnanswered(p, s); err != nil {
				return err
			}
		}
		if yes > 0 || no == 0 {
			continue
		}
		if p.existing && where.IsError() && !sc.refusedForItself(p) {
			sc.brokenAs(where.Symptom(), s.operation, p.String()+" answered record by record, also where nothing but the identifier and what is required is mapped",
				where.Short(), where)
			continue
		}
		if p.existing {
			cause, known := causes.Of(causes.Message{Text: refusal, Status: where.Status, Method: where.Method})
			switch {
			case known && cause.Name == causes.EmptyPart:
				sc.brokenAs("empty statement", s.operation, p.String()+" accepted, or refused with a reason, also where nothing but the identifier and what is required is mapped", allRecords(no)+" refused: "+foreign.Clip(refusal, 200), where)
				sc.ExplainAs(func(s string) bool { return s == "empty statement" }, cause.Text, cause.Fix, false)
			case sc.changesNothing(s):
				sc.Note("%s that maps nothing to change is refused: %s", p, foreign.Clip(refusal, 200))
			}
			continue
		}
		fuller, err := sc.make(1, p.operation, rpc.Field{}, &sending{})
		if err != nil {
			return err
		}
		b, err := sc.writeOne(p.operation, fuller, plan{})
		if err != nil {
			return err
		}
		if !b.succeeded(fuller[0]) {
			continue // it is not the plan: OPS-007 judges that
		}
		sc.brokenAs("refused plan", s.operation, p.String()+" accepted also where only the identifier and what is required are mapped",
			fmt.Sprintf("%s refused (%s), and a record with more fields was accepted", allRecords(no), foreign.Clip(refusal, 300)), where, b.reply)
	}
	return sc.Held()
}

// leastUnanswered judges a plan that got neither results nor an error, such as the page
// of a platform whose process has ended: it is sent once more, and beside it a fuller one.
func (sc *scenario) leastUnanswered(p purpose, s set) error {
	again, err := sc.writeOne(p.operation, s.records[:1], plan{})
	if err != nil || again.answered() || again.reply.IsError() || !again.reply.OK() {
		return err
	}
	fuller, err := sc.make(1, p.operation, rpc.Field{}, &sending{})
	if err != nil {
		return err
	}
	b, err := sc.writeOne(p.operation, fuller, plan{})
	if err == nil && b.answered() {
		sc.brokenAs(again.reply.Symptom(), s.operation, p.String()+" answered record by record, also where nothing but the identifier and what is required is mapped",
			again.reply.Short()+", each time; a record with more fields is answered", again.reply, b.reply)
	}
	return err
}

// acceptsControl sends one good record: only where it is accepted does the refusal of
// another show anything.
func (sc *scenario) acceptsControl() error {
	op := sc.object.creating()
	if op == "" {
		return inconclusive("", "the object has no operation that creates records, so that no good record shows what a refusal means")
	}
	made, err := sc.make(1, op, rpc.Field{}, &sending{})
	if err != nil {
		return err
	}
	b, err := sc.writeOne(op, made, plan{})
	if err != nil {
		return err
	}
	if !b.succeeded(made[0]) {
		return inconclusive("fixtures", "a good record is refused as well (OPS-007), so that a refusal shows nothing: %s", foreign.Clip(b.whyOf(made[0]), 200))
	}
	return nil
}

// lookAlikes are keys that an inexact match takes for the given one: longer and
// shorter ones, other case, spaces around, and text that a pattern matches.
func lookAlikes(key string) []string {
	return []string{
		key + "0", key + "-x", "x-" + key, key[:len(key)-1],
		swapCase(key), " " + key, key + " ", strings.Replace(key, "-", "_", 1), key + "%",
	}
}

// resembling are the keys beside that of a record, as raw JSON. Integers have no
// look-alikes in text, only a longer one and the opposite, and none at all where
// the author bounds them.
func (sc *scenario) resembling(r *record) [][]byte {
	if r.id.Type == rpc.TypeInteger {
		if sc.opts.KeyFrom != 0 || sc.opts.KeyTo != 0 {
			return nil
		}
		return [][]byte{append(slices.Clone(r.key), '0'), append([]byte("-"), r.key...)}
	}
	text := exchange.KeyText(r.key)
	local, domain, address := strings.Cut(text, "@")
	var out [][]byte
	for _, other := range lookAlikes(local) {
		if address {
			other += "@" + domain
		}
		out = append(out, values.Quote(other))
	}
	return out
}

// sendsLookAlikes creates two records and, under keys that resemble the first,
// further ones: what a batch does to the two must not reach those.
func (sc *scenario) sendsLookAlikes(which string) error {
	ops, err := sc.operations(which)
	if err != nil {
		return err
	}
	records, err := sc.make(2, ops[0], rpc.Field{}, &sending{})
	if err != nil {
		return err
	}
	// As a pattern, the second key matches that of a record which is created later.
	if plain := exchange.KeyText(records[1].key); records[1].id.Type == rpc.TypeString && strings.Contains(plain, "-") {
		bystander, err := sc.make(1, ops[0], rpc.Field{}, &sending{})
		if err != nil {
			return err
		}
		records = append(records, bystander[0].with(bystander[0].id.APIName, records[1].key))
		records[1] = records[1].with(records[1].id.APIName, values.Quote(strings.Replace(plain, "-", "_", 1)))
	}
	for _, other := range sc.resembling(records[0]) {
		r, err := sc.make(1, ops[0], rpc.Field{}, &sending{})
		if err != nil {
			return err
		}
		records = append(records, r[0].with(r[0].id.APIName, other))
	}
	for _, r := range records {
		r.near = true
	}
	sc.sets = []set{{ops[0], records}}
	return sc.sendSets(&sending{alone: true})
}

// allRecords begins a sentence on n records, which are all that there were.
func allRecords(n int) string {
	if n == 1 {
		return "the only record was"
	}
	return fmt.Sprintf("all %s were", quantity.Count(n, "record"))
}
