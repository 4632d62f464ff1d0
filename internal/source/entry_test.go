package source

import (
	"strings"
	"testing"

	"github.com/destkit/destkit/internal/connector"
	"github.com/stretchr/testify/require"
)

// smallEntry is a warehouse with its own table, to be spoilt line by line.
const smallEntry = `service_name: lake
label: Lake
refuse: {credential: key, word: wrong}
credentials:
  - {id: name, label: Name, type: string, rules: [required], input_type: text}
  - {id: key, label: Key, type: string, rules: [required], input_type: password, password: true}
details: [{name: name}, {name: kind, value: lake}]
warehouse:
  catalog: name
  schemas: [public, sales]
  tables:
    - {name: fish, rows: 3, columns: [{name: id, values: id}, {name: caught_on, values: date}]}
    - {schema: sales, name: fish, rows: 0, columns: [{name: price, values: decimal}]}
`

func TestSmallEntry(t *testing.T) {
	e, err := connector.Read[Entry]("lake.yaml", []byte(smallEntry))
	require.NoError(t, err)
	types := BuiltIn().With(e)
	given := credentials(map[string]any{"name": "north", "key": "lake-secret"})
	require.Equal(t, map[string]any{"name": "north", "kind": "lake"}, types.Details("lake", given))
	require.Equal(t, []string{"lake-secret"}, types.Secrets("lake", given))
	src, err := types.Open(t.Context(), "lake", given, Options{Key: t.Name()})
	require.NoError(t, err)
	t.Cleanup(func() { Forget(t.Name()) })
	defer src.Close()
	tables, err := src.Tables(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"north.public.fish", "north.sales.fish"}, names(tables))
	require.Equal(t, []string{"id bigint integer", "caught_on date date"}, short(tables[0].Columns))
	require.Len(t, readAll(t, src, Object{Name: "fish"}, nil, nil), 3)
	_, known := BuiltIn().Type("lake")
	require.False(t, known, "the catalogue of the package stays as it is")
}

func TestSmallEntryMistakes(t *testing.T) {
	for _, c := range []struct{ old, replacement, want string }{
		{"label: Lake", "lable: Lake", "lake.yaml:2:1"},
		{"service_name: lake", "service_name: Lake", "service_name: must be a lower-case letter"},
		{"{name: name}", "{name: nome}", `details[0].from: "nome" is no credential`},
		{"{name: name}", "{name: key}", "details[0].member: key is a secret"},
		{"catalog: name", "catalog: key", `warehouse.catalog: "key"`},
		{"[public, sales]", "[]", "warehouse.schemas: names at least one"},
		{"[public, sales]", "[public, Public, sales]", `warehouse.schemas[1]: "Public" occurs twice`},
		{"[public, sales]", "[public, 'a.b', sales]", "warehouse.schemas[1]: must be a name"},
		{"schema: sales", "schema: public", `warehouse.tables[1].name: "fish" occurs twice`},
		{"schema: sales", "schema: other", `warehouse.tables[1].schema: "other"`},
		{"name: fish, rows: 3", "name: sqlite_fish, rows: 3", "warehouse.tables[0].name: must be a name"},
		{"rows: 3", "rows: -1", "warehouse.tables[0].rows: must be 0 to 100000"},
		{"{name: caught_on,", "{name: ID,", `warehouse.tables[0].columns[1].name: "ID" occurs twice`},
		{"values: decimal", "values: money", `warehouse.tables[1].columns[0].values: unknown value "money"`},
		{"columns: [{name: price, values: decimal}]", "columns: []", "warehouse.tables[1].columns: must be 1"},
		{"  schemas:", "  types: {integer: ''}\n  schemas:", "warehouse.types.integer: must not be empty"},
		{"warehouse:", "engines: [fast]\nwarehouse:", "engines[0]: unknown value"},
	} {
		require.Contains(t, smallEntry, c.old)
		_, err := connector.Read[Entry]("lake.yaml", []byte(strings.Replace(smallEntry, c.old, c.replacement, 1)))
		require.ErrorContains(t, err, c.want)
	}
}

// FuzzEntry: an entry that passes the check is a warehouse that can be filled and read.
func FuzzEntry(f *testing.F) {
	f.Add(smallEntry)
	f.Add("warehouse: {schemas: [a], tables: [{columns: [{}]}]}")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := connector.Read[Entry]("x.yaml", []byte(text))
		if err != nil {
			return
		}
		for _, table := range e.Warehouse.Tables {
			if table.Rows > 100 {
				return // only slow
			}
		}
		types := BuiltIn().With(e)
		key := "fuzz of entries"
		defer Forget(key)
		src, err := openWarehouse(t.Context(), types.types[e.ServiceName], settings(e.Example()), Options{Key: key})
		require.NoError(t, err)
		defer src.Close()
		tables, err := src.Tables(t.Context())
		require.NoError(t, err)
		if len(e.Warehouse.Tables) > 0 {
			require.Len(t, tables, len(e.Warehouse.Tables))
		}
	})
}
