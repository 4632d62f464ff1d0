package rest

import (
	"net/http"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// ownRun finds the run of the path, of any sync of the workspace.
var ownRun = one(callersWorkspace, "sync_run_id", (*store.Tx).SyncRun)

// triggerSync queues a run. While an earlier one of the sync is active the new
// one is skipped. Clients force a full sync in the query or in the
// body.
func (h *Handlers) triggerSync(c *call.Call) (*call.Reply, error) {
	var body struct {
		Force bool `json:"force_full_sync"`
	}
	if err := c.Decode(&body); err != nil {
		return nil, err
	}
	force := body.Force || c.Flag("force_full_sync")
	run := &store.SyncRun{WorkspaceID: c.Who.WorkspaceID}
	err := c.Update(func(tx *store.Tx) error {
		y, err := ownSync(c, tx)
		if err != nil {
			return err
		}
		if force && executor.SentOnce(&y.Config) {
			return problem.InvalidField("force_full_sync", "append syncs and event-based activation have no full sync: each row is sent once")
		}
		run.SyncID = y.ID
		return h.Runs.Queue(tx, run, force, api.TriggerReason{UITag: api.ReasonManual, UIDetail: "Manually triggered through the API"})
	})
	if err != nil {
		return nil, err
	}
	h.Runs.Launch(run)
	return call.OK(map[string]int64{"sync_run_id": run.ID})
}

// cancelSyncRun ends a run that is not over. It counts as failed, with canceled
// true; what was acknowledged stays.
func (h *Handlers) cancelSyncRun(c *call.Call) (*call.Reply, error) {
	var told func()
	err := c.Update(func(tx *store.Tx) error {
		run, err := ownRun(c, tx)
		if err != nil {
			return err
		}
		if run.Run.Status != api.RunQueued && run.Run.Status != api.RunWorking {
			return problem.Refuse(http.StatusConflict, "the run is over (%s); only a queued or working one can be cancelled", run.Run.Status)
		}
		told, err = h.Runs.CallOff(c.Ctx, tx, run)
		return err
	})
	if err != nil {
		return nil, err
	}
	told()
	return &call.Reply{Code: http.StatusOK, Body: api.Reply{Status: api.StatusCancelled, Data: struct{}{}}}, nil
}
