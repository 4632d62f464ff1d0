package service

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
)

// ownTable makes a table in an emulated warehouse of the scenario, and lets its
// syncs read it: unlike a dataset, it gets columns without a word to the service.
func (p *play) ownTable(rows *conformance.Table) error {
	t, err := tableOf(rows)
	if err != nil {
		return err
	}
	if err := p.ownSource(); err != nil {
		return err
	}
	name := strings.ToUpper(strings.NewReplacer("-", "_").Replace(p.called("table")))
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
	if err := p.executes(statements...); err != nil {
		return err
	}
	source := p.source
	p.endings = append(p.endings, func(ctx context.Context) error {
		_, err := p.send(ctx, "CLEAN", request{method: "POST", path: below("sources", source, "/execute"), control: true,
			body: map[string]any{"sql": fmt.Sprintf(`DROP TABLE "%s"`, name)}})
		return err
	})
	return p.readsTable(name, t)
}

// readsTable finds a new table among the objects of the source.
func (p *play) readsTable(name string, t table) error {
	if _, err := p.must(request{method: "POST", path: below("sources", p.source, "/refresh_tables")}); err != nil {
		return err
	}
	if _, err := p.control("POST", "/settle", nil); err != nil {
		return err
	}
	list, err := p.must(request{method: "GET", path: below("sources", p.source, "/objects?per_page=100")})
	if err != nil {
		return err
	}
	for _, object := range itemsOf(list.at("data")) {
		if stringOf(object.Get("table_name")) != name {
			continue
		}
		g := p.ground()
		g.rows = &dataset{name: name, table: t}
		maps.Copy(g.over, map[string]any{
			"source_attributes": map[string]any{"connection_id": p.source, "object": tableObject(object)},
			"mappings":          []any{identifies(mapping(t.columns[0], t.columns[0]))},
		})
		return nil
	}
	return conformance.Outcome(conformance.Inconclusive, "", "the source does not show the new table %s", name)
}

// executes runs statements on the warehouse, as its owner would.
func (p *play) executes(statements ...string) error {
	_, err := p.control("POST", below("sources", p.source, "/execute"), map[string]any{"sql": strings.Join(statements, "; ")})
	return err
}

// tableGets adds a column with the same value in every row.
func (p *play) tableGets(column, value string) error {
	rows := p.ground().rows
	rows.table.columns = append(slices.Clone(rows.table.columns), column)
	for _, r := range rows.table.rows {
		r[column] = value
	}
	return p.executes(
		fmt.Sprintf(`ALTER TABLE "%s" ADD COLUMN "%s" TEXT`, rows.name, column),
		fmt.Sprintf(`UPDATE "%s" SET "%s" = %s`, rows.name, column, literal(value)))
}

// liveSync makes a sync that follows a topic of its own.
func (p *play) liveSync(family string) error {
	if err := p.aTopic(); err != nil {
		return err
	}
	body, err := p.draft()
	if err != nil {
		return err
	}
	body["paused"], body["sync_behavior_family"] = false, family
	_, err = p.newSync(p.dest, p.ground().rows, "upsert", body)
	return err
}

// producerSends appends messages to the topic, and waits until the service has
// nothing left to do. Nothing is triggered.
func (p *play) producerSends(rows *conformance.Table) error {
	t, err := tableOf(rows)
	if err != nil {
		return err
	}
	at, _ := p.ground().over["source_attributes"].(map[string]any)
	object, _ := at["object"].(map[string]any)
	topic, ok := object["id"].(int64)
	if !ok {
		return fmt.Errorf("send messages: the scenario has no topic")
	}
	if _, err := p.control("POST", below("topics", topic, "/messages"), t.rows); err != nil {
		return err
	}
	_, err = p.control("POST", "/settle", nil)
	return err
}
