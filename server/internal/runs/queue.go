package runs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/cluster"
	"github.com/destkit/destkit/server/internal/store"
)

// Queue creates a run: queued, or skipped while another one is active.
func (e *Engine) Queue(tx *store.Tx, run *store.SyncRun, full bool, reason api.TriggerReason) error {
	now := e.Clock.Now()
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
	return e.processes.Enqueue(tx, run)
}

// Launch lets a queued run work, when it is stored; one that was skipped stays so.
func (e *Engine) Launch(run *store.SyncRun) {
	if run.ID != 0 && run.Run.Status == api.RunQueued {
		e.Lifecycle.Queued(e.Work.Ctx, run)
		e.processes.Launched(e.Work.Ctx, run)
	}
}

// CodeCanceled is the error code of a cancelled run.
const CodeCanceled = "CANCELED"

// CallOff ends a run that is queued or works, in the change that a client has asked for.
// told tells people and webhooks of the end, when the change is stored.
func (e *Engine) CallOff(ctx context.Context, tx *store.Tx, run *store.SyncRun) (told func(), err error) {
	// Whoever works on it writes its end, here or in another process.
	if e.Cancel(run.ID) || e.Shared.Store.Shared() && run.Run.Status == api.RunWorking {
		return func() {}, e.mark(tx, run.ID)
	}
	run.Run.Status, run.Run.Canceled = api.RunFailed, true
	run.Run.ErrorCode, run.Run.ErrorMessage = api.Ptr(CodeCanceled), api.Ptr("The run was cancelled through the API")
	run.Run.CompletedAt = api.At(e.Clock.Now())
	y, err := tx.Sync(run.WorkspaceID, run.SyncID)
	if err != nil {
		return nil, err
	}
	return func() { e.Lifecycle.Ended(ctx, y, run) }, tx.SaveSyncRun(run)
}

// cancelSetting is there while a run is to end that works in another process.
func cancelSetting(runID int64) string { return fmt.Sprintf("cancel of run %d", runID) }

// mark marks a run to end, where it may work in another process. The mark stays until the
// run is over: a notice may be lost, and so may the process.
func (e *Engine) mark(tx *store.Tx, runID int64) error {
	if !e.Shared.Store.Shared() {
		return nil
	}
	if err := tx.SetSetting(cancelSetting(runID), tx.Now().Format(time.RFC3339)); err != nil {
		return err
	}
	return cluster.Tell(tx, cluster.TopicCancel, runID)
}

// Canceled reports whether a run bears the mark.
func Canceled(tx *store.Tx, runID int64) (bool, error) {
	_, err := tx.Setting(cancelSetting(runID))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// TurnSettings begins the names of the settings that hold the turns of runs.
const TurnSettings = "turn of run "

// TurnSetting holds the present turn of a run that is not in its first: how often it was
// put into the queue, since no process worked on it.
func TurnSetting(runID int64) string { return TurnSettings + strconv.FormatInt(runID, 10) }

// over drops what was kept about a run for other processes while it was not over.
func (e *Engine) over(tx *store.Tx, run *store.SyncRun) error {
	if !e.Shared.Store.Shared() {
		return nil
	}
	return errors.Join(tx.DeleteSetting(cancelSetting(run.ID)), tx.DeleteSetting(TurnSetting(run.ID)))
}
