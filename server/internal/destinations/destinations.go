// Package destinations owns the destinations of the service: what one offers, which is
// asked for anew when it is old, and the test of a connection. Rows are left to store, calls to sync/destination.
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

// Destinations asks the destinations of the service, and keeps what they offer.
type Destinations struct {
	Shared *call.Shared
	Log    *slog.Logger
	Clock  *clock.Clock
	Work   *background.Work
	Lock   *statelock.Lock
	Gate   *destination.Gate
	TTL    time.Duration // how long objects are kept before they are asked for again

	attempts background.Flights // to read objects
}
