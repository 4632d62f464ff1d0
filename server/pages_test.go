package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/connector"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/destination"
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
	text := contentOf(t, emulationPage)
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
		for _, c := range counted.objects("data.columns") {
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

// emulator keeps the records of emulated destinations in simulators in memory,
// as the program does.
func emulator(t testing.TB) destination.Emulator {
	var mu sync.Mutex
	open := map[string]*destsim.Sim{}
	t.Cleanup(func() {
		for _, sim := range open {
			sim.Close()
		}
	})
	return func(key string, objects []catalogue.EmulatedObject) (*destination.Emulated, error) {
		mu.Lock()
		defer mu.Unlock()
		sim := open[key]
		if sim == nil {
			var err error
			var config destsim.Config
			for _, o := range objects {
				config.Objects = append(config.Objects, destsim.Described(o.Object, o.Operations, o.Fields))
			}
			if sim, err = destsim.New(config); err != nil {
				return nil, err
			}
			open[key] = sim
		}
		return &destination.Emulated{Endpoint: sim, Snapshot: sim.Snapshot, Restore: sim.Restore, Records: sim.RecordsJSON}, nil
	}
}

// TestFrontPage: who opens the address finds the way, as a person or as a program,
// and no token.
func TestFrontPage(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Dialect, c.Version = DialectLive, "v9" })
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for name, tc := range map[string]struct {
		path, accept, kind string
	}{
		"a browser":               {"/", browser, "text/html; charset=utf-8"},
		"a browser at the API":    {api.BasePath, browser, "text/html; charset=utf-8"},
		"a program":               {"/", "*/*", "application/json; charset=utf-8"},
		"no wish":                 {"/", "", "application/json; charset=utf-8"},
		"both, JSON first":        {"/", "text/html;q=0.5, application/json", "application/json; charset=utf-8"},
		"no page":                 {"/", "text/html;q=0, */*", "application/json; charset=utf-8"},
		"a wish that is no media": {"/", ";;;", "application/json; charset=utf-8"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "http://127.0.0.1:8080"+tc.path, nil)
			r.Header.Set("Accept", tc.accept)
			recorder := serve(w.s, r)
			h := recorder.Header()
			require.Equal(t, 200, recorder.Code)
			require.Equal(t, tc.kind, h.Get("Content-Type"))
			for _, part := range []string{
				"http://127.0.0.1:8080/api/v1", "http://127.0.0.1:8080/openapi.yaml", "http://127.0.0.1:8080/_control", "http://127.0.0.1:8080/healthz",
				"live", "v9", "new-token", "docs/service.md",
			} {
				require.Contains(t, recorder.Body.String(), part)
			}
			lacks(t, recorder.Body.String(), w.key, w.pat)
			require.Less(t, recorder.Body.Len(), 8<<10)
			require.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'")
			require.Equal(t, []string{"no-cache", "Accept", "nosniff"}, []string{h.Get("Cache-Control"), h.Get("Vary"), h.Get("X-Content-Type-Options")})
			r.Header.Set("If-None-Match", h.Get("ETag"))
			again := serve(w.s, r)
			require.Equal(t, 304, again.Code)
			require.Empty(t, again.Body.String())
		})
	}
	require.Equal(t, "v1", w.do("GET", "", "", nil).want(200).at("data.version"), "programs get the version from the API")
	evil := httptest.NewRequest("GET", "/", nil)
	evil.Host = `x"><script>alert(1)</script>`
	evil.Header.Set("Accept", browser)
	require.NotContains(t, string(w.send(evil).want(200).text), "<script>")
	require.Equal(t, "GET", w.send(httptest.NewRequest("POST", "/", nil)).want(405).header.Get("Allow"))
	w.send(httptest.NewRequest("GET", "/nothing", nil)).want(404)
}
