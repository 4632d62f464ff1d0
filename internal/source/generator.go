package source

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/source/internal/generated"
	"github.com/destkit/destkit/server/api"
)

// generatedTable is the one table of a generator.
const generatedTable = "generated"

// generatorType documents the column types in its hint: the catalogue is what a
// client sees.
func generatorType() *sourceType {
	rows := text("rows", "Rows", "1000000", "0 to 10000000000.")
	rows.Type, rows.InputType, rows.Matches = fieldInteger, "number", `^([0-9]{1,10}|10000000000)$`
	seed := optional(text("seed", "Seed", "1", "Any whole number; the same seed makes the same rows. 0 when left out."))
	seed.Type, seed.InputType = fieldInteger, "number"
	columns := optional(text("columns", "Columns", `[{"name": "id", "type": "id"}]`,
		"A list of {name, type, distinct, null_percent}. Types: "+strings.Join(generated.Types(), ", ")+
			". distinct is the number of different values (all rows differ when left out, as far as the type has values), null_percent 0 to 100. Ten columns when left out."))
	columns.Type, columns.InputType = fieldArray, "textarea"
	schedule := optional(text("changes", "Changes", `{"every": "1h", "inserts": 10, "updates": 5, "deletes": 2}`,
		"What becomes of the rows on the service's clock: {every, from, inserts, updates, deletes}. The oldest rows are removed; updates leave columns of the types id, uuid and email. Steps count from the creation of the source when from is left out."))
	schedule.Type, schedule.InputType = fieldObject, "textarea"
	d := describe("generator", "Generator", rows, seed, columns, schedule)
	return &sourceType{Description: d, check: func(s settings) []api.Problem { return generated.Check(s) }, steps: opening, open: openGenerator}
}

func openGenerator(_ context.Context, _ *sourceType, s settings, o Options) (Source, error) {
	columns, err := generated.ReadColumns(s["columns"])
	if err != nil {
		return nil, err
	}
	g := &generator{now: o.Now, scratch: o.Scratch}
	g.table.Rows, g.table.Seed, g.table.Columns = s.integer("rows", 0), s.integer("seed", 0), columns
	if g.now == nil {
		g.now = time.Now
	}
	since := o.Since
	if since.IsZero() {
		since = g.now()
	}
	g.table.Changes, err = generated.ReadChanges(s["changes"], since)
	return g, err
}

// generator is a source whose rows are made up.
type generator struct {
	table   generated.Table
	now     func() time.Time
	scratch string
}

// Close has nothing to do.
func (g *generator) Close() error { return nil }

// Tables is one table, as for a file.
func (g *generator) Tables(context.Context) ([]api.Table, error) {
	return []api.Table{{Type: api.ObjectTable, TableCatalog: main, TableSchema: main, TableName: generatedTable, Columns: g.table.Describe()}}, nil
}

// Columns implements Source.
func (g *generator) Columns(_ context.Context, object Object) ([]api.Column, error) {
	if err := g.find(object); err != nil {
		return nil, err
	}
	return g.table.Describe(), nil
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

// Rows makes rows up, as they are at the moment of the call. In the order of a column
// of type id nothing is sorted: the numbers themselves are made in the order of their
// digits.
func (g *generator) Rows(ctx context.Context, object Object, columns, order []string) (Rows, error) {
	if err := g.find(object); err != nil {
		return nil, err
	}
	chosen, err := choose(object, g.table.Describe(), columns, order)
	if err != nil {
		return nil, err
	}
	byDigits := len(chosen.order) > 0 && g.table.InDigits(chosen.wanted[chosen.order[0]])
	return arranged(ctx, g.table.Read(ctx, g.now(), chosen.wanted, byDigits), chosen, byDigits, g.scratch)
}

// noQueries refuses SQL on a source without it.
func noQueries(typ string) error {
	return &QueryError{Message: "a " + typ + " source takes no queries: choose one of its tables"}
}
