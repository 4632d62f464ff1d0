package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/destkit/destkit/server/internal/cluster/lease"
	"github.com/destkit/destkit/server/internal/cluster/parts"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// topicPart tells that parts of runs wait, or are to stop.
const topicPart = "part"

// errCalledOff ends a part that the one who has cut the run does not wait for any
// more, or that others may have taken for dead.
var errCalledOff = fmt.Errorf("the part is called off: %w", executor.ErrStop)

// fleetParts lets the processes of an installation send one large run together. The
// parts stand in a table; whoever has a free worker takes one, for as long as it says
// so now and then. What nobody takes at once, the process does that has cut the run.
//
// A part writes under the fence of the lease of its run. So one whose process is
// lost is not given to another: that process may wake up and write. The run is
// handed back instead, and goes on as a whole under the next fence.
type fleetParts struct {
	f      *fleet
	table  *parts.Table
	ctx    context.Context // of all parts that work here
	cancel context.CancelCauseFunc
	wake   chan struct{}

	mu   sync.Mutex
	here int64 // parts that work here
}

func newFleetParts(f *fleet) *fleetParts {
	p := &fleetParts{f: f, table: parts.New(f.s.store.Pool(), f.id, f.pulse.run), wake: make(chan struct{}, 1)}
	p.ctx, p.cancel = context.WithCancelCause(f.s.background.ctx)
	f.s.onNotice(topicPart, func(string) {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	})
	return p
}

// Free implements executor.Parts: each process that works takes a part.
func (p *fleetParts) Free(ctx context.Context) int {
	others, err := p.f.others(ctx)
	if err != nil || p.f.drained.Load() {
		return 1
	}
	free := 1
	for _, o := range others {
		if o.Role != RoleAPI {
			free++
		}
	}
	return free
}

// sharedRun is one step of a run that is cut, for the process that waits.
type sharedRun struct {
	*fleetParts
	job    executor.Job
	lease  lease.Lease
	step   parts.Step
	first  int // part that is done here
	seen   map[int]int64
	own    sync.WaitGroup
	posted time.Time
}

// Work implements executor.Parts.
func (p *fleetParts) Work(ctx context.Context, job executor.Job, cut []executor.PartJob, tell func(executor.PartReport)) error {
	o := p.f.s.engine.occupiedBy(job.Run)
	if o == nil || len(cut) == 0 {
		return errLeaseLost
	}
	w := &sharedRun{fleetParts: p, job: job, lease: o.t.lease, first: cut[0].Number, seen: map[int]int64{}}
	w.step = parts.Step{Sync: job.Sync, Fence: w.lease.Fence, Deletes: cut[0].Deletes}
	if err := w.post(ctx, cut); err != nil {
		return err
	}
	defer p.f.s.clock.Pause(ctx)()
	err := w.wait(ctx, tell)
	w.own.Wait()
	if p.f.dead.Load() {
		return errLeaseLost
	}
	w.drop()
	return err
}

// post puts the parts into the table.
func (w *sharedRun) post(ctx context.Context, cut []executor.PartJob) error {
	w.posted = time.Now()
	jobs := map[int][]byte{}
	for _, part := range cut {
		part.Fence = w.lease.Fence
		text, err := json.Marshal(part)
		if err != nil {
			return fmt.Errorf("post the parts of run %d: %w", w.job.Run, err)
		}
		jobs[part.Number] = text
	}
	err := w.f.s.store.Update(ctx, func(tx *store.Tx) error {
		if err := lease.Holds(ctx, tx.PostgreSQL(), w.lease); err != nil {
			return err
		}
		return errors.Join(parts.Post(ctx, tx.PostgreSQL(), w.step, jobs), tx.Notify(topicPart, ""))
	})
	if err != nil {
		return fmt.Errorf("post the parts of run %d: %w", w.job.Run, err)
	}
	return nil
}

// wait returns when all parts have ended, or none can go on.
func (w *sharedRun) wait(ctx context.Context, tell func(executor.PartReport)) error {
	called := false
	for {
		rows, err := w.table.Rows(context.WithoutCancel(ctx), w.step)
		if err != nil {
			w.f.s.log.Warn("the parts of a run cannot be read at the moment", "run", w.job.Run, "error", err)
		}
		if ended, err := w.look(rows, tell, ctx.Err() != nil); ended && err == nil && len(rows) > 0 || err != nil {
			return err
		}
		switch {
		case stopped(ctx): // who goes on has another fence
			return errors.Join(context.Cause(ctx), w.callOff())
		case ctx.Err() != nil && !called:
			if err := w.callOff(); err == nil {
				called = true
			}
		}
		_ = pause(context.WithoutCancel(ctx), w.f.pulse.part)
	}
}

// look hands reports on, takes up what nobody wants, and finds what is lost.
func (w *sharedRun) look(rows []parts.Row, tell func(executor.PartReport), ending bool) (ended bool, err error) {
	ended = true
	for _, row := range rows {
		if row.Reports > w.seen[row.Number] {
			w.seen[row.Number] = row.Reports
			var report executor.PartReport
			if err := json.Unmarshal(row.Report, &report); err != nil {
				return false, fmt.Errorf("read the report of part %d: %w", row.Number, err)
			}
			tell(report)
		}
		switch {
		case row.Ended:
		case row.Late:
			w.f.s.log.Warn("a process that worked on a part of a run is lost", "run", w.job.Run, "part", row.Number, "process", row.Process)
			return false, errCalledOff
		case row.Process == "" && ending: // nobody begins it any more
		case row.Process == "" && (row.Number == w.first || time.Since(w.posted) > w.f.pulse.others):
			ended = false
			w.takeUp(row.Number)
		default:
			ended = false
		}
	}
	return ended, nil
}

// takeUp begins a part of the run here, if nobody else has by now.
func (w *sharedRun) takeUp(number int) {
	claimed, err := w.claim(w.ctx, &parts.Part{Step: w.step, Number: number})
	if err != nil || claimed == nil {
		return // it is looked at again
	}
	w.own.Go(func() { claimed.work(&w.job) })
}

// callOff tells the others to stop; those that nobody has begun are over.
func (w *sharedRun) callOff() error {
	if w.f.dead.Load() {
		return nil
	}
	return w.told(w.table.CallOff(context.WithoutCancel(w.f.ctx), w.step.Sync, w.step.Fence))
}

// drop clears the table; what is left is cleared by the next run that is cut.
func (w *sharedRun) drop() {
	if err := w.table.Drop(context.WithoutCancel(w.f.ctx), w.step); err != nil {
		w.f.s.log.Warn("the parts of a run stay in their table", "run", w.job.Run, "error", err)
	}
}

// told lets the others know of a change of the table.
func (p *fleetParts) told(err error) error {
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.f.ctx), p.f.pulse.run)
	defer cancel()
	return p.f.s.store.Tell(ctx, topicPart, "")
}
