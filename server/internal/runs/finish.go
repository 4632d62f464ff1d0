package runs

import (
	"cmp"
	"context"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// ending is the end of one run: its records in one transaction, and the work after
// the commit.
type ending struct {
	e        *Engine
	sync     *store.Sync
	outcome  executor.Outcome
	progress *Progress
	canceled bool

	status    string // of the sync
	run       *store.SyncRun
	again     *Retry           // nil when the run is not tried again
	followers []*store.SyncRun // of syncs that run after this one
	paused    *store.Sync      // the sync, when the run has paused it
}

// Finish records how a run has ended, and what follows from it.
func (e *Engine) Finish(ctx context.Context, y *store.Sync, run *store.SyncRun, o executor.Outcome, progress *Progress) error {
	end := &ending{e: e, sync: y, outcome: o, progress: progress, canceled: e.isCanceled(run.ID), status: api.SyncUpToDate}
	e.progress.forget(run.ID)
	err := e.record(ctx, run.ID, func(tx *store.Tx) error {
		kept, err := tx.SyncRun(run.WorkspaceID, run.ID)
		if err != nil {
			return err
		}
		if kept.Run.Status != api.RunWorking { // it was committed, and only the answer was lost
			end.run = cmp.Or(end.run, kept)
			return nil
		}
		end.run, end.followers, end.canceled = kept, nil, end.canceled || kept.Run.Canceled
		return end.record(tx)
	})
	if err != nil {
		return err
	}
	end.follow(context.WithoutCancel(ctx))
	return nil
}

// record writes the outcome into the run and the sync, and decides what comes next.
func (end *ending) record(tx *store.Tx) (err error) {
	e, y, run := end.e, end.sync, end.run
	end.describe()
	if err := store.SyncRuns.Save(tx, run); err != nil {
		return err
	}
	if err := KeepMerged(tx, y.ID, run.ID, end.outcome); err != nil {
		return err
	}
	if end.again, err = e.Retries.Ended(tx, y, run, end.outcome.Transient); err != nil {
		return err
	}
	if run.Run.Status == api.RunCompleted {
		if err := end.progress.to.Keep(tx, y.ID); err != nil {
			return err
		}
		if end.followers, err = e.Schedule.After(tx, y); err != nil {
			return err
		}
	}
	if err := end.progress.schema.Keep(tx, y, end.progress.planned, end.progress.generated); err != nil {
		return err
	}
	if end.outcome.Code == api.ErrorSchemaChanged {
		if end.paused, err = sources.Pause(tx, y); err != nil {
			return err
		}
	}
	return tx.SetSyncOutcome(y.ID, end.status, y.MatchRate)
}

// describe puts counters, status and error into the run as the API shows it.
func (end *ending) describe() {
	r, o := &end.run.Run, end.outcome
	countersOf(r, o.Counters)
	r.SchemaChanges = end.progress.schema.Changes
	r.Status, r.CurrentStep, r.CompletedAt = o.Status, nil, api.At(end.e.Clock.Now())
	r.FullSync = r.FullSync || o.FullSync
	if o.FullReason != "" && r.TriggerReason != nil {
		r.TriggerReason.UIDetail += "; full sync: " + o.FullReason
	}
	if o.Status != api.RunCompleted {
		end.status = api.SyncFailing
		r.ErrorCode, r.ErrorMessage, r.ErrorDetail = optional(o.Code), optional(o.Message), optional(o.Detail)
		r.CurrentStep = api.Ptr(end.progress.at())
	}
	if end.canceled {
		end.status, r.Status, r.Canceled = api.SyncFailing, api.RunFailed, true
		r.ErrorCode, r.ErrorMessage = api.Ptr(CodeCanceled), api.Ptr("The run was cancelled through the API")
	}
}

// follow lets go of the run and begins what follows.
func (end *ending) follow(ctx context.Context) {
	e, y, o := end.e, end.sync, end.outcome
	e.logOf(end.run.ID).Info("sync run ended", "status", end.run.Run.Status, "code", api.Value(end.run.Run.ErrorCode),
		"records", o.SourceRecords, "updated", o.Updated, "failed", o.Failed, "calls", o.Calls)
	e.Lifecycle.Ended(ctx, y, end.run)
	if end.paused != nil {
		e.Schedule.Put(end.paused)
	}
	e.Retention.Ended()
	e.Live.Ended(ctx, y, end.outcome, end.canceled)
	e.Retries.Put(y.WorkspaceID, y.ID, end.again)
	for _, follower := range end.followers {
		e.Launch(follower)
	}
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
