package executor

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// delivery is one batch on its way, with all that becomes of it.
type delivery struct {
	run      *run
	phase    *phase
	failures int // calls that failed since one succeeded
	*scratch
}

// scratch is memory that deliveries hand on.
type scratch struct {
	verdicts []verdict
	records  [][]byte
	log      []ledger.Record
	calls    []string // ids of those that were made for what settles next
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// phase is what all batches of one pass have in common.
type phase struct {
	wire    string // the operation of the batches
	delete  bool
	round   int    // from 1
	refused *spool // for the next round; nil in the last one
}

// deliver sends a batch until every record of it has a verdict, or the run
// ends.
func (r *run) deliver(ctx context.Context, p *phase, b *batch) {
	defer func() {
		if value := recover(); value != nil { // it must not take the service with it
			r.job.Log.Error("batch panicked", "stack", string(debug.Stack()))
			r.end(failed(CodeInternal, nil, "sending a batch failed inside the service; its log has more"))
		}
	}()
	d := &delivery{run: r, phase: p, scratch: scratches.Get().(*scratch)}
	d.calls = d.calls[:0]
	var err error
	n := int64(len(b.items))
	r.traffic.begun.Add(n) // before the log counts them
	if p.round == 1 {      // later on the refusal stands in the log already
		err = d.promise(b.items)
	}
	if err == nil {
		err = d.send(ctx, b.items)
	}
	r.traffic.over.Add(n)
	if err != nil {
		r.end(err)
		return
	}
	scratches.Put(d.scratch)
	if cap(b.arena) <= 2*largestBatch { // a record was very long
		b.reset()
		batches.Put(b)
	}
}

// send is the hierarchy of spec 7.2.5 for one batch: again, then in halves down
// to single records. What is refused as a single record is a refused record.
func (d *delivery) send(ctx context.Context, items []item) error {
	err := d.try(ctx, items)
	var whole *wholeError
	switch {
	case !errors.As(err, &whole):
		return err
	case d.run.answers.desperate(d.run.crew.places()):
		return ofCall(whole.cause)
	case d.run.e.options.Deviations.gives(err):
		d.phase = &phase{wire: d.phase.wire, delete: d.phase.delete, round: d.phase.round}
	case len(items) > 1 && d.failures < hopeless && !d.run.e.options.Deviations.NoSplit:
		half, made := len(items)/2, slices.Clone(d.calls)
		d.run.traffic.splits.Add(int64(len(items)))
		if d.run.e.options.Deviations.SplitsOne {
			half = 1
		}
		if err := d.send(ctx, items[:half]); err != nil {
			return err
		}
		d.calls = made
		return d.send(ctx, items[half:])
	}
	message := ofCall(whole.cause).Message
	for i := range items {
		items[i].message = message
	}
	return d.settle(items, nil, d.run.e.options.Clock.Now())
}

// wholeError is a batch that failed as a whole as often as it may.
type wholeError struct{ cause error }

func (e *wholeError) Error() string { return e.cause.Error() }
func (e *wholeError) Unwrap() error { return e.cause }

// try sends items as one batch, again and again as long as it may help. Halves
// are tried once: the whole was tried before them. An outcome that is not known
// counts as a failure: nothing is ever taken as stored without its result.
func (d *delivery) try(ctx context.Context, items []item) error {
	tries := d.run.calls.backoff.Tries
	if d.run.e.options.Deviations.BatchesOnce {
		tries = 1
	}
	if d.failures >= tries {
		tries = 1
	}
	d.records = d.records[:0]
	for i := range items {
		d.records = append(d.records, items[i].record)
	}
	started := d.run.e.options.Clock.Now()
	var reply destination.Reply
	attempts := &persistent{
		by: &d.run.calls, ctx: ctx, tries: tries, records: len(items), deadline: d.run.e.options.BatchTimeout,
		before: func() {
			d.run.crash("before-send")
			d.run.traffic.calls.Add(1)
		},
		after: func(failure error) {
			d.run.crash("after-send")
			d.noteCall(reply.Call, failure)
			d.count(failure)
		},
	}
	err := attempts.do(func(ctx context.Context) (limit int64, err error) {
		reply, err = d.run.sends.Send(ctx, d.run.plans[d.phase.wire], d.records)
		return reply.RateLimit, err
	})
	if err != nil {
		return err
	}
	d.verdicts = judge(items, reply.Results, d.verdicts)
	return d.settle(items, d.verdicts, started)
}

// count keeps account of calls in a row that brought nothing.
func (d *delivery) count(err error) {
	if err == nil {
		d.failures = 0
		d.run.answers.came()
		return
	}
	d.run.job.Log.Debug("call failed", "error", err)
	if d.run.answers.failed(err) {
		d.failures++
	}
}

// settle writes the verdicts of one reply into the ledger, in one piece, and
// keeps what was refused for the next round. Without verdicts all were refused.
func (d *delivery) settle(items []item, verdicts []verdict, started time.Time) error {
	r := d.run
	d.log = d.log[:0]
	if err := r.e.options.Deviations.again(d.phase, items, verdicts); err != nil {
		return failed(CodeInternal, err, "%v", err)
	}
	for i := range items {
		it := &items[i]
		record := r.entry(it, d.phase.delete)
		if verdicts == nil || verdicts[i] != accepted {
			record.Verdict, record.Message = ledger.Rejected, it.message
			if r.e.options.Deviations.EndsOnRefusal && verdicts != nil {
				return failed(CodeRPC, nil, "%s", it.message)
			}
			if d.phase.refused == nil {
				r.giveUp(it, d.phase.delete)
			}
			if d.phase.refused != nil {
				r.traffic.refusals.Add(1)
				if err := d.phase.refused.add(*it); err != nil {
					return failed(CodeInternal, err, "%v", err)
				}
			}
		}
		if record.Verdict == ledger.Acknowledged && r.swap != nil {
			if err := r.swap.accepted.add(*it); err != nil { // it counts with the commit
				return failed(CodeInternal, err, "%v", err)
			}
			continue
		}
		d.log = append(d.log, record)
	}
	return r.book(ledger.Batch{
		Operation: d.phase.wire, Calls: d.calls, StartedAt: started, CompletedAt: r.e.options.Clock.Now(), Records: d.log,
	})
}

// giveUp notes a record that was refused to the end of the run.
func (r *run) giveUp(it *item, deleted bool) {
	if deleted {
		r.traffic.spared.Add(1)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.stream != nil:
		r.stream.refuse(it.stamp.position())
	case r.water != nil:
		r.water.refuse(it.stamp.time())
	}
}

// entry is an acknowledged item as the ledger takes it.
func (r *run) entry(it *item, deleted bool) ledger.Record {
	record := ledger.Record{Key: r.bookKey(it), Print: it.print, Verdict: ledger.Acknowledged, Delete: deleted, Place: it.place}
	record.Keep = r.rows && !deleted
	if r.e.options.Payloads || record.Keep {
		record.Payload = it.record
	}
	return record
}

// book appends verdicts durably; until it returns, nothing has changed.
func (r *run) book(b ledger.Batch) error {
	if len(b.Records) == 0 {
		return nil
	}
	if err := r.log.Append(b); err != nil {
		return failed(CodeState, err, "write down what the destination acknowledged: %v", err)
	}
	r.report()
	return nil
}
