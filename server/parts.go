package server

import (
	"log/slog"
	"net/http"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/server/internal/background"
	"github.com/destkit/destkit/server/internal/binding"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/connectors"
	"github.com/destkit/destkit/server/internal/control"
	"github.com/destkit/destkit/server/internal/destinations"
	"github.com/destkit/destkit/server/internal/faults"
	"github.com/destkit/destkit/server/internal/inspect"
	"github.com/destkit/destkit/server/internal/journal"
	"github.com/destkit/destkit/server/internal/lifecycle"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/rest"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/seam"
	"github.com/destkit/destkit/server/internal/seed"
	"github.com/destkit/destkit/server/internal/snapshot"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/statelock"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// base is what every part needs: it is there before the store is opened, and
// stays when the state is replaced.
type base struct {
	shared     *call.Shared // by all calls
	dialect    call.Switches
	log        *slog.Logger
	clock      *clock.Clock
	timing     *control.Clock // of the clock, as people move it
	lock       *statelock.Lock
	background *background.Work
	seams      seam.Seams // of tests
}

// state is what the service keeps, and what gives it another one.
type state struct {
	store     *store.Store
	ledger    *ledger.Ledger
	binding   *binding.Binding // of the two
	snapshots *snapshot.Snapshots
	first     *Tokens // where this start has made the first organization
}

// work is what happens to syncs over time.
type work struct {
	engine    *runs.Engine
	executor  *executor.Executor
	schedule  *runs.Schedule
	retention *runs.Retention
	live      *runs.Live
	retries   *runs.Retries
	planning  *runs.Planner
	inspect   *inspect.Inspector
	lifecycle *lifecycle.Lifecycle
	mail      *lifecycle.Mailer
}

// resources are what the API and the control API are about.
type resources struct {
	organizations *organizations.Organizations
	sources       *sources.Sources
	destinations  *destinations.Destinations
	gate          *destination.Gate // to destinations
	declared      *connectors.Connectors
	rest          *rest.Handlers
	seeds         *seed.Seeds
	controls      *control.Handlers
}

// doors are where calls come in, and what is set and kept for them.
type doors struct {
	mux       *http.ServeMux
	ready     map[string]*call.Operation // by id
	answering *rest.Answerer
	performer *call.Performer // calls within the process
	door      *control.API
	console   *console.Console
	front     *rest.Front
	journal   *journal.Journal
	faults    *faults.Faults
	trust     *control.Trust
	metrics   *rest.Metrics
}
