package rest

import (
	"bytes"
	"errors"
	"net/http"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/ledger"
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
// true; acknowledged records stay.
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

// fetchSyncRunRecords lists what became of each record of a run.
func (h *Handlers) fetchSyncRunRecords(c *call.Call) (*call.Reply, error) {
	var run *store.SyncRun
	var y *store.Sync
	err := c.View(func(tx *store.Tx) (err error) {
		if run, err = tx.SyncRun(c.Who.WorkspaceID, c.ID("sync_run_id")); err == nil {
			y, err = store.Syncs.Read(tx, c.Who.WorkspaceID, run.SyncID)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if runs.Forgotten(run, h.Clock.Now()) {
		return nil, problem.Refuse(http.StatusGone, "the records of this run are not kept any more; they are for 14 days")
	}
	query, event := c.R.URL.Query(), runs.EventField(y)
	filter := ledger.Filter{Operation: query.Get("operation")}
	if text := query.Get("primary_identifier"); text != "" {
		key, other := runs.IdentifierKeys(text)
		if filter.Key, filter.OrKey = key, other; event != "" {
			filter = ledger.Filter{Operation: filter.Operation, Also: func(r *ledger.Record) bool {
				got := runs.RecordIdentifier(event, r)
				return got != nil && (bytes.Equal(got, key) || other != nil && bytes.Equal(got, other))
			}}
		}
	}
	for _, verdict := range []ledger.Verdict{ledger.Acknowledged, ledger.Rejected, ledger.Invalid} {
		if verdict.String() == query.Get("status") {
			filter.Verdict = verdict
		}
	}
	if run.Run.CompletedAt == nil {
		// Records on their way have no result yet. Once the run is over, it is known that none comes.
		filter.Also = answered(filter.Also)
	}
	page := c.Page()
	var logged []ledger.Logged
	var total int64
	// A page so far away that its place overflows has nothing, as one past the end.
	first := (page.Number - 1) * page.PerPage
	if first/page.PerPage != page.Number-1 {
		first = 1 << 62
	}
	logged, total, err = h.Ledger().Sync(run.SyncID).Records(run.ID, filter, first, page.PerPage)
	switch {
	case errors.Is(err, ledger.ErrDamaged):
		h.Log.Error("the log of a run is damaged", "run", run.ID, "sync", run.SyncID, "error", err)
		return nil, problem.Refuse(http.StatusGone, "the records of this run cannot be read any more: the file of its log is damaged")
	case !errors.Is(err, ledger.ErrNoRun):
	case run.Run.RecordsProcessed != nil && *run.Run.RecordsProcessed > 0:
		return nil, problem.Refuse(http.StatusGone, "the records of this run are not kept any more: the sync has another identifier or object since, or its ledger was lost")
	default: // it ended before there was anything to write down
		err = nil
	}
	if err != nil {
		return nil, err
	}
	shown := make([]api.SyncRunRecord, len(logged))
	for i := range logged {
		shown[i] = runs.ShownRecord(&logged[i], event)
	}
	return c.List(page, total, shown)
}

// answered leaves out the records that were sent and not answered.
func answered(also func(*ledger.Record) bool) func(*ledger.Record) bool {
	return func(r *ledger.Record) bool { return !runs.InDoubt(r) && (also == nil || also(r)) }
}
