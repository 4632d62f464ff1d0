// Package destinations owns the destinations of the service: their objects, fetched again when old,
// and the test of a connection. Rows are left to store, calls to sync/destination.
package destinations

import (
	"log/slog"
	"time"

	"github.com/destkit/destkit/server/internal/background"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/statelock"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
)

// Destinations calls the destinations of the service, and caches their objects.
type Destinations struct {
	Shared *call.Shared
	Log    *slog.Logger
	Clock  *clock.Clock
	Work   *background.Work
	Lock   *statelock.Lock
	Gate   *destination.Gate
	TTL    time.Duration // how long objects are kept before they are fetched again

	attempts background.Flights // to read objects
}
