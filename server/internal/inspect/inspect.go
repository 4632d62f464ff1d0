// Package inspect answers questions about a sync without running it: what its next run
// would do, what became of one record, and whether its destination holds what its runs
// have claimed. Nothing is sent and nothing is changed. How an audit compares is left to
// sync/audit.
package inspect

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/journal"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/ledger"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// Inspector answers.
type Inspector struct {
	Shared   *call.Shared
	Clock    *clock.Clock
	Journal  *journal.Journal
	Gate     *destination.Gate
	Planning *runs.Planner
	Timeout  time.Duration // of one call of a read-back hook
	// Ledger and Executor are there when the service has started.
	Ledger   func() *ledger.Ledger
	Executor func() *executor.Executor
}

// Routes are those of the control API.
func (k *Inspector) Routes() []call.ControlRoute {
	return slices.Concat(k.explainRoutes(), k.dryRunRoutes(), k.auditRoutes())
}

// syncView is a sync as its next run would see it.
type syncView struct {
	job  *executor.Job
	plan *mapping.Plan
}

// viewOf opens both ends of a sync; done closes them. run may be nil.
func (k *Inspector) viewOf(ctx context.Context, y *store.Sync, run *store.SyncRun) (*syncView, func(), error) {
	if run == nil {
		run = &store.SyncRun{}
	}
	var to runs.Endpoint
	job, done, err := k.Planning.Job(ctx, y, run, &to, new(sources.ColumnWatch))
	var p *runs.PlanError
	if errors.As(err, &p) {
		message := p.Message
		if p.Detail != "" {
			message += ": " + p.Detail
		}
		return nil, nil, problem.Refuse(http.StatusConflict, "%s", message)
	}
	if err != nil {
		return nil, nil, err
	}
	plan, problems := mapping.Compile(job.Config, job.DestinationObject, job.Columns, mapping.Env{
		RunID: run.ID, SyncID: y.ID, Now: k.Clock.Now(), DestinationType: job.DestinationType,
		HiddenIdentifier: job.HiddenIdentifier, Segments: job.Segments,
	})
	if len(problems) > 0 {
		done()
		return nil, nil, problem.Refuse(http.StatusConflict, "the sync does not fit its source and destination any more: %s", problems[0])
	}
	return &syncView{job, plan}, done, nil
}

// syncWithRuns finds a sync of any workspace, with its runs in ascending order.
func (k *Inspector) syncWithRuns(ctx context.Context, id int64) (y *store.Sync, runs []*store.SyncRun, err error) {
	err = k.Shared.Store.View(ctx, func(tx *store.Tx) (err error) {
		if y, err = call.Known(tx, store.Syncs, "sync", id); err != nil {
			return err
		}
		runs, _, err = store.SyncRuns.List(tx, id, store.Page{Ascending: true})
		return err
	})
	return y, runs, err
}

// lastOf is the newest run that was not skipped; nil: there is none.
func lastOf(runs []*store.SyncRun) *store.SyncRun {
	for i := len(runs) - 1; i >= 0; i-- {
		if runs[i].Run.Status != api.RunSkipped {
			return runs[i]
		}
	}
	return nil
}
