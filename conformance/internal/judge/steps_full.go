package judge

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// fullSteps send batches of the declared size. Each is large: what a run can afford is
// sent in the order of what it shows, and what it leaves out is noted.
func fullSteps() []definition {
	return []definition{
		step(`^the service sends (a full batch of new records with any operation, unless one was sent|full batches of new, repeated and changed records with every operation of a mirror)$`, func(sc *Scenario) any {
			return func(what string) error {
				if strings.HasPrefix(what, "a ") {
					return sc.sendsFull()
				}
				return sc.sendsFullBatches()
			}
		}),
	}
}

// fullBatch is one batch of the declared size.
type fullBatch struct {
	what string
	make func() (operation string, records []*write.Record, err error)
}

// fullSize is the declared size of a batch, where the budget allows one.
func (sc *Scenario) fullSize() (int, error) {
	if sc.Catalog.Speed == nil {
		return 0, engine.Inconclusive("", "no speed is declared")
	}
	n := min(sc.Catalog.Speed.MaximumBatchSize, math.MaxInt32)
	if n > int64(sc.Opts.MaxRecords) {
		return 0, engine.NotRun("--max-records", "a full batch has %s, more than --max-records %d", quantity.Count(n, "record"), sc.Opts.MaxRecords)
	}
	return int(n), nil
}

// sendsFull sends one full batch, or takes those that the run has sent.
func (sc *Scenario) sendsFull() error {
	n, err := sc.fullSize()
	if err != nil {
		return err
	}
	if sent := sc.j.Full; len(sent) > 0 && !sc.Confirming() {
		sc.Latest = sent
		for _, b := range sent {
			sc.Batches, sc.Replies = append(sc.Batches, b), append(sc.Replies, b.Reply)
		}
		return nil
	}
	return sc.sendsNew(n, "any operation", "")
}

// sendsFullBatches sends one after the other while records are left, until one of them
// shows something.
func (sc *Scenario) sendsFullBatches() error {
	n, err := sc.fullSize()
	if err != nil {
		return err
	}
	if sc.Object.Creating() == "" {
		return sc.sendsNew(n, "any operation", "")
	}
	if err := sc.acceptsControl(); err != nil {
		return err
	}
	batches := sc.fullBatches(n)
	for i, full := range batches {
		if i > 0 && sc.Opts.MaxRecords-sc.SentRecords() < n {
			sc.Note("left out for --max-records %d: full batches (%d) of %s", sc.Opts.MaxRecords, n,
				quantity.List(lists.Of(batches[i:], func(f fullBatch) string { return f.what })))
			break
		}
		op, records, err := full.make()
		if err != nil {
			return err
		}
		sc.Sets = []write.Set{{Operation: op, Records: records}}
		if err := sc.SendSets(&write.Sending{}); err != nil {
			return err
		}
		if answered, err := sc.fullBatchStored(full.what); err != nil || !answered {
			return err // the claims say what an unanswered batch means
		}
	}
	return nil
}

// fullBatches are the batches in the order in which they are sent.
func (sc *Scenario) fullBatches(n int) []fullBatch {
	o, creating := sc.Object, sc.Object.Creating()
	fresh := func(op string, m *write.Sending) func() (string, []*write.Record, error) {
		return func() (string, []*write.Record, error) {
			records, err := sc.Make(n, op, rpc.Field{}, m)
			return op, records, err
		}
	}
	changing := func(op string, shift int) func() (string, []*write.Record, error) {
		return func() (string, []*write.Record, error) {
			records := make([]*write.Record, n)
			for i, r := range sc.History[0].Records {
				switch e := sc.Model.Get(r); (i + shift) % 3 {
				case 0:
					records[i] = e.Record // the same values again
				case 1:
					records[i] = sc.opposed(e.Record)
				default:
					records[i] = write.NullsInTurn(sc.Scenario.Scenario, e.Record)
				}
			}
			return op, write.ForOperation(rpc.OperationUpdate, records), nil
		}
	}
	out := []fullBatch{{"new records (" + creating + ")", fresh(creating, &write.Sending{Every: true, Shapes: []func(*write.Scenario, *write.Record) *write.Record{write.NullsInTurn, sc.exactInTurn()}})}}
	for i, op := range lists.Where([]string{rpc.OperationUpsert, rpc.OperationUpdate}, o.Accepts) {
		out = append(out, fullBatch{"repeated and changed records (" + op + ")", changing(op, i)})
	}
	if creating != rpc.OperationInsert && o.Accepts(rpc.OperationInsert) {
		out = append(out, fullBatch{"new records (insert)", fresh(rpc.OperationInsert, &write.Sending{Every: true})})
	}
	if o.Accepts(rpc.OperationDelete) {
		out = append(out, fullBatch{"deletes", func() (string, []*write.Record, error) {
			return rpc.OperationDelete, sc.History[0].Records, nil
		}})
	}
	return append(out, fullBatch{"new records with what is required alone (" + creating + ")",
		fresh(creating, &write.Sending{Shapes: []func(*write.Scenario, *write.Record) *write.Record{write.OnlyRequired}})})
}

// exactValue is a value of a table that a small batch has stored as it was sent.
type exactValue struct{ object, field, value string }

// mostExact is the length of the longest one that is sent in a full batch again.
const mostExact = 300

// exactInTurn gives records, one after the other, the values that small batches have kept.
func (sc *Scenario) exactInTurn() func(*write.Scenario, *write.Record) *write.Record {
	kept, turn := map[string][]string{}, -1
	for known := range sc.j.exact.Range {
		if v := known.(exactValue); v.object == sc.Object.APIName {
			kept[v.field] = append(kept[v.field], v.value)
		}
	}
	for name := range kept {
		slices.Sort(kept[name])
	}
	return func(_ *write.Scenario, r *write.Record) *write.Record {
		turn++
		for name := range r.Values {
			if turn < len(kept[name]) && name != r.ID.APIName {
				r = r.With(name, json.RawMessage(kept[name][turn]))
			}
		}
		return r
	}
}

// fullBatchStored judges the latest full batch. One that a service was away for is sent
// once more.
func (sc *Scenario) fullBatchStored(what string) (answered bool, err error) {
	b := sc.Latest[len(sc.Latest)-1]
	if !b.Reply.OK() && b.Reply.Kind != wire.KindTimeout || b.Reply.Passing() {
		again, err := sc.WriteOne(b.Operation, b.Records, write.Plan{})
		if err != nil {
			return false, err
		}
		sc.Model.Follow(again)
		if again.Answered() {
			sc.Note("a full batch of %s was answered when it was sent again; before: %s", what, b.Reply.Short())
			sc.Batches = lists.Where(sc.Batches, func(o *write.Batch) bool { return o != b })
		}
		sc.Latest, b = []*write.Batch{again}, again
	}
	sc.j.Full = append(sc.j.Full, b)
	if !b.Answered() {
		return false, nil
	}
	switch err := sc.refusedInFull(b); {
	case err != nil || sc.Readback == nil:
		return true, err
	case b.Operation == rpc.OperationDelete:
		return true, sc.noneExists()
	case len(sc.expectations(written)) == 0:
		return true, nil
	}
	sc.full = true
	return true, sc.storedExactly()
}

// refusedInFull sends the first record that a full batch refuses alone: what is taken
// there was refused for its company.
func (sc *Scenario) refusedInFull(b *write.Batch) error {
	for _, r := range b.Records {
		if !b.Failed(r) {
			continue
		}
		alone, err := sc.WriteOne(b.Operation, []*write.Record{r}, write.Plan{})
		if err != nil {
			return err
		}
		sc.Model.Follow(alone)
		if alone.Succeeded(r) {
			sc.BrokenAs("refused in a full batch", b.Operation, fmt.Sprintf("%s taken among %s, as it is alone", foreign.Clip(string(r.Key), 60), quantity.Count(len(b.Records), "record")),
				b.WhyOf(r), b.Reply, alone.Reply)
		}
		return sc.Held()
	}
	return nil
}
