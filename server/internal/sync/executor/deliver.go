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
	by       *sending
	phase    *phase
	failures int // calls that failed since one succeeded
	*scratch
}

// scratch is memory that deliveries hand on.
type scratch struct {
	verdicts []verdict
	records  [][]byte
	log      []ledger.Record
	calls    []string // ids of the calls for the next recorded verdicts
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
func (s *sending) deliver(ctx context.Context, p *phase, b *batch) {
	defer func() {
		if value := recover(); value != nil { // it must not take the service with it
			s.job.Log.Error("batch panicked", "stack", string(debug.Stack()))
			s.progress.end(failed(CodeInternal, nil, "sending a batch failed inside the service; its log has more"))
		}
	}()
	d := &delivery{by: s, phase: p, scratch: scratches.Get().(*scratch)}
	d.calls = d.calls[:0]
	var err error
	n := int64(len(b.items))
	s.traffic.started.Add(n) // before the log counts them
	if p.round == 1 {        // later on the refusal is already in the log
		err = d.promise(b.items)
	}
	if err == nil {
		err = d.send(ctx, b.items)
	}
	s.traffic.finished.Add(n)
	if err != nil {
		s.progress.end(err)
		return
	}
	scratches.Put(d.scratch)
	if cap(b.arena) <= 2*largestBatch { // a record was very long
		b.reset()
		batches.Put(b)
	}
}

// send is the hierarchy of spec 7.2.5 for one batch: again, then in halves down
// to single records. A batch of one that is refused is a refused record.
func (d *delivery) send(ctx context.Context, items []item) error {
	err := d.attempt(ctx, items)
	var whole *wholeError
	switch {
	case !errors.As(err, &whole):
		return err
	case d.by.responses.exhausted(d.by.inFlight.size):
		return ofCall(whole.cause)
	case d.by.options.Deviations.gives(err):
		d.phase = &phase{wire: d.phase.wire, delete: d.phase.delete, round: d.phase.round}
	case len(items) > 1 && d.failures < batchFailures && !d.by.options.Deviations.NoSplit:
		half, made := len(items)/2, slices.Clone(d.calls)
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
	return d.record(items, nil, d.by.options.Clock.Now())
}

// wholeError is a batch that failed as a whole as often as it may.
type wholeError struct{ cause error }

func (e *wholeError) Error() string { return e.cause.Error() }
func (e *wholeError) Unwrap() error { return e.cause }

// attempt sends items as one batch, again and again as long as it may help. Halves
// are tried once: the whole was tried before them. An outcome that is not known
// counts as a failure: nothing is ever taken as stored without its result.
func (d *delivery) attempt(ctx context.Context, items []item) error {
	attempts := d.by.calls.backoff.Attempts
	if d.by.options.Deviations.BatchesOnce {
		attempts = 1
	}
	if d.failures >= attempts {
		attempts = 1
	}
	d.records = d.records[:0]
	for i := range items {
		d.records = append(d.records, items[i].record)
	}
	started := d.by.options.Clock.Now()
	var reply destination.Reply
	call := &persistent{
		by: &d.by.calls, ctx: ctx, attempts: attempts, records: len(items), deadline: d.by.options.BatchTimeout,
		before: func() {
			d.by.crash("before-send")
			d.by.traffic.calls.Add(1)
		},
		after: func(failure error) {
			d.by.crash("after-send")
			d.noteCall(reply.Call, failure)
			d.count(failure)
		},
	}
	err := call.do(func(ctx context.Context) (limit int64, err error) {
		reply, err = d.by.sends.Send(ctx, d.by.plans[d.phase.wire], d.records)
		return reply.RateLimit, err
	})
	if err != nil {
		return err
	}
	d.verdicts = match(items, reply.Results, d.verdicts)
	return d.record(items, d.verdicts, started)
}

// count keeps account of calls in a row that brought nothing.
func (d *delivery) count(err error) {
	if err == nil {
		d.failures = 0
		d.by.responses.succeeded()
		return
	}
	d.by.job.Log.Debug("call failed", "error", err)
	if d.by.responses.failed(err) {
		d.failures++
	}
}

// record writes the verdicts of one reply into the ledger, in one piece, and keeps the refused
// records for the next round. Without verdicts all were refused.
func (d *delivery) record(items []item, verdicts []verdict, started time.Time) error {
	s := d.by
	d.log = d.log[:0]
	if err := s.options.Deviations.again(d.phase, items, verdicts); err != nil {
		return failed(CodeInternal, err, "%v", err)
	}
	for i := range items {
		it := &items[i]
		record := s.entry(it, d.phase.delete)
		if verdicts == nil || verdicts[i] != accepted {
			record.Verdict, record.Message = ledger.Rejected, it.message
			if s.options.Deviations.EndsOnRefusal && verdicts != nil {
				return failed(CodeRPC, nil, "%s", it.message)
			}
			if d.phase.refused == nil {
				s.giveUp(it, d.phase.delete)
			}
			if d.phase.refused != nil {
				s.traffic.refusals.Add(1)
				if err := d.phase.refused.add(*it); err != nil {
					return failed(CodeInternal, err, "%v", err)
				}
			}
		}
		if record.Verdict == ledger.Acknowledged && s.swap != nil {
			if err := s.swap.accepted.add(*it); err != nil { // it counts with the commit
				return failed(CodeInternal, err, "%v", err)
			}
			continue
		}
		d.log = append(d.log, record)
	}
	return s.booking.book(ledger.Batch{
		Operation: d.phase.wire, Calls: d.calls, StartedAt: started, CompletedAt: s.options.Clock.Now(), Records: d.log,
	})
}

// giveUp notes a record that was refused to the end of the run.
func (s *sending) giveUp(it *item, deleted bool) {
	if deleted {
		s.traffic.failedDeletes.Add(1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stream != nil:
		s.stream.refuse(it.stamp.position())
	case s.highWater != nil:
		s.highWater.refuse(it.stamp.time())
	}
}

// entry is an acknowledged item as the ledger takes it.
func (t *terms) entry(it *item, deleted bool) ledger.Record {
	record := ledger.Record{Key: t.ledgerKey(it), Print: it.print, Verdict: ledger.Acknowledged, Delete: deleted, Place: it.place}
	record.Keep = t.rows && !deleted
	if t.options.Payloads || record.Keep {
		record.Payload = it.record
	}
	return record
}

// book appends verdicts durably; until it returns, nothing has changed.
func (bk *booking) book(b ledger.Batch) error {
	if len(b.Records) == 0 {
		return nil
	}
	if err := bk.log.Append(b); err != nil {
		return failed(CodeState, err, "write down what the destination acknowledged: %v", err)
	}
	bk.progress.report()
	return nil
}
