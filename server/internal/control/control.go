// Package control owns the control API, everything below /_control: who may use it, how the
// state is held while a handler works, the clock as people move it, which authorities are
// trusted, and the routes for what the store holds: organizations and people, rows of
// emulated warehouses, records of emulated destinations, topics with their messages, jobs
// of other products that trigger syncs, and the table of the specification's rules with
// the tests that prove them.
package control

import (
	"slices"

	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
)

// Handlers answer the routes, one file for each subject.
type Handlers struct {
	Shared        *call.Shared
	Clock         *clock.Clock
	Organizations *organizations.Organizations
	Sources       *sources.Sources
	Gate          *destination.Gate
	Live          *runs.Live
	Runs          *runs.Engine // makes runs and lets them work
	// Position is how far a sync has read its topic.
	Position func(syncID int64) (int64, error)
}

// Data are the routes of topics, triggers, both ends of a sync, and the table of fidelity.
func (h *Handlers) Data() []call.ControlRoute {
	return append(slices.Concat(h.topicRoutes(), h.triggerRoutes(), h.dataRoutes()),
		call.Route("GET", "/fidelity", "?state=&section= lists the rules of the specification with their proofs", fidelity))
}
