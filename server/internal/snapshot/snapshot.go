// Package snapshot copies, restores and resets the state of a service: the store, and the
// state outside it (destinations, warehouses, ledgers, the clock). The runs are stopped
// and calls are held meanwhile, so that nothing changes under either. The form of the
// stream is that of archive.
package snapshot

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/destkit/destkit/server/internal/binding"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/connectors"
	"github.com/destkit/destkit/server/internal/faults"
	"github.com/destkit/destkit/server/internal/journal"
	"github.com/destkit/destkit/server/internal/lifecycle"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/problem"
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

// Routes take the whole state for themselves, and so must not hold it already.
func (s *Snapshots) Routes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("GET", "/snapshot", "the whole state as a tar stream; runs stop and calls wait while it is copied; ?settle=true lets runs end first", s.get),
		call.Route("POST", "/reset", "takes the service back to its first organization; journals, faults and mailbox are emptied, the clock runs on", func(c *call.Control) (any, error) {
			return call.Done, s.Reset(c.R.Context())
		}),
		call.Route("POST", "/restore", "body: a snapshot; replaces the whole state or changes nothing", s.post),
	}
}

// get sends the spooled snapshot; a client that reads slowly holds nothing up.
func (s *Snapshots) get(c *call.Control) (any, error) {
	query, err := c.Query("settle")
	if err != nil {
		return nil, err
	}
	switch query.Get("settle") {
	case "", "false":
	case "true":
		if err := s.Clock.Settle(c.R.Context()); err != nil {
			return nil, err
		}
	default:
		return nil, problem.InvalidField("settle", "must be true or false")
	}
	spooled, err := s.take(c.R.Context())
	if err != nil {
		return nil, err
	}
	defer spooled.Close()
	c.W.Header().Set("Content-Type", "application/x-tar")
	c.W.Header().Set("Content-Disposition", `attachment; filename="destkit-snapshot.tar"`)
	c.W.Header().Set("Content-Length", fmt.Sprint(spooled.Size()))
	if _, err := io.Copy(c.W, spooled.Reader()); err != nil {
		s.Log.Warn("snapshot was not read to its end", "error", err)
	}
	return nil, nil
}

// post answers once the other state is in place.
func (s *Snapshots) post(c *call.Control) (any, error) {
	if err := s.Restore(c.R.Context(), http.MaxBytesReader(c.W, c.R.Body, MaxSize)); err != nil {
		return nil, Refused(err)
	}
	return call.Done, nil
}
