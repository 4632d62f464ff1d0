// Package runs owns what happens to runs: who makes them (clients, schedules, messages of
// topics, retries), how they are planned, queued, worked on, held and ended, how long
// their records are kept, and how these are found and shown. The way of a run from the
// first row to the last is left to sync/executor.
package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/background"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/destinations"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// SequenceParent is the sync that this one runs after; 0 for none.
func SequenceParent(config *api.SyncConfig) int64 {
	if config.Mode == nil || config.Mode.Triggers == nil || config.Mode.Triggers.SyncSequence == nil {
		return 0
	}
	return config.Mode.Triggers.SyncSequence.SyncID
}

// The waits between two tries to write down what became of a run; doubled from
// try to try.
const (
	FirstWait = time.Second
	MostWait  = time.Minute
)

// Planning is what starts runs need of the service.
type Planning struct {
	Shared *call.Shared
	Log    *slog.Logger
	Clock  *clock.Clock
	Work   *background.Work
	Runs   *Engine // makes runs and lets them work
	// Ledger holds the acknowledgements, once it is open.
	Ledger func() *ledger.Ledger
	// Position is how far a sync has read its topic.
	Position func(syncID int64) (int64, error)
}

// Booked reports whether a sync has run before.
func (p Planning) Booked(syncID int64) (bool, error) {
	runs, err := p.Ledger().Sync(syncID).Runs()
	return len(runs) > 0, err
}

// Planner plans runs. Its fields are its dependencies.
type Planner struct {
	Shared       *call.Shared
	Log          *slog.Logger
	Sources      *sources.Sources
	Destinations *destinations.Destinations
	Gate         *destination.Gate
	Deviations   executor.Deviations
	// Ask makes calls of a destination with the retries of a run (executor.Ask).
	Ask func(ctx context.Context, connection int64, fn func(ctx context.Context) error) error
}

// CodeFailed is the error code of a run whose destination cannot be reached.
const CodeFailed = "PLANNING_FAILED"

// PlanError is why a run cannot be planned: the error code of the run, its message, its
// details, and the cause.
type PlanError struct {
	Code, Message, Detail string
	Transient             bool // it may pass by itself
	Cause                 error
}

func (p *PlanError) Error() string { return p.Message }
func (p *PlanError) Unwrap() error { return p.Cause }

// PlanFailure is the outcome of a run that err has kept from being planned.
func PlanFailure(err error) executor.Outcome {
	var p *PlanError
	if !errors.As(err, &p) {
		p = &PlanError{Code: CodeFailed, Message: err.Error()}
	}
	return executor.Outcome{Status: api.RunFailed, Code: p.Code, Message: p.Message, Detail: p.Detail, Transient: p.Transient, Cause: err}
}

// merged is what the store knows of the ledger of a sync: by it a run finds that files
// of the ledger are gone, or are those of an earlier day.
type merged struct {
	run       int64 // the newest run that the state has
	completed int64 // the newest of those that came to their end; 0: none
}

func mergedSetting(syncID int64) string { return fmt.Sprintf("merged of sync %d", syncID) }

func mergedOf(tx *store.Tx, syncID int64) (m merged, err error) {
	text, err := setting(tx, mergedSetting(syncID))
	if err == nil && text != "" {
		if _, err = fmt.Sscan(text, &m.run, &m.completed); err != nil {
			err = fmt.Errorf("read setting %s: %w", mergedSetting(syncID), err)
		}
	}
	return m, err
}

// tell passes it to a job, with the progress of an interrupted run.
func (m merged) tell(job *executor.Job, run *store.SyncRun) {
	job.Merged, job.Completed = m.run, m.completed > 0
	if n := run.Run.RecordsProcessed; n != nil {
		job.Reported = *n
	}
}

// KeepMerged notes a run that the state has taken over.
func KeepMerged(tx *store.Tx, syncID, runID int64, o executor.Outcome) error {
	if !o.Merged {
		return nil
	}
	m, err := mergedOf(tx, syncID)
	if err != nil {
		return err
	}
	if m.run = runID; o.Status == api.RunCompleted {
		m.completed = runID
	}
	return tx.SetSetting(mergedSetting(syncID), fmt.Sprint(m.run, m.completed))
}

// dryKey marks the context of a dry run.
type dryKey struct{}

// Dry is a context in which nothing may be stored.
func Dry(ctx context.Context) context.Context { return context.WithValue(ctx, dryKey{}, true) }

// isDry reports whether a run is resolved as a dry one.
func isDry(ctx context.Context) bool { return ctx.Value(dryKey{}) == true }
