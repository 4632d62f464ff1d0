package runs

import (
	"log/slog"

	"github.com/destkit/destkit/server/internal/lifecycle"
	"github.com/destkit/destkit/server/internal/store"
)

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
