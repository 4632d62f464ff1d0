package runs

import (
	"context"
	"errors"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/ledger"
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
	return store.SyncRuns.Create(tx, run)
}

// Launch lets a queued run work, when it is stored; one that was skipped stays so.
func (e *Engine) Launch(run *store.SyncRun) {
	if run.ID != 0 && run.Run.Status == api.RunQueued {
		e.Lifecycle.Queued(e.Work.Ctx, run)
		e.Start(run.WorkspaceID, run.ID)
	}
}

// CodeCanceled is the error code of a cancelled run.
const CodeCanceled = "CANCELED"

// CallOff ends a run that is queued or works, in the change that a client requested.
// told notifies people and webhooks of the end, once the change is stored.
func (e *Engine) CallOff(ctx context.Context, tx *store.Tx, run *store.SyncRun) (told func(), err error) {
	run.Run.Canceled = true
	if e.Cancel(run.ID) { // who works on it writes its end, or who resumes it
		return func() {}, store.SyncRuns.Save(tx, run)
	}
	return e.endCanceled(ctx, tx, run)
}

// endCanceled ends a cancelled run that no goroutine works on. It counts what the
// destination acknowledged before that.
func (e *Engine) endCanceled(ctx context.Context, tx *store.Tx, run *store.SyncRun) (told func(), err error) {
	r := &run.Run
	if r.Status == api.RunWorking {
		sums, err := e.Ledger().Sync(run.SyncID).Sums(run.ID)
		if err != nil && !errors.Is(err, ledger.ErrNoRun) {
			return nil, err
		}
		processed := sums.Updated + sums.Failed
		countersOf(r, executor.Counters{
			SourceRecords: api.Value(r.SourceRecordCount), SourceUpdates: processed - sums.Deleted, SourceDeletes: sums.Deleted,
			SourceInvalids: sums.Invalid, Processed: processed, Updated: sums.Updated, Failed: sums.Failed, Invalid: sums.Invalid,
		})
	}
	r.Status, r.CompletedAt = api.RunFailed, api.At(e.Clock.Now())
	r.ErrorCode, r.ErrorMessage = api.Ptr(CodeCanceled), api.Ptr("The run was cancelled through the API")
	y, err := store.Syncs.Read(tx, run.WorkspaceID, run.SyncID)
	if err != nil {
		return nil, err
	}
	return func() { e.Lifecycle.Ended(ctx, y, run) }, store.SyncRuns.Save(tx, run)
}
