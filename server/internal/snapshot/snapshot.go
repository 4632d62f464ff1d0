// Package snapshot copies, restores and resets the state of a service: the store, and the
// state outside it (destinations, warehouses, ledgers, the clock). The runs are stopped
// and calls are held meanwhile, so that nothing changes under either. The form of the
// stream is that of archive.
package snapshot

import (
	"log/slog"

	"github.com/destkit/destkit/server/internal/binding"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/connectors"
	"github.com/destkit/destkit/server/internal/faults"
	"github.com/destkit/destkit/server/internal/journal"
	"github.com/destkit/destkit/server/internal/lifecycle"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/rest"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/statelock"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// MaxSize bounds what a caller sends as a snapshot, in bytes.
const MaxSize = 4 << 30

// Snapshots takes and restores snapshots, and resets the service, part by part.
type Snapshots struct {
	Shared        *call.Shared
	Log           *slog.Logger
	Clock         *clock.Clock
	Lock          *statelock.Lock
	Journal       *journal.Journal
	Faults        *faults.Faults
	Gate          *destination.Gate
	Sources       *sources.Sources
	Ledger        func() *ledger.Ledger
	Organizations *organizations.Organizations
	Connectors    *connectors.Connectors
	Rest          *rest.Handlers
	Engine        *runs.Engine
	Schedule      *runs.Schedule
	Retention     *runs.Retention
	Lifecycle     *lifecycle.Lifecycle
	Mail          *lifecycle.Mailer
	Binding       *binding.Binding
	Dir           string // the data directory; "" in memory
	Version       string // of the program
	Dialect       string
}
