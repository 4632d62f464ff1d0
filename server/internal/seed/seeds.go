// Package seed fills a service from a document: organizations with people, sources,
// destinations and syncs, all of it or nothing; and writes what a service has as such a
// document. Everything goes through the handlers of the API.
package seed

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/connectors"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/statelock"
	"github.com/destkit/destkit/server/internal/sync/clock"
)

// Seeds fills the service, and exports its contents.
type Seeds struct {
	Shared        *call.Shared
	Clock         *clock.Clock
	Lock          *statelock.Lock
	Sources       *sources.Sources
	Organizations *organizations.Organizations
	Connectors    *connectors.Connectors
	// Perform runs an operation of the API for a caller, and gives its reply as JSON.
	Perform func(ctx context.Context, who call.Principal, id string, path map[string]int64, query url.Values, body any) (json.RawMessage, error)
}
