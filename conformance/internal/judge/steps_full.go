package judge

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// These steps send batches of the declared size. Each is large: a run sends as many as it can
// afford, the most informative first, and notes what it leaves out.
var fullSentences = sentences{
	`^the service sends a full batch of new records with any operation, unless one was sent$`:                (*Scenario).sendsFull,
	`^the service sends full batches of new, repeated and changed records with every operation of a mirror$`: (*Scenario).sendsFullBatches,
}

// fullBatch is one batch of the declared size.
type fullBatch struct {
	what, operation string
	make            func() ([]*write.Record, error)
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
	if len(sc.j.Full) > 0 && !sc.Confirming() {
		sc.Latest = sc.j.Full
		sc.KeepBatches(sc.Latest...)
		return nil
	}
	return sc.sendsNew(n, "any operation", "")
}

// sendsFullBatches sends one after the other while records are left, until one shows something.
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
		records, err := full.make()
		if err != nil {
			return err
		}
		if err := sc.sendsOne(full.operation, records, &write.Sending{}); err != nil {
			return err
		}
		if answered, err := sc.fullBatchStored(full.what); err != nil || !answered {
			return err // the claims decide what an unanswered batch means
		}
	}
	return nil
}

// fullBatches are the batches in the order in which they are sent.
func (sc *Scenario) fullBatches(n int) []fullBatch {
	creating := sc.Object.Creating()
	rest := max(1, n-1) // no multiple of the sizes of chunks, so that a rest that is lost shows
	for rest%2 == 0 || rest%5 == 0 {
		rest--
	}
	fresh := func(n int, what, operation string, m *write.Sending) fullBatch {
		return fullBatch{what + " (" + operation + ")", operation, func() ([]*write.Record, error) { return sc.Make(n, operation, rpc.Field{}, m) }}
	}
	exact := sc.exactInTurn()
	out := []fullBatch{fresh(n, "new records", creating, &write.Sending{Every: true, Reshape: func(w *write.Scenario, r *write.Record) *write.Record {
		return exact(write.NullsInTurn(w, r))
	}})}
	for shift, op := range lists.Where([]string{rpc.OperationUpsert, rpc.OperationUpdate}, sc.Object.Accepts) {
		out = append(out, fullBatch{"repeated and changed records (" + op + ")", op, func() ([]*write.Record, error) { return sc.repeated(shift, []int{n, rest}[shift]), nil }})
	}
	if turn := -1; sc.Object.Accepts(rpc.OperationInsert) {
		out = append(out, fresh(n, "new records among some that are there", rpc.OperationInsert, &write.Sending{Every: true, Reshape: func(w *write.Scenario, r *write.Record) *write.Record {
			if turn++; turn%4 > 0 {
				return r
			}
			return w.Changed(sc.History[0].Records[turn], 5)
		}}))
	}
	if sc.Object.Accepts(rpc.OperationDelete) {
		out = append(out, fullBatch{"deletes", rpc.OperationDelete, func() ([]*write.Record, error) { return sc.History[0].Records, nil }})
	}
	return append(out, fresh(n, "new records with what is required alone", creating, &write.Sending{Reshape: write.OnlyRequired}))
}

// repeated are the records of the first batch with the same values, the opposite ones, or nulls by turns.
func (sc *Scenario) repeated(shift, n int) []*write.Record {
	records := slices.Clone(sc.History[0].Records[:n])
	for i, r := range records {
		records[i] = sc.Model.Get(r).Record
		switch (i + shift) % 3 {
		case 1:
			records[i] = sc.opposed(records[i])
		case 2:
			records[i] = write.NullsInTurn(sc.Scenario.Scenario, records[i])
		}
	}
	return write.ForOperation(rpc.OperationUpdate, records)
}

// exactValue is a value of a table that a small batch has stored as it was sent.
type exactValue struct{ object, field, value string }

// exactInTurn gives records, one after the other, the values that small batches have kept, but for limits.
func (sc *Scenario) exactInTurn() func(*write.Record) *write.Record {
	kept, turn := map[string][]string{}, -1
	for known := range sc.j.exact.Range {
		v := known.(exactValue)
		if v.object == sc.Object.APIName && v.value != "null" && len(v.value) <= 300 && !values.IsLimit(json.RawMessage(v.value)) {
			kept[v.field] = append(kept[v.field], v.value)
		}
	}
	for name := range kept {
		slices.Sort(kept[name])
	}
	return func(r *write.Record) *write.Record {
		turn++
		for name := range r.Values {
			if turn < len(kept[name]) && name != r.ID.APIName {
				r = r.With(name, json.RawMessage(kept[name][turn]))
			}
		}
		return r
	}
}

// fullBatchStored judges the latest full batch. One that the endpoint was away for is sent once more.
func (sc *Scenario) fullBatchStored(what string) (answered bool, err error) {
	b := sc.LastBatch()
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
	if err := sc.unchanged(leftAlone); err != nil {
		sc.Explain(func(s string) bool { return s == "changed" && b.Operation == rpc.OperationInsert },
			"insert overwrites records that are there; where SEM-002 passes, only in large batches, which take a separate path (a bulk upsert).", "let insert leave records alone that are there, whatever the size of the batch.", false)
		return true, err
	}
	return true, sc.storedExactly()
}

// refusedInFull sends the first record that a full batch refuses alone: taken there, it was refused for its company.
func (sc *Scenario) refusedInFull(b *write.Batch) error {
	i := slices.IndexFunc(b.Records, func(r *write.Record) bool {
		return b.Failed(r) && (b.Operation != rpc.OperationInsert || !sc.Model.Get(r).Exists) // else it is skipped
	})
	if i < 0 {
		return nil
	}
	r := b.Records[i]
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
