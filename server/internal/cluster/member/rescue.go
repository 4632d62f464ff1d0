package member

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/cluster/jobs"
	"github.com/destkit/destkit/server/internal/cluster/lease"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/store"
)

// FirstTurn is that of a run that was just made.
const FirstTurn = 1

// Enqueue lets any process work on a run, with the change that makes it.
func (m *Member) Enqueue(tx *store.Tx, run *store.SyncRun) error {
	return m.enqueue(tx, run, FirstTurn)
}

// enqueue puts a run into the queue.
func (m *Member) enqueue(tx *store.Tx, run *store.SyncRun, turn int64) error {
	return m.queue.Add(m.ctx, tx.PostgreSQL(), jobs.Run{ID: run.ID, WorkspaceID: run.WorkspaceID, SyncID: run.SyncID, Turn: turn})
}

// Launched is told of a run that is in the queue. While this process is alone, it starts
// here.
func (m *Member) Launched(ctx context.Context, run *store.SyncRun) {
	if m.company.Load() == 0 && m.About.Workers > 0 && !m.drained.Load() {
		m.Engine.Expect(ctx, run)
	}
}

// turnIn is the turn that a setting holds. What is none is the first: whoever finds
// the run left lets it go on, and only one may work on it.
func turnIn(text string) int64 {
	if turn, err := strconv.ParseInt(text, 10, 64); err == nil && turn >= FirstTurn && turn < math.MaxInt64 {
		return turn
	}
	return FirstTurn
}

// turnOf reads the present turn of a run.
func turnOf(tx *store.Tx, runID int64) (int64, error) {
	text, err := tx.Setting(runs.TurnSetting(runID))
	if errors.Is(err, store.ErrNotFound) {
		return FirstTurn, nil
	}
	if err != nil {
		return 0, err
	}
	return turnIn(text), nil
}

// rescue gives runs to others whose process is dead or frozen. What was seen twice
// counts: between two steps of a run there are moments without job and lease.
func (r *leadership) rescue(ctx context.Context) error {
	left, err := r.m.left(ctx)
	if err != nil {
		return err
	}
	before := r.lost
	r.lost = map[int64]bool{}
	var again []jobs.Run
	for _, run := range left {
		if before[run.ID] {
			again = append(again, run)
		}
		r.lost[run.ID] = true
	}
	return errors.Join(r.m.nextTurn(ctx, again), r.m.Engine.ForgetOver(ctx))
}

// left are the runs that no process works on or will.
func (m *Member) left(ctx context.Context) (left []jobs.Run, err error) {
	var open []jobs.Run
	err = m.Shared.Store.View(ctx, func(tx *store.Tx) error {
		active, err := tx.EveryActiveRun()
		if err != nil || len(active) == 0 {
			return err
		}
		turns, err := tx.Settings(runs.TurnSettings)
		for _, run := range active {
			open = append(open, jobs.Run{ID: run.ID, WorkspaceID: run.WorkspaceID, SyncID: run.SyncID, Turn: turnIn(turns[runs.TurnSetting(run.ID)])})
		}
		return err
	})
	if err != nil || len(open) == 0 {
		return nil, err
	}
	lost, err := m.queue.Lost(ctx, open)
	if err != nil || len(lost) == 0 {
		return nil, err
	}
	names := make([]string, len(lost))
	for i, run := range lost {
		names[i] = lease.OfSync(run.SyncID)
	}
	held, err := m.leases.Held(ctx, names...)
	for _, run := range lost {
		if held[lease.OfSync(run.SyncID)] == "" {
			left = append(left, run)
		}
	}
	return left, err
}

// nextTurn lets runs go on.
func (m *Member) nextTurn(ctx context.Context, lost []jobs.Run) error {
	var failures []error
	for _, run := range lost {
		taken := false
		err := m.Shared.Store.Update(ctx, func(tx *store.Tx) error {
			now, err := tx.SyncRun(run.WorkspaceID, run.ID)
			if err != nil || now.Run.Status != api.RunQueued && now.Run.Status != api.RunWorking {
				return err
			}
			// Two leaders, one of them late, must not add two turns.
			turn, err := turnOf(tx, run.ID)
			if err != nil || turn != run.Turn {
				return err
			}
			if err := tx.SetSetting(runs.TurnSetting(run.ID), strconv.FormatInt(turn+1, 10)); err != nil {
				return err
			}
			taken = true
			return m.enqueue(tx, now, turn+1)
		})
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			failures = append(failures, fmt.Errorf("let run %d go on: %w", run.ID, err))
		case taken:
			m.takeovers.Add(1)
			m.Log.Warn("a run that no process worked on goes on", "run", run.ID, "sync", run.SyncID, "workspace", run.WorkspaceID, "turn", run.Turn+1)
		}
	}
	return errors.Join(failures...)
}

// Resume lets everything go on that was held, or has come with another world.
func (m *Member) Resume(ctx context.Context) error {
	left, err := m.left(ctx)
	if err != nil {
		return err
	}
	return errors.Join(m.nextTurn(ctx, left), m.Engine.ExpectActive(ctx))
}
