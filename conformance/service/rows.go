package service

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/lists"
)

// row is one row of a source by column. Values: string, json.Number, bool or nil.
type row map[string]any

// table is what a dataset is to give: columns in order, and rows.
type table struct {
	columns []string
	rows    []row
}

// query gives the rows as one statement that every SQL source understands.
func (t table) query() string {
	if len(t.rows) == 0 {
		empty := lists.Of(t.columns, func(c string) string { return `'' AS "` + c + `"` })
		return "SELECT " + strings.Join(empty, ", ") + " WHERE 1 = 0"
	}
	var b strings.Builder
	for i, r := range t.rows {
		if i > 0 {
			b.WriteString(" UNION ALL ")
		}
		b.WriteString("SELECT ")
		for j, c := range t.columns {
			if j > 0 {
				b.WriteString(", ")
			}
			b.WriteString(literal(r[c]))
			if i == 0 {
				b.WriteString(` AS "` + c + `"`)
			}
		}
	}
	return b.String()
}

func literal(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case string:
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	case bool:
		return strings.ToUpper(strconv.FormatBool(v))
	}
	return fmt.Sprint(v)
}

// tableOf reads the rows of a source: a head of columns, the first of which is the
// identifier, and cells as JSON.
func (sc *scenario) tableOf(t *engine.Table) (table, error) {
	out := table{columns: slices.Clone(engine.Rows(t)[0])}
	for _, line := range cells(t) {
		r := row{}
		for column, cell := range line {
			text, err := sc.filled(cell)
			if err != nil {
				return out, err
			}
			if r[column], err = jsonvalue.DecodeAny([]byte(text)); err != nil { // a number as it stands there: 7 and not 7.0
				return out, fmt.Errorf("read cell %q: %w", cell, err)
			}
		}
		out.rows = append(out.rows, r)
	}
	return out, nil
}

// numbered are n rows with ids "r<from>", … and a name each.
func numbered(from, n int) table {
	t := table{columns: []string{"id", "name"}}
	for i := range n {
		t.rows = append(t.rows, row{"id": fmt.Sprintf("r%05d", from+i), "name": fmt.Sprintf("name %d", from+i)})
	}
	return t
}

// dataset is a query of the run's source that a scenario changes as it likes.
type dataset struct {
	id    int64
	name  string
	table table
}

// newDataset makes a dataset with these rows.
func (sc *scenario) newDataset(t table) (*dataset, error) {
	d := &dataset{name: sc.called("dataset"), table: t}
	a, err := sc.must(request{method: "POST", path: "/datasets", body: map[string]any{
		"name": d.name, "type": "sql", "source_id": sc.source, "query": t.query(),
	}})
	if err != nil {
		return nil, err
	}
	d.id = a.id("data", "id")
	sc.made(thing{kind: "datasets", id: d.id})
	return d, nil
}

// holds gives the dataset other rows.
func (sc *scenario) holds(d *dataset, t table) error {
	d.table = t
	_, err := sc.must(request{method: "PATCH", path: "/datasets/" + strconv.FormatInt(d.id, 10), body: map[string]any{"query": t.query()}})
	return err
}
