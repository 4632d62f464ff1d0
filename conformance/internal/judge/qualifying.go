package judge

import (
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
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// sendsQualifying sends records for each purpose of each operation: those that must be there are created first.
func (sc *Scenario) sendsQualifying(n int, which, how string) error {
	m, err := sc.Manner(how)
	if err != nil {
		return err
	}
	m.Alone = true // a batch that is refused as a whole is split, as the service does
	sc.Sets, sc.Purposes = nil, nil
	var prepare, due []write.Set
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
			full, err := sc.fresh(n, creating)
			if err != nil {
				return err
			}
			prepare = append(prepare, write.Set{Operation: creating, Records: full})
			made = write.ForOperation(p.Operation, lists.Of(full, func(r *write.Record) *write.Record {
				return m.Shape(sc.Scenario.Scenario, sc.Changed(r, 1))
			}))
		}
		due = append(due, write.Set{Operation: p.Operation, Records: made})
		sc.Purposes = append(sc.Purposes, p)
	}
	if len(due) == 0 {
		return engine.Inconclusive("", "the object has no operation that creates records, so that none is there to be changed")
	}
	return sc.sendsAfter(prepare, due, &write.Sending{}, m)
}

// sendsAfter sends the records that must exist first, and then the judged ones.
func (sc *Scenario) sendsAfter(prepare, due []write.Set, before, m *write.Sending) error {
	if len(prepare) > 0 {
		sc.Sets = prepare
		if err := sc.SendSets(before); err != nil {
			return err
		}
	}
	sc.Sets = due
	return sc.SendSets(m)
}

// sendsOne sends records with one operation.
func (sc *Scenario) sendsOne(operation string, records []*write.Record, m *write.Sending) error {
	return sc.sendsAfter(nil, []write.Set{{Operation: operation, Records: records}}, nil, m)
}

// refusedAmongOthers adds a finding where the first record that was refused next to others is taken alone.
func (sc *Scenario) refusedAmongOthers(s write.Set) bool {
	for b, r := range write.Each(sc.Latest) {
		if b.Operation != s.Operation || len(b.Records) == 1 || !b.Failed(r) || !slices.Contains(s.Records, r) {
			continue
		}
		if !sc.apart().sends(b.Operation, r) {
			return false
		}
		sc.refusedInBatch(b, r)
		return true
	}
	return false
}

// operationsAccept: an advertised operation takes a record that it is for, and refuses none for its neighbours.
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
		case p.Existing && !slices.ContainsFunc(s.Records, sc.wasCreated):
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
	if err := sc.Held(); err != nil || sc.keysTooWide == "" {
		return err
	}
	return engine.Inconclusive(write.DeciderKeys, "%s", sc.keysTooWide)
}

// wasCreated reports whether a record was acknowledged and, where a read-back can show it, exists.
func (sc *Scenario) wasCreated(r *write.Record) bool {
	before, looked := sc.Before[r.Place()]
	return sc.Model.Get(r).Created && (!looked || before.Count > 0)
}

// wideKeys reports whether integers beyond 32 bits that the author did not choose may be why a set is refused.
func (sc *Scenario) wideKeys(s write.Set, refusal string) bool {
	if sc.Opts.KeyFrom != 0 || sc.Opts.KeyTo != 0 {
		return false
	}
	refusal = strings.ToLower(refusal)
	said := func(word string) bool { return word != "" && strings.Contains(refusal, word) }
	r := s.Records[0]
	return slices.ContainsFunc(r.Object.Identifiers(), func(id rpc.Field) bool {
		raw := r.Values[id.APIName]
		return id.Type == rpc.TypeInteger && len(raw) > len("2147483647") && (id.APIName == r.ID.APIName ||
			slices.ContainsFunc([]string{strings.ToLower(id.APIName), strings.ToLower(id.Label), string(raw), "range", "overflow", "too large", "too big", "32"}, said))
	})
}

// leastPlanWorks: a record that carries only what every plan must map is taken where a fuller one
// is. An update with nothing to change may be refused.
func (sc *Scenario) leastPlanWorks() error {
	sc.LeastPlan = true
	for i, s := range sc.Sets {
		p := sc.Purposes[i]
		yes, no, refusal, where := sc.Accepted(s)
		switch {
		case yes+no == 0:
			if err := sc.leastUnanswered(p, s); err != nil {
				return err
			}
		case yes > 0:
		case p.Existing:
			sc.leastChangeRefused(p, s, where, refusal, no)
		default:
			if r := sc.created(p.Operation); r != nil { // else it is not the plan: OPS-007 judges that
				sc.BrokenAs("refused plan", s.Operation, p.String()+" accepted also where only the identifier and what is required are mapped",
					fmt.Sprintf("%s refused (%s), and a record with more fields was accepted", allRecords(no), foreign.Clip(refusal, 300)), where, sc.ReplyFor(r))
			}
		}
	}
	return sc.Held()
}

const leastMapped = ", also where nothing but the identifier and what is required is mapped"

// leastChangeRefused judges the refusal of n records that are there.
func (sc *Scenario) leastChangeRefused(p write.Purpose, s write.Set, where *exchange.Reply, refusal string, n int) {
	cause, known := causes.Of(causes.Message{Text: refusal, Status: where.Status, Method: where.Method})
	r := sc.changedFully(p)
	switch {
	case where.IsError() && r != nil:
		sc.BrokenAs(where.Symptom(), s.Operation, p.String()+" answered record by record"+leastMapped, where.Short(), where)
	case known && cause.Name == causes.EmptyPart:
		sc.BrokenAs("empty statement", s.Operation, p.String()+" accepted, or refused with a reason"+leastMapped, allRecords(n)+" refused: "+foreign.Clip(refusal, 200), where)
		sc.Explain(func(s string) bool { return s == "empty statement" }, cause.Text, cause.Fix, false)
	case sc.ChangesNothing(s):
		sc.Note("%s that maps nothing to change is refused: %s", p, foreign.Clip(refusal, 200))
	case r != nil:
		// With the values that the record has, neither a new value nor one that it does not go with is the reason.
		if b := sc.tries(p.Operation, write.OnlyRequired(nil, r)); b != nil && b.Refused(b.Records[0]) {
			sc.brokenBy(write.Cause{
				Text: "a change demands fields that its plan does not map: the record of the batch is checked as if it were a new one, and not together with what is stored.",
				Fix:  "write the mapped fields alone, and check them together with what is stored.",
			}, "refused plan", s.Operation, p.String()+" accepted"+leastMapped, fmt.Sprintf("%s refused (%s), and one with more fields is accepted", allRecords(n), foreign.Clip(refusal, 300)), where, b.Reply)
		}
	}
}

// changedFully is a record that is there and took a change of all ordinary fields; nil where that is refused as well.
func (sc *Scenario) changedFully(p write.Purpose) *write.Record {
	r := sc.created(sc.Object.Creating())
	if r == nil || !sc.sends(p.Operation, sc.Changed(r, 1)) {
		return nil
	}
	return sc.Changed(r, 1)
}

// leastUnanswered sends a plan without results or an error again, and a fuller one, and judges it.
func (sc *Scenario) leastUnanswered(p write.Purpose, s write.Set) error {
	again, err := sc.WriteOne(p.Operation, s.Records[:1], write.Plan{})
	if err != nil || again.Answered() || again.Reply.IsError() || !again.Reply.OK() {
		return err
	}
	b, err := sc.fuller(p.Operation)
	if err == nil && b.Answered() {
		sc.BrokenAs(again.Reply.Symptom(), s.Operation, p.String()+" answered record by record"+leastMapped,
			again.Reply.Short()+", each time; a record with more fields is answered", again.Reply, b.Reply)
	}
	return err
}

// fuller sends an ordinary record.
func (sc *Scenario) fuller(operation string) (*write.Batch, error) {
	made, err := sc.fresh(1, operation)
	if err != nil {
		return nil, err
	}
	return sc.WriteOne(operation, made, write.Plan{})
}

// acceptsControl sends one good record: only where it is accepted does a refusal show anything.
func (sc *Scenario) acceptsControl() error {
	op := sc.Object.Creating()
	if op == "" {
		return engine.Inconclusive("", "the object has no operation that creates records, so that no good record shows what a refusal means")
	}
	b, err := sc.fuller(op)
	if err != nil || b.Succeeded(b.Records[0]) {
		return err
	}
	return engine.Inconclusive("fixtures", "a good record is refused as well (OPS-007), so that a refusal shows nothing: %s", foreign.Clip(b.WhyOf(b.Records[0]), 200))
}

// resembling are keys, as raw JSON, that an inexact match takes for that of a record. Integers have a longer one and the
// opposite only, and none at all where the author bounds them.
func (sc *Scenario) resembling(r *write.Record) [][]byte {
	if r.ID.Type == rpc.TypeInteger {
		if sc.Opts.KeyFrom != 0 || sc.Opts.KeyTo != 0 {
			return nil
		}
		return [][]byte{append(slices.Clone(r.Key), '0'), append([]byte("-"), r.Key...)}
	}
	local, domain, address := strings.Cut(exchange.KeyText(r.Key), "@")
	return lists.Of([]string{
		local + "0", local + "-x", "x-" + local, local[:len(local)-1],
		write.SwapCase(local), " " + local, local + " ", strings.Replace(local, "-", "_", 1), local + "%",
	}, func(other string) []byte {
		if address {
			other += "@" + domain
		}
		return values.Quote(other)
	})
}

// sendsLookAlikes creates two records and others under similar keys: what a batch does must not reach those.
func (sc *Scenario) sendsLookAlikes(which string) error {
	ops, err := sc.operations(which)
	if err != nil {
		return err
	}
	records, err := sc.fresh(2, ops[0])
	if err != nil {
		return err
	}
	others := sc.resembling(records[0])
	// As a pattern, the second key matches that of a record which is created later.
	if second := records[1]; second.ID.Type == rpc.TypeString && strings.Contains(exchange.KeyText(second.Key), "-") {
		others = append([][]byte{second.Key}, others...)
		records[1] = second.With(second.ID.APIName, values.Quote(strings.Replace(exchange.KeyText(second.Key), "-", "_", 1)))
	}
	for _, other := range others {
		r, err := sc.fresh(1, ops[0])
		if err != nil {
			return err
		}
		records = append(records, r[0].With(r[0].ID.APIName, other))
	}
	for _, r := range records {
		r.Near = true
	}
	return sc.sendsOne(ops[0], records, &write.Sending{Alone: true})
}

// allRecords begins a sentence on n records, which are all that there were.
func allRecords(n int) string {
	if n == 1 {
		return "the only record was"
	}
	return fmt.Sprintf("all %s were", quantity.Count(n, "record"))
}
