// Package sources owns the sources of the service: how one is opened with its
// credentials, the known types, its tables and the columns of a query, a segment or a
// topic, what a sync must know of its source object, which columns its mappings
// follow, and the reaction of a run to changes of them.
package sources

import (
	"log/slog"
	"sync/atomic"

	"github.com/destkit/destkit/internal/reach"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/internal/background"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/sync/clock"
)

// Parts are what sources need of the service.
type Parts struct {
	Shared *call.Shared
	Log    *slog.Logger
	Clock  *clock.Clock
	Work   *background.Work
	// Files and Network say what sources may reach.
	Files   *reach.Files
	Network reach.Network
	Limits  source.Limits
	Folder  string // of emulated warehouses; "": in memory
}

// Sources opens the sources of the service, and knows their types and their tables.
type Sources struct {
	Parts
	catalogue atomic.Pointer[source.Catalogue]
	plans     background.Flights
}

// New knows the types of the program.
func New(p Parts) *Sources {
	k := &Sources{Parts: p}
	k.catalogue.Store(source.BuiltIn())
	return k
}

// Declare puts other types in the place of those that there are.
func (k *Sources) Declare(types *source.Catalogue) { k.catalogue.Store(types) }
