package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/ledger"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// run is one run under way.
type run struct {
	e         *Executor
	job       Job
	room      room
	calls     caller
	answers   answers
	traffic   traffic
	plan      *mapping.Plan
	operation operation
	full      bool
	reason    string
	resumed   bool // part of the log is older than this pass over the source

	books  *ledger.Sync
	log    *ledger.Run
	before ledger.Meta // of the state as it was
	plans  map[string]*destination.Plan
	crew   *crew
	speed  rpc.Speed
	water  *water  // nil without a high-water mark
	stream *stream // nil unless the source is a topic
	swap   *swap   // nil: records count one by one
	state  warehouseState
	sends  sender  // the destination, or its replacement under way
	merged bool    // the state has the log of the run
	dry    *dryRun // nil: a run
	began  time.Time

	// Of the goroutine that reads.
	tally    tally
	samples  []Sample
	record   []byte
	skipping bool // what is there is taken as sent
	rows     bool // the state keeps what was sent, for delete records
	kept     bool // … and has the row of every key
	removals spool
	sink     func(item) error

	cancel context.CancelCauseFunc

	mu     sync.Mutex
	shown  tally
	step   string
	failed error // the first
}

// newRun is a run that has not begun.
func (e *Executor) newRun(job Job, cancel context.CancelCauseFunc) *run {
	r := &run{e: e, job: job, cancel: cancel, calls: caller{e: e, allowed: job.Allowed}}
	r.room.runs, r.room.wides = e.runs, e.wide
	return r
}

// sender takes batches.
type sender interface {
	Send(ctx context.Context, plan *destination.Plan, records [][]byte) (destination.Reply, error)
}

// tally counts what the comparison finds.
type tally struct {
	rows, valid, invalids int64
	updates, deletes      int64
	missing               int64 // keys of the state without a row
}

// work is the run step by step.
func (r *run) work(ctx context.Context) error {
	defer r.removals.close()
	if err := r.prepare(); err != nil {
		return err
	}
	if err := r.pace(ctx); err != nil {
		return err
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	defer func() { _ = r.log.Close() }() // nothing, once it is finished
	err := r.move(ctx)
	if err == nil {
		err = r.answers.none()
	}
	if r.stopped(ctx, err) {
		return err // the log stays open for the one who resumes
	}
	r.enter(StepRecording)
	return errors.Join(err, r.finish(ctx, err))
}

// move reads, compares and sends.
func (r *run) move(ctx context.Context) error {
	refused := r.newSpool()
	defer func() { _ = refused.close() }()
	first := r.phase(r.operation.wire, 1, refused)
	if err := r.beginSwap(ctx); err != nil {
		return err
	}
	defer func() { _ = r.endSwap() }()
	r.sends = r.job.Destination
	if r.swap != nil {
		r.sends = r.swap
	}
	r.enter(StepReading)
	if err := r.measure(ctx); err != nil {
		return err
	}
	if err := r.readAll(ctx, first); err != nil {
		return err
	}
	if err := r.retry(ctx, r.operation.wire, refused); err != nil {
		return err
	}
	if err := r.emptied(); err != nil {
		return err
	}
	if r.swap != nil {
		return r.commitSwap(ctx)
	}
	if r.removals.count == 0 || r.e.options.Deviations.keeps(r) {
		return nil
	}
	r.enter(StepDeleting)
	again := r.newSpool()
	defer func() { _ = again.close() }()
	// Upserts precede deletes, so that no key is without a record in between.
	if err := r.sendSpool(ctx, &r.removals, r.phase(rpc.OperationDelete, 1, again)); err != nil {
		return err
	}
	return r.retry(ctx, rpc.OperationDelete, again)
}

// emptied refuses what would delete everything.
func (r *run) emptied() error {
	if r.job.Config.Operation == api.OperationMirror && r.tally.valid == 0 && r.tally.missing > 0 && !r.allowsEmpty() {
		return failed(CodeEmptySource, nil, "the source has no valid record, and this mirror would remove everything that it has sent: set advanced_configuration.%s to true if that is meant", mapping.AllowEmptySource)
	}
	return nil
}

// allowsEmpty reads the service's own key of the advanced configuration.
func (r *run) allowsEmpty() bool {
	var allowed bool
	return json.Unmarshal(r.job.Config.AdvancedConfiguration[mapping.AllowEmptySource], &allowed) == nil && allowed
}

func (r *run) newSpool() *spool { return &spool{scratch: r.e.options.Scratch} }

// phase is one pass of batches; in the last round nothing is kept for later.
func (r *run) phase(wire string, round int, refused *spool) *phase {
	if round >= r.calls.backoff.Rounds || r.e.options.Deviations.OneRound {
		refused = nil
	}
	return &phase{wire: wire, delete: wire == rpc.OperationDelete, round: round, refused: refused}
}

// readAll is the first pass over the source. Rows that turn out not to come in
// the order of their keys are sorted on disk, from the start: what was
// acknowledged by then is in the state already.
func (r *run) readAll(ctx context.Context, p *phase) error {
	if r.stream != nil {
		return r.readStream(ctx, p)
	}
	byColumn, inSQL := r.plan.KeyColumn(), r.comparesInSQL()
	for {
		err := r.readOnce(ctx, p, byColumn, inSQL)
		switch {
		case errors.Is(err, source.ErrNotInSQL):
			inSQL = false
			if r.tally == (tally{}) { // it knew before it began
				continue
			}
		case byColumn == "" || !errors.Is(err, errUnordered):
			return err
		default:
			byColumn = ""
		}
		r.tally, r.samples = tally{}, nil
		err = r.removals.close()
		if p.refused != nil { // they come again
			err = errors.Join(err, p.refused.close())
		}
		if err != nil {
			return failed(CodeInternal, err, "%v", err)
		}
		if r.dry != nil {
			r.dry.reset()
			continue
		}
		r.resumed = true
		if err := r.restart(ctx); err != nil {
			return err
		}
	}
}

func (r *run) readOnce(ctx context.Context, p *phase, byColumn string, inSQL bool) error {
	find, done, err := r.openBoth(ctx, byColumn, inSQL)
	if err != nil {
		return r.explain(ctx, err)
	}
	defer done()
	pack := r.packer(ctx, p)
	if r.skipping && r.dry == nil {
		pack = r.skipper()
	}
	r.sink = pack.add
	return r.drain(ctx, pack, find(ctx))
}

// drain sends what is left of a pass that ended with err and waits until
// nothing of it is on its way.
func (r *run) drain(ctx context.Context, pack *packer, err error) error {
	if r.e.options.Deviations.EmptyBatch && err == nil && r.traffic.begun.Load() == 0 && pack.open == nil {
		err = pack.send(new(batch))
	}
	if err == nil {
		err = pack.flush()
	}
	if err == nil && r.crew.busy() {
		r.enter(StepSending)
	}
	r.crew.wait(ctx)
	r.publish()
	if err == nil {
		err = r.bookInvalid()
	}
	if own := r.ended(); own != nil {
		return own
	}
	return r.explain(ctx, err)
}

// openBoth opens source and state and gives the comparison of the two: one
// statement where a warehouse can make it, else a merge in the order of keys.
func (r *run) openBoth(ctx context.Context, byColumn string, inSQL bool) (find func(context.Context) error, done func(), err error) {
	if inSQL {
		return r.openDifferences(ctx, byColumn)
	}
	rows, err := r.openRows(ctx, byColumn)
	if err != nil {
		return nil, nil, err
	}
	before, err := r.scan(ctx)
	if err != nil {
		return nil, nil, errors.Join(failed(CodeState, err, "read the state of the sync: %v", err), rows.Close())
	}
	return func(ctx context.Context) error { return r.compare(ctx, &group{feed: rows}, before) },
		func() { _, _ = before.Close(), rows.Close() }, nil
}

// explain turns an error of reading into a failure.
func (r *run) explain(ctx context.Context, err error) error {
	var src *sourceError
	switch {
	case err == nil, errors.Is(err, errUnordered), errors.Is(err, source.ErrNotInSQL):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &src):
		f := failed(CodeSource, err, "read the source: %v", src.cause)
		f.Transient = true
		return f
	}
	return err
}

// packer cuts items into batches and gives them to the crew.
func (r *run) packer(ctx context.Context, p *phase) *packer {
	if r.dry != nil {
		return r.dry.packer()
	}
	return &packer{records: int(min(r.speed.MaximumBatchSize, 1<<20)), bytes: batchBytes(r.speed.MaximumParallelBatches), wide: func(n int) { r.room.clear(ctx, r.crew, n) }, send: func(b *batch) error {
		done := r.room.admit(ctx, r.crew, len(b.arena))
		err := r.crew.do(ctx, func(ctx context.Context) {
			defer done()
			r.deliver(ctx, p, b)
		})
		if err != nil {
			done()
		}
		return err
	}}
}

// retry sends what was refused again, round by round, with a wait before each
// that doubles. It closes refused.
func (r *run) retry(ctx context.Context, wire string, refused *spool) error {
	for round := 2; refused.count > 0; round++ {
		r.enter(StepRetrying)
		if err := r.e.options.Clock.Rest(ctx, r.calls.wait(round)); err != nil {
			return fmt.Errorf("wait for another round: %w", err)
		}
		next := r.newSpool()
		err := r.sendSpool(ctx, refused, r.phase(wire, round, next))
		err = errors.Join(err, refused.close())
		refused = next
		if err != nil {
			return errors.Join(err, next.close())
		}
	}
	return refused.close()
}

func (r *run) sendSpool(ctx context.Context, from *spool, p *phase) error {
	pack := r.packer(ctx, p)
	err := from.each(r.apart(ctx, pack))
	if err == nil {
		err = pack.flush()
	}
	r.crew.wait(ctx)
	if own := r.ended(); own != nil {
		return own
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// end notes the first failure and calls everything else back.
func (r *run) end(err error) {
	r.mu.Lock()
	if r.failed == nil {
		r.failed = err
	}
	r.mu.Unlock()
	r.cancel(err)
}

func (r *run) ended() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// stopped reports whether the run goes on later: it was told to stop, or the
// clock that it waits on is gone.
func (r *run) stopped(ctx context.Context, err error) bool {
	return err != nil && (errors.Is(context.Cause(ctx), ErrStop) || errors.Is(err, ErrStop) || errors.Is(err, clock.ErrClosed))
}

func (r *run) crash(point string) {
	if r.e.options.Crash != nil {
		r.e.options.Crash(point)
	}
}
