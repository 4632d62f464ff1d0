package server

import (
	"errors"
	"net/http"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// listSyncRuns lists the runs of one sync, which must be the caller's.
func (s *Server) listSyncRuns(c *call.Call) (*call.Reply, error) {
	return call.PageOf(c, func(tx *store.Tx, page store.Page) ([]*store.SyncRun, int64, error) {
		y, err := tx.Sync(c.Who.WorkspaceID, c.ID("sync_id"))
		if err != nil {
			return nil, 0, err
		}
		return tx.SyncRuns(y.ID, page)
	}, s.engine.shown)
}

// syncRunOf shows a run (spec 2.9).
func syncRunOf(run *store.SyncRun) api.SyncRun {
	shown := run.Run
	shown.ID, shown.SyncID = run.ID, run.SyncID
	shown.CreatedAt, shown.UpdatedAt = api.Time{Time: run.CreatedAt}, api.Time{Time: run.UpdatedAt}
	return shown
}

// fetchSyncRun shows one run of any sync of the workspace.
func (s *Server) fetchSyncRun(c *call.Call) (*call.Reply, error) {
	return call.OneOf(c, func(c *call.Call, tx *store.Tx) (*store.SyncRun, error) {
		return tx.SyncRun(c.Who.WorkspaceID, c.ID("sync_run_id"))
	}, s.engine.shown)
}

// triggerSync queues a run. While an earlier one of the sync is active the new
// one is skipped. Clients force a full sync in the query or in the
// body.
func (s *Server) triggerSync(c *call.Call) (*call.Reply, error) {
	var body struct {
		Force bool `json:"force_full_sync"`
	}
	if err := c.Decode(&body); err != nil {
		return nil, err
	}
	force := body.Force || c.Flag("force_full_sync")
	run := &store.SyncRun{WorkspaceID: c.Who.WorkspaceID}
	err := c.Update(func(tx *store.Tx) error {
		y, err := tx.Sync(c.Who.WorkspaceID, c.ID("sync_id"))
		if err != nil {
			return err
		}
		if force && executor.SentOnce(&y.Config) {
			return problem.InvalidField("force_full_sync", "append syncs and event-based activation have no full sync: each row is sent once")
		}
		run.SyncID = y.ID
		return s.queue(tx, run, force, api.TriggerReason{UITag: api.ReasonManual, UIDetail: "Manually triggered through the API"})
	})
	if err != nil {
		return nil, err
	}
	s.launch(run)
	return call.OK(map[string]int64{"sync_run_id": run.ID})
}

// launch hands a queued run to the engine; one that was skipped stays so.
func (s *Server) launch(run *store.SyncRun) {
	if run.ID != 0 && run.Run.Status == api.RunQueued {
		s.lifecycle.Queued(s.background.Ctx, run)
		if s.fleet != nil {
			s.engine.expect(s.background.Ctx, run) // it is in the queue already
			return
		}
		s.engine.start(run.WorkspaceID, run.ID)
	}
}

// runQueue is how what falls due makes runs.
type runQueue struct{ s *Server }

func (q runQueue) Queue(tx *store.Tx, run *store.SyncRun, full bool, reason api.TriggerReason) error {
	return q.s.queue(tx, run, full, reason)
}

func (q runQueue) Launch(run *store.SyncRun) { q.s.launch(run) }

// queue creates a run: queued, or skipped while another one is active.
func (s *Server) queue(tx *store.Tx, run *store.SyncRun, full bool, reason api.TriggerReason) error {
	now := s.clock.Now()
	run.Run = api.SyncRun{
		Status: api.RunQueued, FullSync: full, TriggerReason: &reason,
		ScheduledExecutionTime: api.At(now), CurrentStep: api.Ptr("Waiting to run"),
	}
	switch _, err := tx.ActiveRun(run.SyncID); {
	case err == nil:
		run.Run.Status, run.Run.CompletedAt, run.Run.CurrentStep = api.RunSkipped, api.At(now), nil
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	if err := tx.CreateSyncRun(run); err != nil || run.Run.Status != api.RunQueued {
		return err
	}
	return s.fleet.enqueue(tx, run, firstTurn)
}

// errorCanceled is the error_code of a cancelled run.
const errorCanceled = "CANCELED"

// cancelSyncRun ends a run that is not over. It counts as failed, with canceled
// true; what was acknowledged stays.
func (s *Server) cancelSyncRun(c *call.Call) (*call.Reply, error) {
	var y *store.Sync
	var ended *store.SyncRun
	err := c.Update(func(tx *store.Tx) error {
		run, err := tx.SyncRun(c.Who.WorkspaceID, c.ID("sync_run_id"))
		if err != nil {
			return err
		}
		if run.Run.Status != api.RunQueued && run.Run.Status != api.RunWorking {
			return problem.Refuse(http.StatusConflict, "the run is over (%s); only a queued or working one can be cancelled", run.Run.Status)
		}
		// The engine writes its end, here or in another process.
		if s.engine.cancel(run.ID) || s.fleet != nil && run.Run.Status == api.RunWorking {
			return s.fleet.cancel(tx, run.ID)
		}
		run.Run.Status, run.Run.Canceled = api.RunFailed, true
		run.Run.ErrorCode, run.Run.ErrorMessage = api.Ptr(errorCanceled), api.Ptr("The run was cancelled through the API")
		run.Run.CompletedAt = api.At(s.clock.Now())
		if y, err = tx.Sync(run.WorkspaceID, run.SyncID); err != nil {
			return err
		}
		ended = run
		return tx.SaveSyncRun(run)
	})
	if err != nil {
		return nil, err
	}
	if ended != nil {
		s.lifecycle.Ended(c.Ctx, y, ended)
	}
	return &call.Reply{Code: http.StatusOK, Body: api.Reply{Status: api.StatusCancelled, Data: struct{}{}}}, nil
}
