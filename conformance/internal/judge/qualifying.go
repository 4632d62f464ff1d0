package judge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/causes"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// sendsQualifying sends, for each purpose of each operation, records that
// qualify for it: those that must be there are created first.
func (sc *Scenario) sendsQualifying(n int, which, how string) error {
	m, err := sc.Manner(how)
	if err != nil {
		return err
	}
	m.Alone = true // a batch that is refused as a whole is split, as the service does
	sc.Sets, sc.Purposes = nil, nil
	var prepare []write.Set
	for _, p := range sc.Object.Purposes(which != "each operation") {
		made, err := sc.Make(n, p.Operation, rpc.Field{}, m)
		if err != nil {
			return err
		}
		if p.Existing {
			creating := sc.Object.Creating()
			if creating == "" {
				sc.Note("%s is not judged: the object has no operation that creates records", p)
				continue
			}
			full, err := sc.Make(n, creating, rpc.Field{}, &write.Sending{})
			if err != nil {
				return err
			}
			prepare = append(prepare, write.Set{Operation: creating, Records: full})
			made = nil
			for _, r := range full {
				made = append(made, m.Shape(sc.Scenario.Scenario, sc.Changed(r, 1)))
			}
			made = write.ForOperation(p.Operation, made)
		}
		sc.Sets = append(sc.Sets, write.Set{Operation: p.Operation, Records: made})
		sc.Purposes = append(sc.Purposes, p)
	}
	if len(sc.Sets) == 0 {
		return engine.Inconclusive("", "the object has no operation that creates records, so that none is there to be changed")
	}
	due := sc.Sets
	if len(prepare) > 0 {
		sc.Sets = prepare
		if err := sc.SendSets(&write.Sending{}); err != nil {
			return err
		}
	}
	sc.Sets = due
	return sc.SendSets(m)
}

// refusedAmongOthers adds a finding where the first record of a set that was refused next to
// others is taken when it is sent again, alone.
func (sc *Scenario) refusedAmongOthers(s write.Set) bool {
	for _, b := range sc.Latest {
		for _, r := range b.Records {
			if b.Operation != s.Operation || len(b.Records) == 1 || !b.Failed(r) || !slices.Contains(s.Records, r) {
				continue
			}
			alone, err := sc.apart().WriteOne(b.Operation, []*write.Record{r}, write.Plan{})
			if err != nil || !alone.Succeeded(r) {
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
func (sc *Scenario) operationsAccept() error {
	for i, s := range sc.Sets {
		p := sc.Purposes[i]
		yes, no, refusal, where := sc.Accepted(s)
		switch {
		case yes > 0 || no == 0:
			sc.Proof("%s: %d accepted", p, yes)
			if no > 0 && !sc.refusedAmongOthers(s) {
				sc.Note("%s: %d of %d were refused: %s", p, no, yes+no, foreign.Clip(refusal, 200))
			}
		case p.Existing && !sc.wasCreated(s):
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
			sc.BrokenAs(symptom, s.Operation, p.String()+" accepted, with values of the declared types",
				fmt.Sprintf("%s refused: %s", allRecords(no), foreign.Clip(refusal, 300)), where)
		}
	}
	if err := sc.Held(); err != nil {
		return err
	}
	if sc.keysTooWide != "" {
		return engine.Inconclusive(write.DeciderKeys, "%s", sc.keysTooWide)
	}
	return nil
}

// refusedForItself reports whether an ordinary change of such a record has an error
// too: then it is not the plan.
func (sc *Scenario) refusedForItself(p write.Purpose) bool {
	fuller, err := sc.Make(1, sc.Object.Creating(), rpc.Field{}, &write.Sending{})
	if err != nil {
		return true
	}
	if b, err := sc.WriteOne(sc.Object.Creating(), fuller, write.Plan{}); err != nil || !b.Succeeded(fuller[0]) {
		return true
	}
	change := write.ForOperation(p.Operation, []*write.Record{sc.Changed(fuller[0], 1)})
	b, err := sc.WriteOne(p.Operation, change, write.Plan{})
	return err != nil || b.Reply.IsError()
}

// wasCreated reports whether a record of the set was acknowledged when it was
// created, and is there where a read-back tells.
func (sc *Scenario) wasCreated(s write.Set) bool {
	return slices.ContainsFunc(s.Records, func(r *write.Record) bool {
		before, looked := sc.Before[r.Place()]
		return sc.Model.Get(r).Created && (!looked || before.Count > 0)
	})
}

// wideKeys reports whether the set has integer identifiers that a column of 32 bits
// cannot hold, which the author did not choose: the active one, or another that the
// refusal speaks of.
func (sc *Scenario) wideKeys(s write.Set, refusal string) bool {
	if sc.Opts.KeyFrom != 0 || sc.Opts.KeyTo != 0 {
		return false
	}
	r := s.Records[0]
	for _, id := range r.Object.Identifiers() {
		raw, sent := r.Values[id.APIName]
		if !sent || id.Type != rpc.TypeInteger || len(raw) <= len("2147483647") {
			continue
		}
		if id.APIName == r.ID.APIName || speaksOfRange(refusal, id, raw) {
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
func (sc *Scenario) leastPlanWorks() error {
	sc.LeastPlan = true
	for i, s := range sc.Sets {
		p := sc.Purposes[i]
		yes, no, refusal, where := sc.Accepted(s)
		if yes+no == 0 {
			if err := sc.leastUnanswered(p, s); err != nil {
				return err
			}
		}
		if yes > 0 || no == 0 {
			continue
		}
		if p.Existing && where.IsError() && !sc.refusedForItself(p) {
			sc.BrokenAs(where.Symptom(), s.Operation, p.String()+" answered record by record, also where nothing but the identifier and what is required is mapped",
				where.Short(), where)
			continue
		}
		if p.Existing {
			cause, known := causes.Of(causes.Message{Text: refusal, Status: where.Status, Method: where.Method})
			switch {
			case known && cause.Name == causes.EmptyPart:
				sc.BrokenAs("empty statement", s.Operation, p.String()+" accepted, or refused with a reason, also where nothing but the identifier and what is required is mapped", allRecords(no)+" refused: "+foreign.Clip(refusal, 200), where)
				sc.ExplainAs(func(s string) bool { return s == "empty statement" }, cause.Text, cause.Fix, false)
			case sc.ChangesNothing(s):
				sc.Note("%s that maps nothing to change is refused: %s", p, foreign.Clip(refusal, 200))
			}
			continue
		}
		fuller, err := sc.Make(1, p.Operation, rpc.Field{}, &write.Sending{})
		if err != nil {
			return err
		}
		b, err := sc.WriteOne(p.Operation, fuller, write.Plan{})
		if err != nil {
			return err
		}
		if !b.Succeeded(fuller[0]) {
			continue // it is not the plan: OPS-007 judges that
		}
		sc.BrokenAs("refused plan", s.Operation, p.String()+" accepted also where only the identifier and what is required are mapped",
			fmt.Sprintf("%s refused (%s), and a record with more fields was accepted", allRecords(no), foreign.Clip(refusal, 300)), where, b.Reply)
	}
	return sc.Held()
}

// leastUnanswered judges a plan that got neither results nor an error, such as the page
// of a platform whose process has ended: it is sent once more, and beside it a fuller one.
func (sc *Scenario) leastUnanswered(p write.Purpose, s write.Set) error {
	again, err := sc.WriteOne(p.Operation, s.Records[:1], write.Plan{})
	if err != nil || again.Answered() || again.Reply.IsError() || !again.Reply.OK() {
		return err
	}
	fuller, err := sc.Make(1, p.Operation, rpc.Field{}, &write.Sending{})
	if err != nil {
		return err
	}
	b, err := sc.WriteOne(p.Operation, fuller, write.Plan{})
	if err == nil && b.Answered() {
		sc.BrokenAs(again.Reply.Symptom(), s.Operation, p.String()+" answered record by record, also where nothing but the identifier and what is required is mapped",
			again.Reply.Short()+", each time; a record with more fields is answered", again.Reply, b.Reply)
	}
	return err
}

// acceptsControl sends one good record: only where it is accepted does the refusal of
// another show anything.
func (sc *Scenario) acceptsControl() error {
	op := sc.Object.Creating()
	if op == "" {
		return engine.Inconclusive("", "the object has no operation that creates records, so that no good record shows what a refusal means")
	}
	made, err := sc.Make(1, op, rpc.Field{}, &write.Sending{})
	if err != nil {
		return err
	}
	b, err := sc.WriteOne(op, made, write.Plan{})
	if err != nil {
		return err
	}
	if !b.Succeeded(made[0]) {
		return engine.Inconclusive("fixtures", "a good record is refused as well (OPS-007), so that a refusal shows nothing: %s", foreign.Clip(b.WhyOf(made[0]), 200))
	}
	return nil
}

// lookAlikes are keys that an inexact match takes for the given one: longer and
// shorter ones, other case, spaces around, and text that a pattern matches.
func lookAlikes(key string) []string {
	return []string{
		key + "0", key + "-x", "x-" + key, key[:len(key)-1],
		write.SwapCase(key), " " + key, key + " ", strings.Replace(key, "-", "_", 1), key + "%",
	}
}

// resembling are the keys beside that of a record, as raw JSON. Integers have no
// look-alikes in text, only a longer one and the opposite, and none at all where
// the author bounds them.
func (sc *Scenario) resembling(r *write.Record) [][]byte {
	if r.ID.Type == rpc.TypeInteger {
		if sc.Opts.KeyFrom != 0 || sc.Opts.KeyTo != 0 {
			return nil
		}
		return [][]byte{append(slices.Clone(r.Key), '0'), append([]byte("-"), r.Key...)}
	}
	text := exchange.KeyText(r.Key)
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
func (sc *Scenario) sendsLookAlikes(which string) error {
	ops, err := sc.operations(which)
	if err != nil {
		return err
	}
	records, err := sc.Make(2, ops[0], rpc.Field{}, &write.Sending{})
	if err != nil {
		return err
	}
	// As a pattern, the second key matches that of a record which is created later.
	if plain := exchange.KeyText(records[1].Key); records[1].ID.Type == rpc.TypeString && strings.Contains(plain, "-") {
		bystander, err := sc.Make(1, ops[0], rpc.Field{}, &write.Sending{})
		if err != nil {
			return err
		}
		records = append(records, bystander[0].With(bystander[0].ID.APIName, records[1].Key))
		records[1] = records[1].With(records[1].ID.APIName, values.Quote(strings.Replace(plain, "-", "_", 1)))
	}
	for _, other := range sc.resembling(records[0]) {
		r, err := sc.Make(1, ops[0], rpc.Field{}, &write.Sending{})
		if err != nil {
			return err
		}
		records = append(records, r[0].With(r[0].ID.APIName, other))
	}
	for _, r := range records {
		r.Near = true
	}
	sc.Sets = []write.Set{{Operation: ops[0], Records: records}}
	return sc.SendSets(&write.Sending{Alone: true})
}

// allRecords begins a sentence on n records, which are all that there were.
func allRecords(n int) string {
	if n == 1 {
		return "the only record was"
	}
	return fmt.Sprintf("all %s were", quantity.Count(n, "record"))
}
