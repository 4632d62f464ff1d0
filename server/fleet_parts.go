package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/destkit/destkit/server/executor"
	"github.com/destkit/destkit/server/lease"
	"github.com/destkit/destkit/server/store"
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
	ctx    context.Context // of all parts that work here
	cancel context.CancelCauseFunc
	wake   chan struct{}

	mu   sync.Mutex
	here int64 // parts that work here
}

func newFleetParts(f *fleet) *fleetParts {
	p := &fleetParts{f: f, wake: make(chan struct{}, 1)}
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

// partRow is one row of the table, as the one sees it who waits.
type partRow struct {
	number  int
	process string
	late    bool // nobody has heard of its process for too long
	ended   bool
	reports int64
	report  []byte
}

// sharedRun is one step of a run that is cut, for the process that waits.
type sharedRun struct {
	*fleetParts
	job     executor.Job
	lease   lease.Lease
	deletes bool
	seen    map[int]int64
	own     sync.WaitGroup
	posted  time.Time
}

// Work implements executor.Parts.
func (p *fleetParts) Work(ctx context.Context, job executor.Job, parts []executor.PartJob, tell func(executor.PartReport)) error {
	o := p.f.s.engine.occupiedBy(job.Run)
	if o == nil || len(parts) == 0 {
		return errLeaseLost
	}
	w := &sharedRun{fleetParts: p, job: job, lease: o.t.lease, deletes: parts[0].Deletes, seen: map[int]int64{}}
	if err := w.post(ctx, parts); err != nil {
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

// post puts the parts into the table. What is left there of runs that have another
// fence by now goes.
func (w *sharedRun) post(ctx context.Context, parts []executor.PartJob) error {
	w.posted = time.Now()
	err := w.f.s.store.Update(ctx, func(tx *store.Tx) error {
		db := tx.PostgreSQL()
		if err := lease.Holds(ctx, db, w.lease); err != nil {
			return err
		}
		_, err := db.Exec(ctx, "DELETE FROM parts WHERE NOT EXISTS (SELECT FROM leases WHERE name = 'sync ' || sync AND leases.fence = parts.fence)")
		for _, part := range parts {
			part.Fence = w.lease.Fence
			text, failed := json.Marshal(part)
			if err == nil {
				err = failed
			}
			if err == nil {
				_, err = db.Exec(ctx, "INSERT INTO parts (sync, fence, number, deletes, job) VALUES ($1, $2, $3, $4, $5)",
					part.Sync, part.Fence, part.Number, part.Deletes, text)
			}
		}
		return errors.Join(err, tx.Notify(topicPart, ""))
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
		rows, err := w.rows(context.WithoutCancel(ctx))
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
func (w *sharedRun) look(rows []partRow, tell func(executor.PartReport), ending bool) (ended bool, err error) {
	ended = true
	for _, row := range rows {
		if row.reports > w.seen[row.number] {
			w.seen[row.number] = row.reports
			var report executor.PartReport
			if err := json.Unmarshal(row.report, &report); err != nil {
				return false, fmt.Errorf("read the report of part %d: %w", row.number, err)
			}
			tell(report)
		}
		switch {
		case row.ended:
		case row.late:
			w.f.s.log.Warn("a process that worked on a part of a run is lost", "run", w.job.Run, "part", row.number, "process", row.process)
			return false, errCalledOff
		case row.process == "" && ending: // nobody begins it any more
		case row.process == "" && (row.number == 1 || time.Since(w.posted) > w.f.pulse.others):
			ended = false
			w.takeUp(row.number)
		default:
			ended = false
		}
	}
	return ended, nil
}

func (w *sharedRun) rows(ctx context.Context) (rows []partRow, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.f.pulse.run)
	defer cancel()
	found, err := w.f.s.store.Pool().Query(ctx, `SELECT number, process, until <= clock_timestamp(), ended, reports, report
		FROM parts WHERE sync = $1 AND fence = $2 AND deletes = $3 ORDER BY number`, w.job.Sync, w.lease.Fence, w.deletes)
	if err != nil {
		return nil, err
	}
	var row partRow
	_, err = pgx.ForEachRow(found, []any{&row.number, &row.process, &row.late, &row.ended, &row.reports, &row.report}, func() error {
		rows = append(rows, row)
		row.report = nil
		return nil
	})
	return rows, err
}

// takeUp begins a part of the run here, if nobody else has by now.
func (w *sharedRun) takeUp(number int) {
	claimed, err := w.claim(w.ctx, "AND p.sync = $3 AND p.fence = $4 AND p.number = $5 AND p.deletes = $6",
		w.job.Sync, w.lease.Fence, number, w.deletes)
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.f.ctx), w.f.pulse.run)
	defer cancel()
	_, err := w.f.s.store.Pool().Exec(ctx, "UPDATE parts SET called = TRUE WHERE sync = $1 AND fence = $2", w.job.Sync, w.lease.Fence)
	if err == nil {
		err = w.f.s.store.Tell(ctx, topicPart, "")
	}
	return err
}

// drop clears the table; what is left is cleared by the next run that is cut.
func (w *sharedRun) drop() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.f.ctx), w.f.pulse.run)
	defer cancel()
	_, err := w.f.s.store.Pool().Exec(ctx, "DELETE FROM parts WHERE sync = $1 AND fence = $2 AND deletes = $3 AND (ended OR process = '')",
		w.job.Sync, w.lease.Fence, w.deletes)
	if err != nil {
		w.f.s.log.Warn("the parts of a run stay in their table", "run", w.job.Run, "error", err)
	}
}
