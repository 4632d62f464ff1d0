// Package snapshot owns how the state of a service is taken at one moment, written, and
// brought back: the store, and what lies beside it (destinations, warehouses, ledgers, the
// clock). The form of the stream is that of archive. It refuses to know what else hangs on
// the state: the service holds its runs and puts the new state into place by the functions
// that it hands in.
package snapshot

import (
	"context"
	"log/slog"

	"github.com/destkit/destkit/server/internal/archive"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/journal"
	"github.com/destkit/destkit/server/internal/latch"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// atOnce bounds the snapshots that are being made: each has files of its own.
const atOnce = 4

// MaxSize bounds what a caller sends as a snapshot, in bytes.
const MaxSize = 4 << 30

// Parts are what snapshots need of the service.
type Parts struct {
	Shared  *call.Shared
	Log     *slog.Logger
	Clock   *clock.Clock
	Latch   *latch.Latch
	Journal *journal.Journal
	Gate    *destination.Gate
	Sources *sources.Sources
	Ledger  func() *ledger.Ledger
	Dir     string // the data directory; "" in memory
	About   About
	Service Service
}

// About is what a snapshot says of the service that it is of.
type About struct{ Version, Dialect string }

// Service is what the service does around a snapshot.
type Service struct {
	// Hold stops the runs where they are until release.
	Hold func(ctx context.Context) (release func(), err error)
	// Replace swaps the whole state for that of an archive. Where it fails, the state
	// before is put back by another call.
	Replace func(ctx context.Context, a *archive.Archive) error
	// Forget drops what is known of calls of the state before.
	Forget func()
}

// Snapshots takes and restores.
type Snapshots struct {
	shared  *call.Shared
	log     *slog.Logger
	clock   *clock.Clock
	latch   *latch.Latch
	journal *journal.Journal
	outside outside
	places  chan struct{} // one for each snapshot that is being made
	dir     string
	about   About
	service Service
}

// New assembles it.
func New(p Parts) *Snapshots {
	return &Snapshots{
		shared: p.Shared, log: p.Log, clock: p.Clock, latch: p.Latch, journal: p.Journal,
		outside: outside{gate: p.Gate, sources: p.Sources, ledger: p.Ledger},
		places:  make(chan struct{}, atOnce), dir: p.Dir, about: p.About, service: p.Service,
	}
}
