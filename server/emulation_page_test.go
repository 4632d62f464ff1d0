package server

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/connector"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/internal/sync/destination/catalogue"
)

const (
	emulationPage  = "../docs/emulation.md"
	emulationStart = "<!-- generated: go test ./server -run TestEmulationPage -update -->\n"
	emulationEnd   = "<!-- end -->\n"
)

// TestEmulationPage holds the tables of the page to the catalogues, and its
// example to the service.
func TestEmulationPage(t *testing.T) {
	text, err := os.ReadFile(emulationPage)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), emulationStart)
	require.True(t, found)
	w := newWorld(t)
	want := before + emulationStart + emulatedSources() + sampleTables(w) + emulatedDestinations() + emulationEnd
	if *updateLedger {
		require.NoError(t, os.WriteFile(emulationPage, []byte(want), 0o644))
	} else {
		require.True(t, strings.HasSuffix(rest, emulationEnd))
		require.Equal(t, want, string(text), "run go test ./server -run TestEmulationPage -update")
	}
	_, example, found := strings.Cut(before, "```yaml\n")
	require.True(t, found)
	example, _, _ = strings.Cut(example, "```\n")
	w.control("POST", "/connectors", example).want(http.StatusCreated)
	from, to := ownConnections(w)
	runOwn(w, from, to)
}

// refusals are the words that fail a connection test. Of a credential that must be a
// key file it is the private key in it.
func refusals(r connector.Refuse, fields []connector.Field) string {
	names := append([]string{r.Credential}, r.Or...)
	for i, id := range names {
		names[i] = "`" + id + "`"
		if at := slices.IndexFunc(fields, func(f connector.Field) bool { return f.ID == id && f.Format == connector.ServiceAccount }); at >= 0 {
			names[i] = "`private_key` in " + names[i]
		}
	}
	return fmt.Sprintf("%s: `%s`", strings.Join(names, ", "), r.Word)
}

func emulatedSources() string {
	out := "\n## Sources\n\n| type | catalog | schemas | sync engines | writeback | fails |\n|---|---|---|---|---|---|\n"
	for _, e := range source.Emulated() {
		d, _ := source.Type(e.ServiceName)
		writeback := "no"
		if d.SupportsWarehouseWriteback {
			writeback = "advanced engine"
		}
		out += fmt.Sprintf("| `%s` | `%s` | %s | %s | %s | %s |\n", e.ServiceName, e.Warehouse.Catalog, strings.Join(e.Warehouse.Schemas, ", "),
			strings.Join(d.SupportedSyncEngines, ", "), writeback, refusals(e.Refuse, e.Credentials))
	}
	return out
}

// sampleTables are those of a new warehouse, with the types of one of them.
func sampleTables(w *world) string {
	credentials := map[string]any{"host": "db.example.com", "database": "db", "user": "u", "password": "p"}
	id := w.do("POST", "/sources", w.key, map[string]any{"connection": map[string]any{"name": "S", "type": "materialize", "credentials": credentials}}).want(http.StatusCreated).id("data.id")
	out := "\n## Tables\n\nEvery new warehouse holds the same rows. `companies` and `users` are in its first schema,\n" +
		"`orders` in the second, `events` in the third; the types here are those of `materialize`.\n\n| table | rows | columns |\n|---|---|---|\n"
	for i := range 4 {
		table := w.do("GET", fmt.Sprintf("/sources/%d/objects?order=asc", id), w.key, nil).want(http.StatusOK)
		at := fmt.Sprintf("data.%d", i)
		name := fmt.Sprintf("%s.%s", table.at(at+".table_schema"), table.at(at+".table_name"))
		counted := w.do("POST", "/datasets", w.key, map[string]any{"name": name, "type": "sql", "source_id": id, "query": "SELECT * FROM " + name}).want(http.StatusCreated)
		var columns []string
		for _, column := range counted.at("data.columns").([]any) {
			c := column.(map[string]any)
			columns = append(columns, fmt.Sprintf("`%s` %s", c["name"], c["data_type"]))
		}
		out += fmt.Sprintf("| `%s` | %d | %s |\n", table.at(at+".table_name"), counted.id("data.cached_record_count"), strings.Join(columns, ", "))
	}
	return out
}

func emulatedDestinations() string {
	out := "\n## Destinations\n\nRequired fields are bold. `custom`: syncs can create new fields.\n\n" +
		"| type | object | operations | fields | fails |\n|---|---|---|---|---|\n"
	for _, e := range catalogue.BuiltIn() {
		for i, o := range e.Objects {
			var fields []string
			for _, f := range o.Fields {
				name := f.FullName
				if f.Required {
					name = "**" + name + "**"
				}
				fields = append(fields, name)
			}
			if o.CustomFields {
				fields = append(fields, "`custom`")
			}
			operations := strings.Join(o.Operations, ", ")
			if o.ReadOnly {
				operations = "read only"
			}
			typ, fails := "", ""
			if i == 0 {
				typ, fails = "`"+e.ServiceName+"`", refusals(e.Refuse, e.Credentials)
			}
			out += fmt.Sprintf("| %s | `%s` | %s | %s | %s |\n", typ, o.FullName, operations, strings.Join(fields, ", "), fails)
		}
	}
	return out + "\n"
}
