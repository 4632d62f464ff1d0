package service

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
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
func tableOf(t *engine.Table) (table, error) {
	var out table
	for i, line := range engine.Rows(t) {
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

// ownTable makes a table in an emulated warehouse of the scenario, and lets its
// syncs read it: unlike a dataset, it gets columns without a word to the service.
func (sc *scenario) ownTable(rows *engine.Table) error {
	t, err := tableOf(rows)
	if err != nil {
		return err
	}
	if err := sc.ownSource(); err != nil {
		return err
	}
	name := strings.ToUpper(strings.NewReplacer("-", "_").Replace(sc.called("table")))
	var columns []string
	for _, c := range t.columns {
		columns = append(columns, fmt.Sprintf(`"%s" TEXT`, c))
	}
	statements := []string{fmt.Sprintf(`CREATE TABLE "%s" (%s)`, name, strings.Join(columns, ", "))}
	for _, r := range t.rows {
		var values []string
		for _, c := range t.columns {
			values = append(values, literal(r[c]))
		}
		statements = append(statements, fmt.Sprintf(`INSERT INTO "%s" VALUES (%s)`, name, strings.Join(values, ", ")))
	}
	if err := sc.executes(statements...); err != nil {
		return err
	}
	source := sc.source
	sc.endings = append(sc.endings, func(ctx context.Context) error {
		_, err := sc.send(ctx, "CLEAN", request{method: "POST", path: below("sources", source, "/execute"), control: true,
			body: map[string]any{"sql": fmt.Sprintf(`DROP TABLE "%s"`, name)}})
		return err
	})
	return sc.readsTable(name, t)
}

// readsTable finds a new table among the objects of the source.
func (sc *scenario) readsTable(name string, t table) error {
	if _, err := sc.must(request{method: "POST", path: below("sources", sc.source, "/refresh_tables")}); err != nil {
		return err
	}
	if _, err := sc.control("POST", "/settle", nil); err != nil {
		return err
	}
	list, err := sc.must(request{method: "GET", path: below("sources", sc.source, "/objects?per_page=100")})
	if err != nil {
		return err
	}
	for _, object := range itemsOf(list.at("data")) {
		if jsonvalue.Text(object.Get("table_name")) != name {
			continue
		}
		g := sc.nextSync()
		g.rows = &dataset{name: name, table: t}
		maps.Copy(g.over, map[string]any{
			"source_attributes": map[string]any{"connection_id": sc.source, "object": tableObject(object)},
			"mappings":          []any{identifies(mapping(t.columns[0], t.columns[0]))},
		})
		return nil
	}
	return engine.Outcome(conformance.Inconclusive, "", "the source does not show the new table %s", name)
}

// executes runs statements on the warehouse, as its owner would.
func (sc *scenario) executes(statements ...string) error {
	_, err := sc.control("POST", below("sources", sc.source, "/execute"), map[string]any{"sql": strings.Join(statements, "; ")})
	return err
}

// tableGets adds a column with the same value in every row.
func (sc *scenario) tableGets(column, value string) error {
	rows := sc.nextSync().rows
	rows.table.columns = append(slices.Clone(rows.table.columns), column)
	for _, r := range rows.table.rows {
		r[column] = value
	}
	return sc.executes(
		fmt.Sprintf(`ALTER TABLE "%s" ADD COLUMN "%s" TEXT`, rows.name, column),
		fmt.Sprintf(`UPDATE "%s" SET "%s" = %s`, rows.name, column, literal(value)))
}

// liveSync makes a sync that follows a topic of its own.
func (sc *scenario) liveSync(family string) error {
	if err := sc.aTopic(); err != nil {
		return err
	}
	body, err := sc.draft()
	if err != nil {
		return err
	}
	body["paused"], body["sync_behavior_family"] = false, family
	_, err = sc.newSync(sc.dest, sc.nextSync().rows, "upsert", body)
	return err
}

// producerSends appends messages to the topic, and waits until the service has
// nothing left to do. Nothing is triggered.
func (sc *scenario) producerSends(rows *engine.Table) error {
	t, err := tableOf(rows)
	if err != nil {
		return err
	}
	at, _ := sc.nextSync().over["source_attributes"].(map[string]any)
	object, _ := at["object"].(map[string]any)
	topic, ok := object["id"].(int64)
	if !ok {
		return fmt.Errorf("send messages: the scenario has no topic")
	}
	if _, err := sc.control("POST", below("topics", topic, "/messages"), t.rows); err != nil {
		return err
	}
	_, err = sc.control("POST", "/settle", nil)
	return err
}
