package source

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/destkit/destkit/server/api"
)

// Limits of a generator.
const (
	maxGeneratedRows    = 10_000_000_000
	maxGeneratedColumns = 1000
	generatedTable      = "generated"
)

// generatorType documents the column types in its hint: the catalogue is what a
// client sees.
func generatorType() *sourceType {
	rows := text("rows", "Rows", "1000000", "0 to 10000000000.")
	rows.Type, rows.InputType, rows.Matches = fieldInteger, "number", `^([0-9]{1,10}|10000000000)$`
	seed := optional(text("seed", "Seed", "1", "Any whole number; the same seed makes the same rows. 0 when left out."))
	seed.Type, seed.InputType = fieldInteger, "number"
	columns := optional(text("columns", "Columns", `[{"name": "id", "type": "id"}]`,
		"A list of {name, type, distinct, null_percent}. Types: "+strings.Join(generatedTypeNames(), ", ")+
			". distinct is the number of different values (all rows differ when left out, as far as the type has values), null_percent 0 to 100. Ten columns when left out."))
	columns.Type, columns.InputType = fieldArray, "textarea"
	schedule := optional(text("changes", "Changes", `{"every": "1h", "inserts": 10, "updates": 5, "deletes": 2}`,
		"What becomes of the rows on the service's clock: {every, from, inserts, updates, deletes}. The oldest rows are removed; updates leave columns of the types id, uuid and email. Steps count from the creation of the source when from is left out."))
	schedule.Type, schedule.InputType = fieldObject, "textarea"
	d := describe("generator", "Generator", rows, seed, columns, schedule)
	return &sourceType{Description: d, check: checkGenerator, steps: opening, open: openGenerator}
}

func openGenerator(_ context.Context, _ *sourceType, s settings, o Options) (Source, error) {
	columns, err := generatedColumns(s["columns"])
	if err != nil {
		return nil, err
	}
	g := &generator{rows: s.integer("rows", 0), seed: s.integer("seed", 0), columns: columns, scratch: o.Scratch, now: o.Now}
	if g.now == nil {
		g.now = time.Now
	}
	since := o.Since
	if since.IsZero() {
		since = g.now()
	}
	g.changes, err = generatedChanges(s["changes"], since)
	return g, err
}

// generator makes rows up: the value of a cell is a function of seed, row and
// column, and of the moment where the rows change, so that any number of rows
// needs no memory.
type generator struct {
	rows, seed int64
	columns    []generatedColumn
	changes    changes
	now        func() time.Time
	scratch    string
}

// generatedColumn is one entry of the credential columns.
type generatedColumn struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Distinct    *int64 `json:"distinct"`
	NullPercent *int64 `json:"null_percent"`
	made        *generatedType
}

// defaultColumns are what a generator without columns makes.
const defaultColumns = `[
	{"name": "id", "type": "id"},
	{"name": "email", "type": "email"},
	{"name": "first_name", "type": "first_name"},
	{"name": "last_name", "type": "last_name"},
	{"name": "company_id", "type": "integer", "distinct": 1000},
	{"name": "city", "type": "city", "null_percent": 5},
	{"name": "balance", "type": "decimal"},
	{"name": "active", "type": "boolean"},
	{"name": "signed_up_on", "type": "date"},
	{"name": "updated_at", "type": "date_time"}
]`

// generatedColumns reads the credential; left out, it is the default set.
func generatedColumns(raw json.RawMessage) ([]generatedColumn, error) {
	if !(settings{"columns": raw}).has("columns") {
		raw = json.RawMessage(defaultColumns)
	}
	var columns []generatedColumn
	if err := json.Unmarshal(raw, &columns); err != nil {
		return nil, fmt.Errorf("read columns: %w", err)
	}
	for i := range columns {
		columns[i].made = generatedTypes[columns[i].Type]
	}
	return columns, nil
}

// checkGenerator reports everything that is wrong with columns and changes.
func checkGenerator(s settings) []api.Problem {
	return append(checkGeneratedColumns(s), checkChanges(s)...)
}

func checkGeneratedColumns(s settings) []api.Problem {
	const place = "credentials.columns"
	if !s.has("columns") {
		return nil
	}
	var entries []json.RawMessage
	if json.Unmarshal(s["columns"], &entries) != nil {
		return []api.Problem{{Field: place, Message: "must be a list of columns, each an object with name and type"}}
	}
	if len(entries) == 0 || len(entries) > maxGeneratedColumns {
		return []api.Problem{{Field: place, Message: fmt.Sprintf("must hold 1 to %d columns", maxGeneratedColumns)}}
	}
	var problems []api.Problem
	seen := map[string]bool{}
	for i, raw := range entries {
		at := fmt.Sprintf("%s[%d]", place, i)
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil || members == nil {
			problems = append(problems, api.Problem{Field: at, Message: "must be an object with name and type"})
			continue
		}
		problems = append(problems, checkGeneratedColumn(at, members)...)
		name := settings(members).text("name")
		if seen[name] && name != "" {
			problems = append(problems, api.Problem{Field: at + ".name", Message: "is the name of an earlier column"})
		}
		seen[name] = true
	}
	return problems
}

// checkGeneratedColumn looks at raw members, so that a wrong type of one does not
// hide what is wrong with the others.
func checkGeneratedColumn(at string, members settings) []api.Problem {
	var problems []api.Problem
	object := func(name, message string) {
		problems = append(problems, api.Problem{Field: at + "." + name, Message: message})
	}
	for _, name := range sortedKeys(members) {
		switch name {
		case "name", "type", "distinct", "null_percent":
		default:
			object(name, "is not known; a column has name, type, distinct and null_percent")
		}
	}
	var text string
	if json.Unmarshal(members["name"], &text) != nil || text == "" || len(text) > 255 {
		object("name", "must be a string of 1 to 255 bytes")
	}
	typ := members.text("type")
	if generatedTypes[typ] == nil {
		object("type", "must be one of "+strings.Join(generatedTypeNames(), ", "))
	}
	for _, range_ := range []struct {
		name     string
		from, to int64
	}{{"distinct", 1, maxGeneratedRows}, {"null_percent", 0, 100}} {
		if !members.has(range_.name) {
			continue
		}
		if n, ok := plainNumber(members[range_.name]); !ok || n < range_.from || n > range_.to {
			object(range_.name, fmt.Sprintf("must be a whole number of %d to %d", range_.from, range_.to))
		} else if typ == "id" {
			object(range_.name, "does not go with type id, which is unique and never null")
		} else if typ == changedType {
			object(range_.name, "does not go with type "+changedType+", which is the moment of the last change")
		}
	}
	return problems
}

// plainNumber reads a number that is written without point and exponent.
func plainNumber(raw json.RawMessage) (n int64, ok bool) {
	return n, json.Unmarshal(raw, &n) == nil
}

// Close has nothing to do.
func (g *generator) Close() error { return nil }

// Tables is one table, as for a file.
func (g *generator) Tables(context.Context) ([]api.Table, error) {
	return []api.Table{{Type: api.ObjectTable, TableCatalog: main, TableSchema: main, TableName: generatedTable, Columns: g.describe()}}, nil
}

// Columns implements Source.
func (g *generator) Columns(_ context.Context, object Object) ([]api.Column, error) {
	if err := g.find(object); err != nil {
		return nil, err
	}
	return g.describe(), nil
}

// find refuses every other name: a misspelt table must not read as this one.
func (g *generator) find(object Object) error {
	if object.Query != "" {
		return noQueries("generator")
	}
	if !isMain(object.Catalog) || !isMain(object.Schema) || object.Name != generatedTable {
		return fmt.Errorf("find table %s: a generator has one, %s: %w", object, generatedTable, ErrNoTable)
	}
	return nil
}

// noQueries refuses SQL on a source without it.
func noQueries(typ string) error {
	return &QueryError{Message: "a " + typ + " source takes no queries: choose one of its tables"}
}

// describe gives the columns as they were asked for.
func (g *generator) describe() []api.Column {
	columns := make([]api.Column, len(g.columns))
	for i, c := range g.columns {
		columns[i] = api.Column{Name: c.Name, Type: c.Type, Kind: c.made.kind}
	}
	return columns
}
