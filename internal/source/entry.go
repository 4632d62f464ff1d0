package source

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/destkit/destkit/internal/connector"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/source/internal/generated"
	"github.com/destkit/destkit/server/api"
)

// Entry describes one emulated warehouse: what a client is told about it, and
// how it names what is in it. It is not copied and, once it was checked, not
// changed.
type Entry struct {
	connector.Declared `yaml:",inline"`
	Aliases            []string       `yaml:"aliases"` // other spellings of service_name that clients send
	Engines            []string       `yaml:"engines"` // basic when left out
	Writeback          bool           `yaml:"writeback"`
	StreamingDatabase  bool           `yaml:"streaming_database"` // live syncs read it (spec 2.6)
	Details            []detailEntry  `yaml:"details"`            // every credential that is no password when left out
	Warehouse          warehouseEntry `yaml:"warehouse"`

	once sync.Once
	made *sourceType
}

// detailEntry is one member of connection_details. Its value is that of the
// credential From, of Name where From is left out; or of a member of a key file;
// or Value, where there is no credential behind it or that is left out.
type detailEntry struct {
	Name   string `yaml:"name"`
	From   string `yaml:"from"`
	Member string `yaml:"member"`
	Value  any    `yaml:"value"`
}

// warehouseEntry is how one product differs from the database under it.
type warehouseEntry struct {
	Catalog   string            `yaml:"catalog"`    // the credential that names the catalog
	Schemas   []string          `yaml:"schemas"`    // three at least without tables; the first is the default one
	UpperCase bool              `yaml:"upper_case"` // sample names are stored in upper case
	Types     map[string]string `yaml:"types"`      // its word for a kind; a plain one where left out
	Tables    []tableEntry      `yaml:"tables"`     // the sample tables of every warehouse when left out
}

// tableEntry is a table that a new warehouse of the type holds.
type tableEntry struct {
	Schema  string        `yaml:"schema"` // the default one when left out
	Name    string        `yaml:"name"`
	Rows    int           `yaml:"rows"`
	Columns []columnEntry `yaml:"columns"`
}

// columnEntry is one column; Values is a type of the generator, which fills it.
type columnEntry struct {
	Name   string `yaml:"name"`
	Values string `yaml:"values"`
}

// declared is what a column is stored as, by the kind of its values.
var declaredAs = map[api.Kind]string{
	api.KindBoolean: "BOOLEAN", api.KindInteger: "INTEGER", api.KindFloat: "REAL", api.KindDecimal: "DECIMAL(14,2)",
	api.KindString: "TEXT", api.KindDate: "DATE", api.KindDateTime: "DATETIME", api.KindArray: "ARRAY", api.KindObject: "JSON",
}

// plainTypes are the words of a warehouse that names no others.
var plainTypes = map[api.Kind]string{
	api.KindBoolean: "boolean", api.KindInteger: "bigint", api.KindFloat: "double precision", api.KindDecimal: "numeric(38,9)",
	api.KindString: "text", api.KindDate: "date", api.KindDateTime: "timestamp with time zone",
	api.KindArray: "text[]", api.KindObject: "json", api.KindBinary: "bytea", api.KindAny: "json",
}

// Limits of a declared warehouse.
const (
	maxSampleTables = 100
	maxSampleRows   = 100_000 // of a table
)

// plainName reports whether a schema, a table or a column can have this name: one
// with a point or a quote could not be found again in a query.
func plainName(name string) bool {
	return len(name) > 0 && len(name) <= 128 && utf8.ValidString(name) && !strings.HasPrefix(strings.ToLower(name), "sqlite_") &&
		!strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune(".`\"'[]", r) })
}

const notPlain = "must be a name of up to 128 bytes without points, quotes, brackets and control characters, and not begin with sqlite_"

// Check looks at what decoding cannot see. All problems come together, each with
// its place in the entry.
func (e *Entry) Check() connector.Problems {
	problems := e.Declared.Check()
	for i, engine := range e.Engines {
		problems.OneOf(fmt.Sprintf("engines[%d]", i), engine, api.EngineBasic, api.EngineAdvanced)
	}
	for i, d := range e.Details {
		place := fmt.Sprintf("details[%d]", i)
		from := connector.Find(e.Credentials, d.credential())
		switch {
		case d.Name == "":
			problems.Add(place+".name", "must not be empty")
		case from == nil && (d.From != "" || d.Value == nil):
			problems.Add(place+".from", "%q is no credential", d.credential())
		case from != nil && from.Password && !slices.Contains(shownMembers, d.Member):
			problems.Add(place+".member", "%s is a secret: of a key file only %s can be shown", from.ID, strings.Join(shownMembers, ", "))
		}
	}
	e.Warehouse.check(e.Credentials, &problems)
	return problems
}

// shownMembers are what of a key file is no secret.
var shownMembers = []string{"client_email", "project_id"}

// credential is the one that a detail shows.
func (d detailEntry) credential() string {
	if d.From != "" {
		return d.From
	}
	return d.Name
}

func (w *warehouseEntry) check(credentials []connector.Field, problems *connector.Problems) {
	if f := connector.Find(credentials, w.Catalog); f == nil || f.Type != connector.String || f.Password {
		problems.Add("warehouse.catalog", "%q is no credential of type string", w.Catalog)
	}
	if len(w.Schemas) == 0 || len(w.Tables) == 0 && len(w.Schemas) < 3 {
		problems.Add("warehouse.schemas", "names at least one schema, and three where the sample tables are to be there")
	}
	schemas := map[string]bool{}
	for i, schema := range w.Schemas {
		at := fmt.Sprintf("warehouse.schemas[%d]", i)
		if !plainName(schema) {
			problems.Add(at, notPlain)
		}
		if key := strings.ToLower(schema); schemas[key] {
			problems.Add(at, "%q occurs twice", schema)
		} else {
			schemas[key] = true
		}
	}
	for _, kind := range sortedKeys(w.Types) {
		if plainTypes[api.Kind(kind)] == "" {
			problems.Add("warehouse.types."+kind, "is no kind of values; use one of %s", strings.Join(kinds(), ", "))
		} else if w.Types[kind] == "" {
			problems.Add("warehouse.types."+kind, "must not be empty")
		}
	}
	if len(w.Tables) > maxSampleTables {
		problems.Add("warehouse.tables", "must not be more than %d", maxSampleTables)
	}
	tables := map[string]bool{}
	for i, t := range w.Tables {
		place := fmt.Sprintf("warehouse.tables[%d]", i)
		if t.Schema == "" && len(w.Schemas) > 0 {
			t.Schema = w.Schemas[0]
		}
		if name := strings.ToLower(t.Schema + "." + t.Name); tables[name] {
			problems.Add(place+".name", "%q occurs twice", t.Name)
		} else {
			tables[name] = true
		}
		t.check(place, w.Schemas, problems)
	}
}

// kinds lists the kinds of values.
func kinds() []string {
	return lists.Of(slices.Sorted(maps.Keys(plainTypes)), func(kind api.Kind) string { return string(kind) })
}

func (t *tableEntry) check(place string, schemas []string, problems *connector.Problems) {
	if !plainName(t.Name) {
		problems.Add(place+".name", notPlain)
	}
	if t.Schema != "" && !slices.Contains(schemas, t.Schema) {
		problems.Add(place+".schema", "%q is none of the schemas", t.Schema)
	}
	if t.Rows < 0 || t.Rows > maxSampleRows {
		problems.Add(place+".rows", "must be 0 to %d, not %d", maxSampleRows, t.Rows)
	}
	if len(t.Columns) == 0 || len(t.Columns) > generated.MaxColumns {
		problems.Add(place+".columns", "must be 1 to %d", generated.MaxColumns)
	}
	names := map[string]bool{}
	for j, c := range t.Columns {
		at := fmt.Sprintf("%s.columns[%d]", place, j)
		if key := strings.ToLower(c.Name); names[key] {
			problems.Add(at+".name", "%q occurs twice", c.Name)
		} else if !plainName(c.Name) {
			problems.Add(at+".name", notPlain)
		} else {
			names[key] = true
		}
		if _, known := generated.Kind(c.Values); !known {
			problems.Add(at+".values", "unknown value %q; use one of %s", c.Values, strings.Join(generated.Types(), ", "))
		}
	}
}

// dialect is what the database under the warehouse has to know.
func (w *warehouseEntry) dialect() *warehouseDialect {
	d := &warehouseDialect{
		catalogField: w.Catalog, defaultSchema: w.Schemas[0], schemas: w.Schemas, upper: w.UpperCase,
		types: map[api.Kind]string{}, tables: sampleTables,
	}
	for kind, word := range plainTypes {
		d.types[kind] = word
		if own := w.Types[string(kind)]; own != "" {
			d.types[kind] = own
		}
	}
	if len(w.Tables) > 0 {
		d.tables = nil
	}
	for _, t := range w.Tables {
		table := sampleTable{schema: max(0, slices.Index(w.Schemas, t.Schema)), rows: t.Rows, name: t.Name}
		for _, c := range t.Columns {
			kind, _ := generated.Kind(c.Values)
			table.columns = append(table.columns, sampleColumn{c.Name, declaredAs[kind], c.Values})
		}
		d.tables = append(d.tables, table)
	}
	return d
}

// details are what GET shows of the credentials.
func (e *Entry) details(s settings) map[string]any {
	shown := map[string]any{}
	if len(e.Details) == 0 {
		for _, f := range e.Credentials {
			if !f.Password && f.AliasOf == "" {
				e.detail(shown, detailEntry{Name: f.ID}, s)
			}
		}
	}
	for _, d := range e.Details {
		e.detail(shown, d, s)
	}
	return shown
}

// detail adds one member; a member without a value or default is left out.
func (e *Entry) detail(shown map[string]any, d detailEntry, s settings) {
	f := connector.Find(e.Credentials, d.credential())
	otherwise := d.Value
	if f != nil && otherwise == nil {
		otherwise = f.Default
	}
	switch {
	case f != nil && s.has(f.ID) && d.Member != "":
		if member := memberOf(s[f.ID], d.Member); member != "" {
			shown[d.Name] = member
			return
		}
	case f != nil && !f.Password && s.has(f.ID):
		if v, ok := plainValue(f.Type, s[f.ID]); ok {
			shown[d.Name] = v
			return
		}
	}
	if otherwise != nil {
		shown[d.Name] = otherwise
	}
}

// memberOf reads a text of a key file.
func memberOf(raw json.RawMessage, member string) string {
	var inside string
	if json.Unmarshal(raw, &inside) == nil {
		raw = json.RawMessage(inside)
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(raw, &members)
	return settings(members).text(member)
}
