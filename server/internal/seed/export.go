package seed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/journal"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/store"
)

// Export writes what is here as a seed. Secrets are not in it: where one is
// needed, replaceMe stands.
func (s *Seeds) Export(c *call.Control) (any, error) {
	if _, err := c.Query(); err != nil {
		return nil, err
	}
	text, err := s.export(c.R.Context())
	if err != nil {
		return nil, err
	}
	h := c.W.Header()
	h.Set("Content-Type", "application/yaml; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	c.W.WriteHeader(http.StatusOK)
	_, err = c.W.Write(text)
	return nil, err
}

// replaceMe stands for a secret in an exported seed, replaceURL for one that must be an
// address.
const (
	replaceMe  = "replace-me"
	replaceURL = "https://replace-me.example.com/"
)

// export gives organizations, people, sources, destinations, syncs and webhooks. What
// runs have done is not part of a seed: a snapshot has that.
func (s *Seeds) export(ctx context.Context) ([]byte, error) {
	x := &exporter{s: s, ctx: ctx}
	err := s.shared.Store.View(ctx, func(tx *store.Tx) error {
		first, err := organizations.First(tx)
		if err != nil {
			return err
		}
		x.first = first
		x.organizations, err = store.Every(tx.Organizations)
		return err
	})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("# What this service has, as a seed: destkit serve --seed FILE, or POST /_control/seed.\n" +
		"# Secrets are not in it; write them where " + replaceMe + " stands. Rows of emulated warehouses are not in it\n" +
		"# either: write the statements that make them under execute. What runs have done is in snapshots only.\n" +
		"organizations:\n")
	for _, o := range x.organizations {
		entry, err := x.organization(o)
		if err != nil {
			return nil, err
		}
		writeItem(&b, "  ", entry)
	}
	return b.Bytes(), nil
}

// exporter gathers what a seed names.
type exporter struct {
	s             *Seeds
	ctx           context.Context
	first         int64
	organizations []*store.Organization
}

// pairs is a mapping of YAML in its order; empty values are left out.
type pairs []pair

type pair struct {
	key   string
	value any
}

func (x *exporter) organization(o *store.Organization) (entry pairs, err error) {
	var users []*store.User
	var workspaces []*store.Workspace
	memberships := map[int64]map[string]any{}
	err = x.s.shared.Store.View(x.ctx, func(tx *store.Tx) (err error) {
		if users, err = store.Every(func(p store.Page) ([]*store.User, int64, error) { return tx.Users(o.ID, p) }); err != nil {
			return err
		}
		if workspaces, err = store.Every(func(p store.Page) ([]*store.Workspace, int64, error) { return tx.Workspaces(o.ID, p) }); err != nil {
			return err
		}
		for _, w := range workspaces {
			members, err := store.Every(func(p store.Page) ([]store.Member, int64, error) { return tx.Members(w.ID, p) })
			if err != nil {
				return err
			}
			for _, m := range members {
				if memberships[m.User.ID] == nil {
					memberships[m.User.ID] = map[string]any{}
				}
				memberships[m.User.ID][w.Name] = m.Role
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if o.ID == x.first {
		entry = append(entry, pair{"first", true})
	} else {
		entry = append(entry, pair{"name", o.Name})
	}
	var others []any
	for i, u := range users {
		if i == 0 { // the admin with whom the organization was made
			if o.ID != x.first {
				entry = append(entry, pair{"email", u.Email})
			}
			continue
		}
		one := pairs{{"email", u.Email}, {"role", u.Role}, {"workspaces", memberships[u.ID]}}
		if !u.Notifications {
			one = append(one, pair{"notifications_enabled", false})
		}
		others = append(others, one)
	}
	entry = append(entry, pair{"users", others})
	var list []any
	for _, w := range workspaces {
		one, err := x.workspace(w)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return append(entry, pair{"workspaces", list}), nil
}

// exportedConnection is a source or a destination as the API shows it: without secrets.
type exportedConnection struct {
	ID         int64          `json:"id"`
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	SyncEngine string         `json:"sync_engine"`
	Details    map[string]any `json:"connection_details"`
}

// exportedType is a type of connection with the fields that it asks for.
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

func (x *exporter) workspace(w *store.Workspace) (pairs, error) {
	who := call.Principal{Workspace: w, OrganizationID: w.OrganizationID, WorkspaceID: w.ID}
	var emails []any
	for _, email := range w.NotificationEmails {
		emails = append(emails, email)
	}
	entry := pairs{{"name", w.Name}, {"notification_emails", emails}}
	names := seedNames{sources: map[int64]string{}, destinations: map[int64]string{}, syncs: map[int64]string{}, objects: map[string]string{}, ofModels: map[int64]bool{}, tables: map[string]int{}}
	sources, err := x.connections(who, "listSources", "listSourceTypes", names.sources)
	if err != nil {
		return nil, err
	}
	destinations, err := x.connections(who, "listDestinations", "listConnectors", names.destinations)
	if err != nil {
		return nil, err
	}
	err = x.s.shared.Store.View(x.ctx, func(tx *store.Tx) error {
		if err := x.objects(tx, sources, names); err != nil {
			return err
		}
		rows, err := store.Every(func(p store.Page) ([]*store.Dataset, int64, error) { return tx.Datasets(w.ID, p) })
		if err != nil {
			return err
		}
		var datasets, syncs, hooks []any
		for _, d := range rows {
			names.objects[fmt.Sprint(api.ObjectDataset, d.ID)] = d.Name
			if names.ofModels[d.ID] {
				continue
			}
			datasets = append(datasets, pairs{{"name", d.Name}, {"source", names.sources[d.SourceID]}, {"query", d.Query}, {"description", api.Value(d.Description)}})
		}
		all, err := store.Every(func(p store.Page) ([]*store.Sync, int64, error) { p.Ascending = true; return tx.Syncs(w.ID, p) })
		if err != nil {
			return err
		}
		for _, y := range all {
			syncs = append(syncs, names.sync(y))
		}
		webhooks, err := store.Every(func(p store.Page) ([]*store.Webhook, int64, error) { return tx.Webhooks(w.ID, p) })
		for _, h := range webhooks {
			hooks = append(hooks, pairs{{"name", h.Name}, {"endpoint", replaceURL}, {"events", anything(h.Events)}})
		}
		var sourceEntries, destinationEntries []any
		for _, one := range sources {
			sourceEntries = append(sourceEntries, one.entry)
		}
		for _, one := range destinations {
			destinationEntries = append(destinationEntries, one.entry)
		}
		entry = append(entry, pair{"sources", sourceEntries}, pair{"datasets", datasets}, pair{"destinations", destinationEntries}, pair{"syncs", syncs}, pair{"webhooks", hooks})
		return err
	})
	return entry, err
}

// connectionEntry is a connection on its way into the seed.
type connectionEntry struct {
	id    int64
	entry pairs
}

// connections are those of one kind, with the credentials that are no secret.
func (x *exporter) connections(who call.Principal, operation, types string, names map[int64]string) ([]connectionEntry, error) {
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
		credentials, secret := map[string]any{}, false
		for _, t := range known {
			if t.Name != one.Type {
				continue
			}
			for _, f := range t.Fields.Fields {
				value, shown := one.Details[f.ID]
				switch {
				case shown && value != nil && !journal.SecretKey(f.ID):
					credentials[f.ID] = value
				case !strings.Contains(string(f.Rules), "required") && (!f.Secret || secret):
				case f.Secret && !strings.Contains(f.ID, "url"): // of several ways to sign in, the first
					credentials[f.ID], secret = replaceMe, true
				case len(f.Values) > 0:
					credentials[f.ID] = f.Values[0]
				case strings.Contains(f.ID, "url"):
					credentials[f.ID] = replaceURL
				case f.Type == "integer":
					credentials[f.ID] = 1
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
		text, err := x.s.perform(x.ctx, who, operation, nil, url.Values{"page": {fmt.Sprint(page)}, "per_page": {"100"}, "order": {"asc"}}, nil)
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
		models, err := store.Every(func(p store.Page) ([]*store.Model, int64, error) { return tx.Models(one.id, p) })
		if err != nil {
			return err
		}
		topics, err := store.Every(func(p store.Page) ([]*store.Topic, int64, error) { return tx.Topics(one.id, p) })
		if err != nil {
			return err
		}
		tables, err := store.Every(func(p store.Page) ([]*store.SourceTable, int64, error) { return tx.SourceTables(one.id, p) })
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

// anything is a value as JSON has it, without what is null, false, empty or an id.
func anything(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var tree any
	if decoder.Decode(&tree) != nil {
		return nil
	}
	return sparse(tree)
}

func sparse(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if key == "id" {
				delete(v, key)
			} else if value = sparse(value); vacant(value) {
				delete(v, key)
			} else {
				v[key] = value
			}
		}
	case []any:
		for i := range v {
			v[i] = sparse(v[i])
		}
	}
	return v
}

// vacant reports whether a value says nothing.
func vacant(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// writeItem writes a mapping as an item of a list.
func writeItem(b *bytes.Buffer, indent string, entry pairs) {
	lead := indent + "- "
	for _, p := range entry {
		if p.key != "first" && p.key != "notifications_enabled" && vacant(p.value) {
			continue
		}
		b.WriteString(lead + yamlText(p.key) + ":")
		lead = indent + "  "
		list, isList := p.value.([]any)
		if isList && len(list) > 0 {
			b.WriteByte('\n')
			for _, one := range list {
				if inner, ok := one.(pairs); ok && !plainPairs(inner) {
					writeItem(b, indent+"    ", inner)
				} else {
					b.WriteString(indent + "    - " + yamlFlow(one) + "\n")
				}
			}
			continue
		}
		b.WriteString(" " + yamlFlow(p.value) + "\n")
	}
}

// plainPairs reports whether a mapping fits on one line.
func plainPairs(entry pairs) bool {
	return len(entry) <= 4 && !slices.ContainsFunc(entry, func(p pair) bool {
		switch p.value.(type) {
		case []any, pairs, map[string]any:
			return !vacant(p.value)
		}
		return false
	})
}

// yamlFlow writes a value on one line.
func yamlFlow(v any) string {
	switch v := v.(type) {
	case string:
		return yamlText(v)
	case pairs:
		var parts []string
		for _, p := range v {
			if !vacant(p.value) {
				parts = append(parts, yamlText(p.key)+": "+yamlFlow(p.value))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case map[string]any:
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, yamlText(key)+": "+yamlFlow(v[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		var parts []string
		for _, one := range v {
			parts = append(parts, yamlFlow(one))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case bool:
		return strconv.FormatBool(v)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(text)
}

// bareWord is a text that YAML reads as the same text without quotes.
var bareWord = regexp.MustCompile(`^[A-Za-z][A-Za-z_]*(?: [A-Za-z_]+)*$`)

// yamlText quotes what YAML would read as something else. A string of JSON is one of
// YAML.
func yamlText(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
	default:
		if bareWord.MatchString(s) {
			return s
		}
	}
	text, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(text)
}
