// Package runs owns what happens to runs: who makes them (clients, schedules, messages of
// topics, retries), how they are planned, queued, worked on, held and ended, how long
// their records are kept, and how these are found and shown. The way of a run from the
// first row to the last is left to sync/executor.
package runs

import (
	"log/slog"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/background"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/sync/clock"
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
