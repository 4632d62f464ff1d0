package seed

import (
	"fmt"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
)

// seedNames are the names by which entries refer to one another.
type seedNames struct {
	sources, destinations, syncs map[int64]string
	objects                      map[string]string
	ofModels                     map[int64]bool // datasets that models have made
	tables                       map[string]int // how many of a source have a name
}

// sync is the body of POST /syncs, with names for ids.
func (n seedNames) sync(y *store.Sync) pairs {
	label := api.Value(y.Config.Label)
	if label == "" {
		label = fmt.Sprintf("Sync %d", y.ID)
	}
	label = free(n.syncs, label)
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
	var mappings []any
	for _, m := range y.Config.Mappings {
		mappings = append(mappings, anything(m))
	}
	entry = append(entry, pair{"mappings", mappings})
	rest, _ := anything(y.Config).(map[string]any) // a struct is an object
	mode, _ := rest["mode"].(map[string]any)
	triggers, _ := mode["triggers"].(map[string]any)
	if after, ok := triggers["sync_sequence"].(map[string]any); ok && y.Config.Mode.Triggers.SyncSequence != nil {
		triggers["sync_sequence"] = map[string]any{"sync": n.syncs[y.Config.Mode.Triggers.SyncSequence.SyncID]}
		delete(after, "sync_id")
	}
	for _, key := range []string{
		"mode", "paused", "field_behavior", "field_normalization", "field_order", "schema_change_policy", "sync_behavior_family",
		"high_water_mark_attribute", "historical_sync_operation", "mirror_strategy", "advanced_configuration", "alert_attributes",
	} {
		entry = append(entry, pair{key, rest[key]})
	}
	return entry
}
