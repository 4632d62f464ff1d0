package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/destkit/destkit/server/destination"
	"github.com/destkit/destkit/server/ledger"
)

// hopeless is how many calls of one batch may fail one after another before it
// is not split any further. A single bad record among any number needs one
// failure per halving, so this finds several; a destination that refuses all
// is not asked twice for every record.
const hopeless = 40

// despair is how many times hopeless calls of a whole run may fail, for each
// batch that is on its way at once, before the run does: nothing gets through.
// slow is how many calls one counts for that took all the time they had.
const (
	despair = 3
	slow    = 10
)

// delivery is one batch on its way, with all that becomes of it.
type delivery struct {
	run      *run
	phase    *phase
	failures int // calls that failed since one succeeded
	verdicts []verdict
	records  [][]byte
	log      []ledger.Record
}

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
	d := &delivery{run: r, phase: p}
	var err error
	if p.round == 1 { // later on the refusal stands in the log already
		err = r.promise(p, b.items)
	}
	if err == nil {
		r.open.Add(int64(len(b.items)))
		err = d.send(ctx, b.items)
		r.open.Add(-int64(len(b.items)))
	}
	if err != nil {
		r.end(err)
		return
	}
	b.reset()
	batches.Put(b)
}

// send is the hierarchy of spec 7.2.5 for one batch: again, then in halves down
// to single records. What is refused as a single record is a refused record.
func (d *delivery) send(ctx context.Context, items []item) error {
	err := d.try(ctx, items)
	var whole *wholeError
	switch {
	case !errors.As(err, &whole):
		return err
	case d.run.desperate():
		return ofCall(whole.cause)
	case len(items) > 1 && d.failures < hopeless:
		half := len(items) / 2
		if err := d.send(ctx, items[:half]); err != nil {
			return err
		}
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
	tries := d.run.backoff.Tries
	if d.failures >= tries {
		tries = 1
	}
	d.records = d.records[:0]
	for i := range items {
		d.records = append(d.records, items[i].record)
	}
	started := d.run.e.options.Clock.Now()
	var reply destination.Reply
	err := d.run.persist(ctx, tries, len(items), d.run.e.options.BatchTimeout, func(ctx context.Context) (int64, error) {
		d.run.crash("before-send")
		d.run.calls.Add(1)
		var err error
		reply, err = d.run.sends.Send(ctx, d.run.plans[d.phase.wire], d.records)
		d.run.crash("after-send")
		d.count(err)
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
		d.run.silence.Store(0)
		return
	}
	d.failures++
	var call *destination.CallError
	switch {
	case !errors.As(err, &call), call.Status == statusThrottled: // says nothing about the batch
		d.failures--
	case call.Outcome == destination.OutcomeTimeout:
		d.run.silence.Add(slow)
	default:
		d.run.silence.Add(1)
	}
}

// desperate tells that nothing gets through any more.
func (r *run) desperate() bool {
	return r.silence.Load() >= hopeless*max(despair, r.speed.MaximumParallelBatches)
}

// settle writes the verdicts of one reply into the ledger, in one piece, and
// keeps what was refused for the next round. Without verdicts all were refused.
func (d *delivery) settle(items []item, verdicts []verdict, started time.Time) error {
	r := d.run
	d.log = d.log[:0]
	for i := range items {
		it := &items[i]
		record := r.entry(it, d.phase.delete)
		if verdicts == nil || verdicts[i] != accepted {
			record.Verdict, record.Message = ledger.Rejected, it.message
			if d.phase.refused == nil {
				r.giveUp(it, d.phase.delete)
			}
			if d.phase.refused != nil {
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
		Operation: d.phase.wire, StartedAt: started, CompletedAt: r.e.options.Clock.Now(), Records: d.log,
	})
}

// giveUp notes a record that was refused to the end of the run.
func (r *run) giveUp(it *item, deleted bool) {
	if deleted {
		r.kept.Add(1)
	}
	if r.water == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.water.refuse(it.stamp.time())
}

// entry is an acknowledged item as the ledger takes it.
func (r *run) entry(it *item, deleted bool) ledger.Record {
	record := ledger.Record{Key: it.key, Print: it.print, Verdict: ledger.Acknowledged, Delete: deleted}
	if r.e.options.Payloads {
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

// persist makes one call until it succeeds or there is no use in it. It passes
// the limits before each try; n is how many records the call carries. Waits are
// on the injected clock, the deadline of a call is real time. The error is a
// *wholeError when the call failed as often as it may, and a *Failure when the
// run has to end.
func (r *run) persist(ctx context.Context, tries, n int, deadline time.Duration, call func(context.Context) (int64, error)) error {
	var throttled time.Time // of the first 429 in a row
	reach, patience := 0, 0
	for try := 1; ; {
		if err := r.gate.pass(ctx, n); err != nil {
			return err
		}
		limit, err := r.bounded(ctx, deadline, call)
		r.gate.limiter.announce(max(limit, limitOf(err)))
		if err == nil {
			return nil
		}
		switch react(ctx, err) {
		case canceled:
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return &wholeError{err}
		case giveUp:
			return ofCall(err)
		case pause:
			now := r.e.options.Clock.Now()
			if throttled.IsZero() {
				throttled = now
			}
			if now.Sub(throttled) >= r.backoff.Throttle {
				f := ofCall(err)
				f.Code = CodeThrottled
				return f
			}
			patience++
			r.gate.limiter.pause(now.Add(r.backoff.throttled(err, now, patience+1, r.e.options.Random)))
			continue
		case waitFor:
			if reach++; reach >= r.backoff.Reach {
				return ofCall(err)
			}
			throttled = time.Time{}
			err = r.rest(ctx, err, reach+1)
		case again:
			throttled = time.Time{}
			if try++; try > r.limitOfTries(tries, err) {
				return &wholeError{err}
			}
			err = r.rest(ctx, err, try)
		}
		if err != nil {
			return err
		}
	}
}

// limitOfTries: a connection that breaks is given longer than a destination
// that answers, unless the batch is split already. It may come back.
func (r *run) limitOfTries(tries int, err error) int {
	var call *destination.CallError
	if tries > 1 && errors.As(err, &call) && call.Outcome == destination.OutcomeNetwork {
		return max(tries, r.backoff.Reach)
	}
	return tries
}

// limitOf is the X-RateLimit-Limit of a failed call: any reply may carry it
// (spec 8).
func limitOf(err error) int64 {
	var call *destination.CallError
	if errors.As(err, &call) {
		return call.RateLimit
	}
	return 0
}

// rest waits before a try, for as long as the destination asks where it does.
func (r *run) rest(ctx context.Context, failure error, try int) error {
	d, asked := r.backoff.retryAfter(failure, r.e.options.Clock.Now())
	if !asked {
		d = r.backoff.before(try, r.e.options.Random)
	}
	if err := r.e.options.Clock.Sleep(ctx, d); err != nil {
		return fmt.Errorf("wait for another try: %w", err)
	}
	return nil
}

// bounded makes the call with its deadline. A run that is cancelled lets calls
// that are on their way end for a moment: their verdicts are worth more than
// the time.
func (r *run) bounded(ctx context.Context, deadline time.Duration, call func(context.Context) (int64, error)) (int64, error) {
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), deadline)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(r.e.options.Grace, cancel)
		context.AfterFunc(own, func() { timer.Stop() })
	})()
	return call(own)
}
