package executor

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// RunPart carries out one part of a run that another process has cut, with a job
// that is open as for Run: of it source, object, columns, destination and
// connection count, the rest is the part's. beside is told meanwhile which parts
// still work; nil: nobody does. tell is called often, the last time with the report
// that is returned. When ctx is cancelled what was acknowledged stays; the same part
// can be made again, here or elsewhere, and goes on.
func (e *Executor) RunPart(ctx context.Context, job Job, part PartJob, beside *Beside, tell func(PartReport)) PartReport {
	log, err := e.options.Ledger.OpenPart(part.Sync, ledger.Part{Run: part.Run, Number: part.Number, From: part.From, To: part.To}, part.Fence)
	if err != nil {
		out := PartReport{Number: part.Number, Ended: true, Failure: failed(CodeState, err, "open the log of the part: %v", err)}
		tell(out)
		return out
	}
	defer func() { _ = log.Close() }()
	gate := e.join(part.Run, job.Connection, part.Speed.MaximumRecordsPerSecond)
	defer e.leave(part.Run)
	return e.runPart(ctx, job, part, log, gate, beside, tell)
}

// runPart carries out a part with its log open, at the gate of its run.
func (e *Executor) runPart(ctx context.Context, job Job, part PartJob, log *ledger.Run, gate *gate, beside *Beside, tell func(PartReport)) PartReport {
	own, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	job.Run, job.Sync, job.Config, job.Full, job.Warehouse, job.Report = part.Run, part.Sync, part.Config, part.Full, nil, nil
	r := &run{
		e: e, job: job, backoff: e.options.Backoff, cancel: cancel, step: StepReading, part: &part, began: part.Now,
		log: log, gate: gate, beside: beside, tell: tell,
	}
	sending.Add(1)
	err := r.guarded(own)
	sending.Add(-1)
	r.leaveWide()
	r.publish()
	r.mu.Lock()
	out := r.partReport()
	r.mu.Unlock()
	out.Ended, out.Samples = true, r.samples
	var f *Failure
	switch {
	case err == nil:
	case errors.Is(err, errUnordered), errors.Is(err, source.ErrNoRange):
		out.Unordered = true
	case errors.Is(err, source.ErrNoSnapshot):
		out.Moved = true
	case ctx.Err() != nil, errors.Is(err, clock.ErrClosed): // and not its own
		out.Stopped, out.closed = true, errors.Is(err, clock.ErrClosed)
	case errors.As(err, &f):
		out.Failure = f
	default:
		out.Failure = failed(CodeInternal, err, "%v", err)
	}
	tell(out)
	return out
}

// guarded keeps a panic from taking the service with it.
func (r *run) guarded(ctx context.Context) (err error) {
	defer func() {
		if value := recover(); value != nil {
			r.e.options.Log.Error("part panicked", "sync", r.job.Sync, "run", r.job.Run, "stack", string(debug.Stack()))
			err = failed(CodeInternal, nil, "a part of the run failed inside the service; its log has more")
		}
	}()
	return r.workPart(ctx)
}

// workPart is work and move for a part.
func (r *run) workPart(ctx context.Context) error {
	defer r.removals.close()
	if err := r.prepare(); err != nil {
		return err
	}
	if r.plan.Fingerprint() != r.part.Mapping {
		f := failed(CodeConfiguration, nil, "the sync, its source or its destination was changed while the run began")
		f.Transient = true
		return f
	}
	r.speed, r.sends = r.part.Speed, r.job.Destination
	r.staff(r.part.places(r.part.Working))
	defer r.beside.hear(func(working []int) { r.crew.grow(r.part.places(working)) })()
	r.resumed = r.part.Resumed || r.log.Resumed()
	if r.part.Deletes {
		return r.removePart(ctx)
	}
	refused := r.newSpool()
	defer func() { _ = refused.close() }()
	r.enter(StepReading)
	if err := r.readOnce(ctx, r.phase(r.operation.wire, 1, refused), r.plan.KeyColumn(), false); err != nil {
		return err
	}
	if err := r.retry(ctx, r.operation.wire, refused); err != nil || r.removals.count == 0 {
		return err
	}
	// Whoever sends the deletes, when all parts have come as far as this.
	if err := r.log.Leave(r.removals.reader()); err != nil {
		return failed(CodeState, err, "keep what is to be deleted: %v", err)
	}
	return nil
}

// removePart sends the deletes that were left, but for those that another
// process has sent before it was interrupted.
func (r *run) removePart(ctx context.Context) error {
	r.enter(StepDeleting)
	left, err := r.log.Left()
	if err != nil {
		return failed(CodeState, err, "read what is to be deleted: %v", err)
	}
	defer left.Close()
	again := r.newSpool()
	defer func() { _ = again.close() }()
	pack := r.packer(ctx, r.phase(rpc.OperationDelete, 1, again))
	err = eachOf(bufio.NewReaderSize(left, 64<<10), func(it item) error {
		if verdict, was, spoken := r.log.Last(it.key); spoken && verdict == ledger.Acknowledged && was == (ledger.Fingerprint{}) {
			return nil
		}
		return pack.add(it)
	})
	if err := r.drain(ctx, pack, err); err != nil {
		return err
	}
	return r.retry(ctx, rpc.OperationDelete, again)
}

// openRange opens the rows of a part.
func (r *run) openRange(ctx context.Context, columns []string) (source.Rows, error) {
	from, ok := r.job.Source.(source.Ranger)
	if !ok {
		return nil, fmt.Errorf("read a range: %w", source.ErrNoRange)
	}
	of := source.Range{Column: r.plan.KeyColumn(), From: r.valueOf(r.part.From), To: r.valueOf(r.part.To), Snapshot: r.part.Snapshot}
	return from.Range(ctx, r.job.Object, columns, of)
}

// inRange finds out when the rows of a range do not have the keys of that range.
type inRange struct {
	feed
	part *PartJob
}

func (f *inRange) next() (mapped, error) {
	got, err := f.feed.next()
	if err == nil && got.key != nil &&
		(bytes.Compare(got.key, f.part.From) < 0 || f.part.To != nil && bytes.Compare(got.key, f.part.To) >= 0) {
		return mapped{}, errUnordered
	}
	return got, err
}

// partReport is how far the part is. The lock is held.
func (r *run) partReport() PartReport {
	p := PartReport{
		Number: r.part.Number, Step: r.step, Resumed: r.log.Resumed(), Rows: r.shown.rows, Valid: r.shown.valid, Invalids: r.shown.invalids,
		Updates: r.shown.updates, Deletes: r.shown.deletes, Missing: r.shown.missing,
		Spared: r.spared.Load(), Calls: r.calls.Load(), Answered: r.answered.Load(), Opened: r.opened.Load(),
	}
	// In this order, as in counters.
	over := r.over.Load()
	p.ofLog(r.log.Counters())
	p.Open = r.begun.Load() - over
	if fault := r.fault.Load(); fault != nil {
		p.Fault = ofCall(*fault)
	}
	return p
}

// reader gives the bytes of all items, for eachOf. Nothing may be added
// meanwhile.
func (s *spool) reader() io.Reader {
	if s.file == nil {
		return bytes.NewReader(s.tail)
	}
	return io.MultiReader(io.NewSectionReader(s.file, 0, s.size), bytes.NewReader(s.tail))
}
