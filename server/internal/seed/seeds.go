// Package seed fills a service from a document: organizations with people, sources,
// destinations and syncs, all of it or nothing; and writes what a service has as such a
// document. Everything goes through the handlers of the API.
package seed

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/connectors"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/statelock"
	"github.com/destkit/destkit/server/internal/store"
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

// seedNames are the names by which entries refer to one another.
type seedNames struct {
	sources, destinations, syncs map[int64]string
	objects                      map[string]string
	ofModels                     map[int64]bool // datasets that models have made
	tables                       map[string]int // how many of a source have a name
}

// sync is the body of POST /syncs, with names for ids.
func (n seedNames) sync(y *store.Sync) pairs {
	label := free(n.syncs, cmp.Or(api.Value(y.Config.Label), fmt.Sprintf("Sync %d", y.ID)))
	n.syncs[y.ID] = label
	from := y.Config.SourceAttributes.Object
	var object pairs
	switch name := n.objects[fmt.Sprint(from.Type, api.Value(from.ID))]; {
	case from.TableName != nil:
		object = pairs{{"table", *from.TableName}}
		if n.tables[fmt.Sprint(y.Config.SourceAttributes.ConnectionID, *from.TableName)] > 1 {
			object = append(object, pair{"schema", api.Value(from.TableSchema)}, pair{"catalog", api.Value(from.TableCatalog)})
		}
	default:
		object = pairs{{from.Type, name}}
	}
	entry := pairs{
		{"label", label}, {"source", n.sources[y.Config.SourceAttributes.ConnectionID]}, {"source_object", object},
		{"destination", n.destinations[y.Config.DestinationAttributes.ConnectionID]}, {"object", y.Config.DestinationAttributes.Object},
		{"operation", y.Config.Operation},
	}
	rest, _ := anything(y.Config).(map[string]any) // a struct is an object
	mode, _ := rest["mode"].(map[string]any)
	triggers, _ := mode["triggers"].(map[string]any)
	if triggers["sync_sequence"] != nil {
		triggers["sync_sequence"] = map[string]any{"sync": n.syncs[y.Config.Mode.Triggers.SyncSequence.SyncID]}
	}
	for _, key := range []string{
		"mappings", "mode", "paused", "field_behavior", "field_normalization", "field_order", "schema_change_policy", "sync_behavior_family",
		"high_water_mark_attribute", "historical_sync_operation", "mirror_strategy", "advanced_configuration", "alert_attributes",
	} {
		entry = append(entry, pair{key, rest[key]})
	}
	return entry
}
