package seed

import (
	"fmt"
	"maps"
	"slices"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// syncs makes syncs. An entry is the body of POST /syncs, in which source,
// source_object, destination and object replace the two attributes that name
// things by id:
//
//	source: Shop
//	source_object: {table: customers}   # or {dataset: …}, {model: …}, {topic: …}
//	destination: CRM
//	object: contact
func (b *workspaceSeed) syncs(wanted workspaceEntry) error {
	return each(b, "syncs", wanted.Syncs, label("label"), func(entry map[string]any) error {
		name := label("label")(entry)
		if name == "" {
			return problem.InvalidField("label", "is required in a seed; the answer names the sync by it")
		}
		if _, twice := b.seeded.Syncs[name]; twice {
			return problem.InvalidField("label", "stands twice in the workspace")
		}
		body, err := b.syncBody(entry)
		if err != nil {
			return err
		}
		id, _, err := b.create(b.inside(b.w), "createSync", nil, body)
		if err != nil {
			return err
		}
		b.seeded.Syncs[name] = id
		b.made(func(tx *store.Tx) error { return store.Syncs.Delete(tx, b.w.ID, id) }, organizations.Outside{Syncs: []int64{id}})
		return nil
	})
}

// take removes a key that holds a name.
func take(body map[string]any, key string) (name string, given bool, err error) {
	value, given := body[key]
	if !given {
		return "", false, nil
	}
	delete(body, key)
	name, ok := value.(string)
	if !ok || name == "" {
		return "", false, problem.InvalidField(key, "must be a name")
	}
	return name, true, nil
}

// syncBody turns names into ids.
func (b *workspaceSeed) syncBody(entry map[string]any) (map[string]any, error) {
	body := maps.Clone(entry)
	source, bySource, err := take(body, "source")
	if err != nil {
		return nil, err
	}
	if bySource {
		id, err := reference("source", b.seeded.Sources, source)
		if err != nil {
			return nil, err
		}
		object, err := b.sourceObject(id, body["source_object"])
		if err != nil {
			return nil, err
		}
		delete(body, "source_object")
		body["source_attributes"] = map[string]any{"connection_id": id, "object": object}
	}
	destination, byDestination, err := take(body, "destination")
	if err != nil {
		return nil, err
	}
	if byDestination {
		id, err := reference("destination", b.seeded.Destinations, destination)
		if err != nil {
			return nil, err
		}
		object, _, err := take(body, "object")
		if err != nil {
			return nil, err
		}
		body["destination_attributes"] = map[string]any{"connection_id": id, "object": object}
	}
	return body, b.sequence(body)
}

// sequence turns mode.triggers.sync_sequence {sync: label} into an id.
func (b *workspaceSeed) sequence(body map[string]any) error {
	mode, _ := body["mode"].(map[string]any)
	triggers, _ := mode["triggers"].(map[string]any)
	after, _ := triggers["sync_sequence"].(map[string]any)
	name, given, err := take(after, "sync")
	if err != nil || !given {
		return err
	}
	id, err := reference("sync", b.seeded.Syncs, name)
	if err == nil {
		after["sync_id"] = id
	}
	return err
}

// sourceObject turns {table: name} and its like into what the API takes.
func (b *workspaceSeed) sourceObject(sourceID int64, value any) (map[string]any, error) {
	given, ok := value.(map[string]any)
	if !ok {
		return nil, problem.InvalidField("source_object", "must be one of {table: …}, {dataset: …}, {model: …}, {topic: …}")
	}
	kinds := map[string]map[string]int64{
		api.ObjectDataset: b.seeded.Datasets, api.ObjectModel: b.seeded.Models, api.ObjectTopic: b.seeded.Topics,
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		name, isKind := given[kind].(string)
		if !isKind {
			continue
		}
		if len(given) != 1 {
			return nil, problem.InvalidField("source_object", "must have nothing beside %s", kind)
		}
		id, err := reference(kind, kinds[kind], name)
		return map[string]any{"type": kind, "id": id}, err
	}
	return b.table(sourceID, given)
}

// table finds the table that is meant: by its name alone where that is enough.
func (b *workspaceSeed) table(sourceID int64, given map[string]any) (map[string]any, error) {
	for key, value := range given {
		if _, ok := value.(string); !ok || !slices.Contains([]string{"table", "schema", "catalog"}, key) {
			return nil, problem.InvalidField("source_object."+key, "must be one of table, schema, catalog, dataset, model, topic, with a name")
		}
	}
	var fitting []*store.SourceTable
	err := b.s.Shared.Store.View(b.ctx, func(tx *store.Tx) error {
		rows, err := store.EveryOf(tx.SourceTables, sourceID)
		for _, t := range rows {
			if t.Name == given["table"] && (given["schema"] == nil || given["schema"] == t.Schema) &&
				(given["catalog"] == nil || given["catalog"] == t.Catalog) {
				fitting = append(fitting, t)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(fitting) != 1 {
		return nil, problem.InvalidField("source_object.table", "%d tables of the source are called %q%s", len(fitting), foreign.Clip(fmt.Sprint(given["table"]), 60), hint(len(fitting)))
	}
	t := fitting[0]
	return map[string]any{"type": api.ObjectTable, "table_catalog": t.Catalog, "table_schema": t.Schema, "table_name": t.Name}, nil
}

// hint suggests what to do about a name that several tables have.
func hint(found int) string {
	if found > 1 {
		return "; add schema or catalog"
	}
	return ""
}
