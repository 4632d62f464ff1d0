package runs

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/descriptors"
	"github.com/destkit/destkit/server/internal/lifecycle"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// OpenFiles is how many files a run has open at most, besides its connections to the
// destination: the database of its source with log and index, its ledger, and what does
// not fit into memory.
const OpenFiles = 16

// admit lets a run start when there are descriptors for all that it opens: a started
// run never waits for them. Until then it is queued, and the clock moves on. The
// outcome is that of a run that has waited in vain; one whose wait was ended by another
// has none.
func (e *Engine) admit(ctx context.Context) (release func(), o executor.Outcome) {
	budget := e.Files
	release, ok := budget.Try(OpenFiles)
	if ok {
		return release, o
	}
	resume := e.Clock.Pause(ctx)
	defer resume()
	release, err := budget.Take(ctx, OpenFiles, resume)
	if err == nil {
		return release, o
	}
	var none *descriptors.ExhaustedError
	if errors.As(err, &none) {
		o = PlanFailure(&PlanError{Code: CodeFailed, Message: "the run could not begin", Detail: none.Error(), Transient: true, Cause: err})
	}
	return func() {}, o
}

// logOf is the log of a run that works.
func (e *Engine) logOf(runID int64) *slog.Logger {
	e.mu.Lock()
	defer e.mu.Unlock()
	if working := e.working[runID]; working != nil && working.log != nil {
		return working.log
	}
	return e.Log.With("run", runID)
}

// named remembers whose a run is.
func (e *Engine) named(run *store.SyncRun) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if working := e.working[run.ID]; working != nil {
		working.syncID, working.log = run.SyncID, lifecycle.RunLog(e.Log, run)
	}
}

// Position is up to where a sync has settled the messages of its topic.
func Position(books *ledger.Ledger, syncID int64) (mark int64, err error) {
	meta, err := books.Sync(syncID).Meta()
	if err != nil || meta.Damaged || len(meta.HighWater) == 0 || json.Unmarshal(meta.HighWater, &mark) != nil {
		return 0, err // it reads everything again
	}
	return mark, nil
}

// matchRate measures how many of the records that the last run sent to an
// audience the application recognises (spec 2.6). A run that sent nothing, and
// an object that is no audience, keep the earlier rate.
func (e *Engine) matchRate(y *store.Sync, run *store.SyncRun, destinationType string) (*api.MatchRate, error) {
	object := y.Config.DestinationAttributes.Object
	const page = 1000
	matched, sent := 0, int64(0)
	for after := int64(0); ; after += page {
		logged, total, err := e.Ledger().Sync(y.ID).Records(run.ID, ledger.Filter{Verdict: ledger.Acknowledged, Operation: api.OperationUpsert}, after, page)
		if err != nil {
			return y.MatchRate, err
		}
		sent = total
		keys := make([]json.RawMessage, len(logged))
		for i, record := range logged {
			keys[i] = record.Key
		}
		matched += e.Gate.Matched(destinationType, object, keys)
		if len(logged) < page {
			break
		}
	}
	if sent == 0 {
		return y.MatchRate, nil
	}
	return &api.MatchRate{MatchRate: float64(matched) / float64(sent), LastCalculatedAt: api.Time{Time: e.Clock.Now()}}, nil
}
