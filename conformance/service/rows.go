package service

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// row is one row of a source by column. Values: string, int, float64, bool, nil,
// or sqlText for an expression.
type row map[string]any

// sqlText is an expression that stands in the query as it is.
type sqlText string

// table is what a dataset is to give: columns in order, and rows.
type table struct {
	columns []string
	rows    []row
}

// query gives the rows as one statement that every SQL source understands.
func (t table) query() string {
	if len(t.rows) == 0 {
		var cells []string
		for _, c := range t.columns {
			cells = append(cells, `'' AS "`+c+`"`)
		}
		return "SELECT " + strings.Join(cells, ", ") + " WHERE 1 = 0"
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
	case sqlText:
		return string(v)
	case string:
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	case bool:
		return strings.ToUpper(strconv.FormatBool(v))
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

// tableOf reads the rows of a source: a head of columns, the first of which is
// the identifier. NULL is one, and the column count has integers.
func tableOf(t *wire.DataTable) (table, error) {
	var out table
	for i, line := range t.Rows() {
		if i == 0 {
			out.columns = slices.Clone(line)
			continue
		}
		r := row{}
		for j, c := range line {
			value, err := cellOf(out.columns[j], c)
			if err != nil {
				return out, err
			}
			r[out.columns[j]] = value
		}
		out.rows = append(out.rows, r)
	}
	return out, nil
}

func cellOf(column, text string) (any, error) {
	switch {
	case text == "NULL":
		return nil, nil
	case column == "count":
		return strconv.Atoi(text)
	}
	return text, nil
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
	sc.made(thing{kind: "datasets", id: d.id, name: d.name})
	return d, nil
}

// holds gives the dataset other rows.
func (sc *scenario) holds(d *dataset, t table) error {
	d.table = t
	_, err := sc.must(request{method: "PATCH", path: "/datasets/" + strconv.FormatInt(d.id, 10), body: map[string]any{"query": t.query()}})
	return err
}
