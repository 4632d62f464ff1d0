package seed

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/journal"
	"github.com/destkit/destkit/server/internal/store"
)

// exportedConnection is a source or a destination as the API shows it: without secrets.
type exportedConnection struct {
	ID         int64          `json:"id"`
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	SyncEngine string         `json:"sync_engine"`
	Details    map[string]any `json:"connection_details"`
}

// exportedType is a type of connection with its fields.
type exportedType struct {
	Name   string `json:"service_name"`
	Fields struct {
		Fields []struct {
			ID     string          `json:"id"`
			Type   string          `json:"type"`
			Rules  json.RawMessage `json:"rules"`
			Secret bool            `json:"is_password_type_field"`
			Values []string        `json:"possible_values"`
		} `json:"fields"`
	} `json:"configuration_fields"`
}

// connectionEntry is a connection on its way into the seed.
type connectionEntry struct {
	id    int64
	entry pairs
}

// connections are those of one kind, with the credentials that are no secret.
func (x *exporter) connections(who call.Principal, operation, types string, names map[int64]string,
	credentialsOf func(*store.Tx, int64) (map[string]json.RawMessage, error),
) ([]connectionEntry, error) {
	known, err := everyPage[exportedType](x, who, types)
	if err != nil {
		return nil, err
	}
	all, err := everyPage[exportedConnection](x, who, operation)
	if err != nil {
		return nil, err
	}
	var list []connectionEntry
	for _, one := range all {
		stored, err := store.Read(x.ctx, x.s.Shared.Store, func(tx *store.Tx) (map[string]json.RawMessage, error) { return credentialsOf(tx, one.ID) })
		if err != nil {
			return nil, err
		}
		credentials := map[string]any{}
		for _, t := range known {
			if t.Name != one.Type {
				continue
			}
			for _, f := range t.Fields.Fields {
				value, shown := one.Details[f.ID]
				kept, set := stored[f.ID]
				set = set && string(kept) != "null"
				secret := f.Secret || journal.SecretKey(f.ID)
				switch {
				case shown && value != nil && !secret:
					credentials[f.ID] = value
				case !set && !strings.Contains(string(f.Rules), "required"):
				case strings.Contains(f.ID, "url"):
					credentials[f.ID] = replaceURL
				case set && !secret:
					credentials[f.ID] = anything(kept)
				case len(f.Values) > 0:
					credentials[f.ID] = f.Values[0]
				case f.Type == "integer":
					credentials[f.ID] = 1
				case set:
					credentials[f.ID] = withoutTexts(anything(kept))
				default:
					credentials[f.ID] = replaceMe
				}
			}
		}
		name := free(names, one.Name)
		names[one.ID] = name
		entry := pairs{{"name", name}, {"type", one.Type}}
		if one.SyncEngine != "" && one.SyncEngine != "basic" {
			entry = append(entry, pair{"sync_engine", one.SyncEngine})
		}
		list = append(list, connectionEntry{one.ID, append(entry, pair{"credentials", credentials})})
	}
	return list, nil
}

// withoutTexts is a secret in its shape, such as that of custom headers, with no text of it.
func withoutTexts(v any) any {
	switch v := v.(type) {
	case string:
		return replaceMe
	case []any:
		for i := range v {
			v[i] = withoutTexts(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = withoutTexts(v[name])
		}
	}
	return v
}

// free is a name that no other entry has: names need not differ in the API, and a seed
// refers by them.
func free(taken map[int64]string, wanted string) string {
	name := wanted
	for n := 2; slices.Contains(slices.Collect(maps.Values(taken)), name); n++ {
		name = fmt.Sprintf("%s %d", wanted, n)
	}
	return name
}

// everyPage reads all pages of a list of the API, the oldest first.
func everyPage[T any](x *exporter, who call.Principal, operation string) (all []T, err error) {
	for page := int64(1); page > 0; {
		text, err := x.s.Perform(x.ctx, who, operation, nil, url.Values{"page": {fmt.Sprint(page)}, "per_page": {"100"}, "order": {"asc"}}, nil)
		if err != nil {
			return nil, err
		}
		var got struct {
			Pagination api.Pagination `json:"pagination"`
			Data       []T            `json:"data"`
		}
		if err := json.Unmarshal(text, &got); err != nil {
			return nil, fmt.Errorf("read %s: %w", operation, err)
		}
		all = append(all, got.Data...)
		page = api.Value(got.Pagination.NextPage)
	}
	return all, nil
}

// objects adds the models and topics of each source.
func (x *exporter) objects(tx *store.Tx, sources []connectionEntry, names seedNames) error {
	for i := range sources {
		one := &sources[i]
		models, err := store.Models.All(tx, one.id)
		if err != nil {
			return err
		}
		topics, err := store.Topics.All(tx, one.id)
		if err != nil {
			return err
		}
		tables, err := store.EveryOf(tx.SourceTables, one.id)
		if err != nil {
			return err
		}
		for _, t := range tables {
			names.tables[fmt.Sprint(one.id, t.Name)]++
		}
		var shownModels, shownTopics []any
		for _, m := range models {
			names.objects[fmt.Sprint(api.ObjectModel, m.ID)], names.ofModels[m.DatasetID] = m.Name, true
			shownModels = append(shownModels, pairs{{"name", m.Name}, {"query", m.Query}, {"description", api.Value(m.Description)}})
		}
		for _, t := range topics {
			names.objects[fmt.Sprint(api.ObjectTopic, t.ID)] = t.Name
			shownTopics = append(shownTopics, pairs{{"name", t.Name}, {"description", api.Value(t.Description)}, {"sample_message", anything(t.SampleMessage)}})
		}
		one.entry = append(one.entry, pair{"models", shownModels}, pair{"topics", shownTopics})
	}
	return nil
}
