package destination

import (
	"fmt"
	"math"
	"strings"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// fullSteps send batches of the declared size. Each is large: what a run can afford is
// sent in the order of what it shows, and what it leaves out is noted.
func fullSteps() []definition {
	return []definition{
		step(`^the service sends (a full batch of new records with any operation, unless one was sent|full batches of new, repeated and changed records with every operation of a mirror)$`, func(sc *scenario) any {
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
	make func() (operation string, records []*record, err error)
}

// fullSize is the declared size of a batch, where the budget allows one.
func (sc *scenario) fullSize() (int, error) {
	if sc.catalog.speed == nil {
		return 0, inconclusive("", "no speed is declared")
	}
	n := min(sc.catalog.speed.MaximumBatchSize, math.MaxInt32)
	if n > int64(sc.opts.MaxRecords) {
		return 0, notRun("--max-records", "a full batch has %s, more than --max-records %d", quantity.Count(n, "record"), sc.opts.MaxRecords)
	}
	return int(n), nil
}

// sendsFull sends one full batch, or takes those that the run has sent.
func (sc *scenario) sendsFull() error {
	n, err := sc.fullSize()
	if err != nil {
		return err
	}
	if sent := sc.full; len(sent) > 0 && !sc.Confirming() {
		sc.latest = sent
		for _, b := range sent {
			sc.batches, sc.replies = append(sc.batches, b), append(sc.replies, b.reply)
		}
		return nil
	}
	return sc.sendsNew(n, "any operation", "")
}

// sendsFullBatches sends one after the other while records are left, until one of them
// shows something.
func (sc *scenario) sendsFullBatches() error {
	n, err := sc.fullSize()
	if err != nil {
		return err
	}
	if sc.object.creating() == "" {
		return sc.sendsNew(n, "any operation", "")
	}
	if err := sc.acceptsControl(); err != nil {
		return err
	}
	batches := sc.fullBatches(n)
	for i, full := range batches {
		if i > 0 && sc.opts.MaxRecords-sc.sentRecords() < n {
			sc.Note("left out for --max-records %d: full batches (%d) of %s", sc.opts.MaxRecords, n,
				quantity.List(lists.Of(batches[i:], func(f fullBatch) string { return f.what })))
			break
		}
		op, records, err := full.make()
		if err != nil {
			return err
		}
		sc.sets = []set{{op, records}}
		if err := sc.sendSets(&sending{}); err != nil {
			return err
		}
		if answered, err := sc.fullBatchStored(full.what); err != nil || !answered {
			return err // the claims say what an unanswered batch means
		}
	}
	return nil
}

// fullBatches are the batches in the order in which they are sent.
func (sc *scenario) fullBatches(n int) []fullBatch {
	o, creating := sc.object, sc.object.creating()
	fresh := func(op string, m *sending) func() (string, []*record, error) {
		return func() (string, []*record, error) {
			records, err := sc.make(n, op, rpc.Field{}, m)
			return op, records, err
		}
	}
	changing := func(op string, shift int) func() (string, []*record, error) {
		return func() (string, []*record, error) {
			records := make([]*record, n)
			for i, r := range sc.history[0].records {
				switch e := sc.model.get(r); (i + shift) % 3 {
				case 0:
					records[i] = e.record // the same values again
				case 1:
					records[i] = sc.opposed(e.record)
				default:
					records[i] = nullsInTurn(sc, e.record)
				}
			}
			return op, forOperation(rpc.OperationUpdate, records), nil
		}
	}
	out := []fullBatch{{"new records (" + creating + ")", fresh(creating, &sending{every: true, shapes: []func(*scenario, *record) *record{nullsInTurn}})}}
	for i, op := range lists.Where([]string{rpc.OperationUpsert, rpc.OperationUpdate}, o.accepts) {
		out = append(out, fullBatch{"repeated and changed records (" + op + ")", changing(op, i)})
	}
	if creating != rpc.OperationInsert && o.accepts(rpc.OperationInsert) {
		out = append(out, fullBatch{"new records (insert)", fresh(rpc.OperationInsert, &sending{every: true})})
	}
	if o.accepts(rpc.OperationDelete) {
		out = append(out, fullBatch{"deletes", func() (string, []*record, error) {
			return rpc.OperationDelete, sc.history[0].records, nil
		}})
	}
	return append(out, fullBatch{"new records with what is required alone (" + creating + ")",
		fresh(creating, &sending{shapes: []func(*scenario, *record) *record{onlyRequired}})})
}

// fullBatchStored judges the latest full batch. One that a service was away for is sent
// once more.
func (sc *scenario) fullBatchStored(what string) (answered bool, err error) {
	b := sc.latest[len(sc.latest)-1]
	if !b.reply.OK() && b.reply.Kind != wire.KindTimeout || b.reply.Passing() {
		again, err := sc.writeOne(b.operation, b.records, plan{})
		if err != nil {
			return false, err
		}
		sc.model.follow(again)
		if again.answered() {
			sc.Note("a full batch of %s was answered when it was sent again; before: %s", what, b.reply.Short())
			sc.batches = lists.Where(sc.batches, func(o *batch) bool { return o != b })
		}
		sc.latest, b = []*batch{again}, again
	}
	sc.full = append(sc.full, b)
	if !b.answered() {
		return false, nil
	}
	switch err := sc.refusedInFull(b); {
	case err != nil || sc.readback == nil:
		return true, err
	case b.operation == rpc.OperationDelete:
		return true, sc.noneExists()
	case len(sc.expectations(written)) == 0:
		return true, nil
	}
	return true, sc.storedExactly()
}

// refusedInFull sends the first record that a full batch refuses alone: what is taken
// there was refused for its company.
func (sc *scenario) refusedInFull(b *batch) error {
	for _, r := range b.records {
		if !b.failed(r) {
			continue
		}
		alone, err := sc.writeOne(b.operation, []*record{r}, plan{})
		if err != nil {
			return err
		}
		sc.model.follow(alone)
		if alone.succeeded(r) {
			sc.brokenAs("refused in a full batch", b.operation, fmt.Sprintf("%s taken among %s, as it is alone", foreign.Clip(string(r.key), 60), quantity.Count(len(b.records), "record")),
				b.whyOf(r), b.reply, alone.reply)
		}
		return sc.Held()
	}
	return nil
}
