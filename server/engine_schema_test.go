//go:build unix

package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/server/internal/lifecycle"
)

// changingTable is a table whose columns its owner changes: email, name and age, with
// three rows.
type changingTable struct {
	origin
	exec   func(sql string)
	upper  bool // names are in upper case
	retype string
}

func (o *changingTable) column(name string) string {
	if o.upper {
		return strings.ToUpper(name)
	}
	return name
}

// A column of SQLite has its type for life; its owner makes another one.
const retypeInSQLite = `ALTER TABLE customers ADD COLUMN age2 TEXT; UPDATE customers SET age2 = age;
	ALTER TABLE customers DROP COLUMN age; ALTER TABLE customers RENAME COLUMN age2 TO age`

const threeCustomers = `DELETE FROM customers;
	INSERT INTO customers (email, name, age) VALUES ('ada@example.com', 'Ada', 36), ('bob@example.com', 'Bob', 40), ('cy@example.com', 'Cy', 51)`

func sqliteTable(w *world) *changingTable {
	w.sourceFile()
	o := &changingTable{retype: retypeInSQLite, exec: w.changeSource}
	o.exec(`DROP TABLE customers; CREATE TABLE customers (email TEXT, name TEXT, age INTEGER);` + threeCustomers)
	o.connection = map[string]any{"name": "Shop", "type": "sqlite", "credentials": map[string]any{"path": w.source}}
	o.object = map[string]any{"type": "table", "table_catalog": "main", "table_schema": "main", "table_name": "customers"}
	return o
}

var columnWords = regexp.MustCompile(`\b(email|name|age2?|city)\b`)

// warehouseTable is a table of an emulated warehouse.
func warehouseTable(w *world) *changingTable {
	o := &changingTable{retype: retypeInSQLite, upper: true}
	o.connection = map[string]any{"name": "Shop", "type": "snowflake", "credentials": map[string]any{
		"account": "xy12345", "warehouse": "LOAD", "database": "CRM", "user": "SYNC", "password": "secret"}}
	o.object = map[string]any{"type": "table", "table_catalog": "CRM", "table_schema": "PUBLIC", "table_name": "PEOPLE"}
	o.exec = func(sql string) {
		sql = strings.ReplaceAll(sql, "customers", "PEOPLE")
		sql = columnWords.ReplaceAllStringFunc(sql, strings.ToUpper)
		source := w.do("GET", "/sources", w.key, nil).want(200).id("data.0.id")
		for _, one := range strings.Split(sql, ";") {
			w.executes(source, one)
		}
	}
	return o
}

func postgresTable(w *world) *changingTable {
	o := &changingTable{retype: `ALTER TABLE customers ALTER COLUMN age TYPE text`}
	o.origin, o.exec = postgresOrigin(w)
	o.exec(`ALTER TABLE customers ADD COLUMN age integer;` + threeCustomers)
	return o
}

// schemaWorld is a sync over a table whose columns change.
type schemaWorld struct {
	*syncWorld
	*changingTable
	sync int64
}

func newSchemaWorld(t *testing.T, open func(*world) *changingTable, changes map[string]any) *schemaWorld {
	w := newWorld(t)
	w.destination()
	s := &schemaWorld{syncWorld: &syncWorld{world: w}, changingTable: open(w)}
	source := w.do("POST", "/sources", w.key, connection(s.connection)).want(201).id("data.id")
	if s.upper {
		s.exec(`CREATE TABLE customers (email TEXT, name TEXT, age INTEGER);` + threeCustomers)
	}
	body := syncBody(source, w.newDestination())
	body["source_attributes"].(map[string]any)["object"] = s.object
	for _, m := range body["mappings"].([]any) {
		from := m.(map[string]any)["from"].(map[string]any)
		from["data"] = s.column(from["data"].(string))
	}
	maps.Copy(body, changes)
	w.do("POST", fmt.Sprintf("/sources/%d/refresh_tables", source), w.key, nil).want(200)
	w.control("POST", "/settle", nil).want(200)
	s.sync = w.do("POST", "/syncs", w.key, body).want(200).id("data.sync_id")
	return s
}

func allProperties(more map[string]any) map[string]any {
	out := map[string]any{"field_behavior": "sync_all_properties", "field_normalization": "lower_case"}
	maps.Copy(out, more)
	return out
}

// run runs the sync, and returns its outcome: the status or the error code, whether
// it was a full sync, and the changes of columns with their handling.
func (s *schemaWorld) run() (ended *answer, changes []string) {
	s.t.Helper()
	ended = s.runs(s.sync)
	if !ended.has("data.schema_changes") {
		return ended, nil
	}
	for _, c := range ended.objects("data.schema_changes") {
		changes = append(changes, strings.ToLower(fmt.Sprint(c["column"])+" "+fmt.Sprint(c["change"])+": "+fmt.Sprint(c["handling"])))
	}
	return ended, changes
}

// ends demands a completed run, with these changes.
func (s *schemaWorld) ends(changes ...string) *answer {
	s.t.Helper()
	ended, found := s.run()
	require.Equal(s.t, changes, found, string(ended.ended("completed").text))
	return ended
}

// completes demands a completed run of so many sent records, with these changes.
func (s *schemaWorld) completes(sent int64, changes ...string) *answer {
	s.t.Helper()
	ended := s.ends(changes...)
	require.Equal(s.t, sent, ended.id("data.records_updated"), string(ended.text))
	return ended
}

// values are those of one field of all people, by their email.
func (s *schemaWorld) values(field string) map[string]any {
	s.t.Helper()
	list, _ := s.records("person")
	out := map[string]any{}
	for _, record := range list {
		var fields map[string]any
		require.NoError(s.t, json.Unmarshal(record.Fields, &fields))
		out[fields["email"].(string)] = fields[field]
	}
	return out
}

func (s *schemaWorld) patch(body map[string]any) {
	s.t.Helper()
	shown := s.do("GET", fmt.Sprintf("/syncs/%d", s.sync), s.key, nil).want(200).at("data").(map[string]any)
	maps.Copy(shown, body)
	s.do("PATCH", fmt.Sprintf("/syncs/%d", s.sync), s.key, shown).want(200)
}

// batches are the sync_batch calls that the destination has got.
func (s *schemaWorld) batches() int {
	return len(s.sim.Journal(destsim.JournalFilter{Method: "sync_batch"}).Entries)
}

// lastRun is the id of the newest run.
func (s *schemaWorld) lastRun() int64 {
	s.t.Helper()
	return s.do("GET", fmt.Sprintf("/syncs/%d/sync_runs?per_page=1", s.sync), s.key, nil).want(200).id("data.0.id")
}

// eachTable runs a test over SQLite, an emulated warehouse and PostgreSQL.
func eachTable(t *testing.T, test func(t *testing.T, open func(*world) *changingTable)) {
	for name, open := range map[string]func(*world) *changingTable{
		"sqlite": sqliteTable, "warehouse": warehouseTable, "postgres": postgresTable,
	} {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}

func inEachRow(value any) map[string]any {
	return map[string]any{"ada@example.com": value, "bob@example.com": value, "cy@example.com": value}
}

const addCity = `ALTER TABLE customers ADD COLUMN city TEXT DEFAULT 'Graz'`
const dropCity = `ALTER TABLE customers DROP COLUMN city`

// TestSchemaPropagates: with sync_all_properties a new column is mapped and sent for
// every record, one that is gone is not missed, and one with another type is cast as
// before. The run, its reason and the way of a record say so (spec 2.6).
func TestSchemaPropagates(t *testing.T) {
	eachTable(t, func(t *testing.T, open func(*world) *changingTable) {
		s := newSchemaWorld(t, open, allProperties(nil))
		email, age, city := s.column("email")+" > email", s.column("age")+" > age", s.column("city")+" > city"
		require.Contains(t, s.mapped(s.sync), age, "generated mappings are shown before the first run")
		s.completes(3)
		require.Equal(t, map[string]any{"ada@example.com": 36.0, "bob@example.com": 40.0, "cy@example.com": 51.0}, s.values("age"))
		s.completes(0)

		s.exec(addCity)
		added := s.completes(3, `city added: mapped to the field "city"`)
		require.Equal(t, true, added.at("data.full_sync"))
		require.Contains(t, added.at("data.sync_trigger_reason.ui_detail"), `full sync: the columns of the source have changed ("`+s.column("city")+`" added)`)
		require.Equal(t, inEachRow("Graz"), s.values("city"))
		require.Subset(t, s.mapped(s.sync), []string{email, age, city})
		way := s.control("GET", fmt.Sprintf("/explain?sync_id=%d&identifier=ada@example.com", s.sync), nil).want(200)
		require.Equal(t, added.at("data.schema_changes"), way.at("schema_changes"))
		require.Contains(t, way.at("reason"), "the columns of the source have changed")
		s.completes(0)

		s.exec(s.retype)
		s.ends("age retyped: values are cast to the type of the field as before; what cannot be cast is an invalid record")
		s.exec(`UPDATE customers SET age = '37' WHERE email = 'ada@example.com'; UPDATE customers SET age = 'old' WHERE email = 'cy@example.com'`)
		ended, _ := s.run()
		require.EqualValues(t, 1, ended.id("data.source_record_invalids"), string(ended.text))
		require.Equal(t, map[string]any{"ada@example.com": 37.0, "bob@example.com": 40.0, "cy@example.com": 51.0}, s.values("age"))
		s.exec(`UPDATE customers SET age = '51' WHERE email = 'cy@example.com'`)

		s.exec(dropCity)
		s.ends("city removed: its generated mapping is gone; the field keeps the values that it has")
		require.NotContains(t, s.mapped(s.sync), city)
		require.Equal(t, inEachRow("Graz"), s.values("city"))
		s.completes(0)
	})
}

// TestSchemaIgnored: no mapping is generated of a column that came later, until
// another policy is chosen; one that goes and comes back is known.
func TestSchemaIgnored(t *testing.T) {
	eachTable(t, func(t *testing.T, open func(*world) *changingTable) {
		s := newSchemaWorld(t, open, allProperties(map[string]any{"schema_change_policy": "ignore"}))
		before := s.mapped(s.sync)
		s.completes(3)
		s.exec(addCity)
		require.Equal(t, false, s.completes(0, "city added: not mapped: schema_change_policy is ignore").at("data.full_sync"))
		require.Equal(t, before, s.mapped(s.sync))
		s.completes(0) // said once
		s.patch(map[string]any{"label": "Renamed"})
		s.completes(0)
		require.Equal(t, before, s.mapped(s.sync))

		s.exec(`ALTER TABLE customers DROP COLUMN age`)
		s.ends("age removed: its generated mapping is gone; the field keeps the values that it has")
		s.exec(`ALTER TABLE customers ADD COLUMN age INTEGER`)
		s.completes(3, `age added: mapped to the field "age"`)
		require.ElementsMatch(t, before, s.mapped(s.sync))
		s.exec(s.retype)
		ended, changes := s.run()
		ended.ended("completed")
		require.Len(t, changes, 1)
		require.Contains(t, changes[0], "age retyped: values are cast")

		s.patch(map[string]any{"schema_change_policy": "propagate"})
		s.runs(s.sync).ended("completed")
		require.Equal(t, inEachRow("Graz"), s.values("city"))
	})
}

// TestSchemaPauses: every change pauses the sync, sends nothing, and is reported,
// even without an alert; resuming accepts the columns.
func TestSchemaPauses(t *testing.T) {
	eachTable(t, func(t *testing.T, open func(*world) *changingTable) {
		s := newSchemaWorld(t, open, allProperties(map[string]any{"schema_change_policy": "pause", "alert_attributes": []any{}}))
		l := s.listen()
		s.hook(l, lifecycle.EventRaised, lifecycle.EventResolved)
		s.completes(3)
		for _, change := range []struct{ sql, says string }{
			{addCity, "city added"}, {s.retype, "age retyped"}, {dropCity, "city removed"},
		} {
			s.exec(change.sql)
			batches := s.batches()
			ended, changes := s.run()
			require.Equal(t, "SCHEMA_CHANGED", ended.at("data.error_code"), string(ended.text))
			require.Contains(t, ended.at("data.error_message"), "set paused to false")
			require.Equal(t, []string{change.says + ": the sync is paused until the change has been reviewed"}, changes)
			require.Equal(t, batches, s.batches(), "nothing was sent")
			require.Equal(t, true, s.do("GET", fmt.Sprintf("/syncs/%d", s.sync), s.key, nil).want(200).at("data.paused"))
			s.says(l, "+Sync Failed")
			s.control("POST", "/clock", map[string]any{"advance": "1h"}).want(200)
			require.Equal(t, ended.id("data.id"), s.lastRun(), "it is not tried again by itself")
			s.patch(map[string]any{"paused": false})
			s.ends()
		}
		require.NotContains(t, s.mapped(s.sync), s.column("city")+" > city")
	})
}

// TestColumnsOfTheClient: a column that the client has mapped and that is gone fails
// the run with its name, once for each trigger; columns that are not read come and go.
func TestColumnsOfTheClient(t *testing.T) {
	eachTable(t, func(t *testing.T, open func(*world) *changingTable) {
		s := newSchemaWorld(t, open, nil)
		s.completes(3)
		s.exec(addCity)
		s.completes(0, "city added: not mapped: field_behavior is specific_properties")
		s.exec(s.retype)
		s.completes(0, "age retyped: no mapping reads it")
		s.exec(dropCity)
		s.completes(0, "city removed: no mapping read it")

		s.exec(`ALTER TABLE customers DROP COLUMN name`)
		ended, changes := s.run()
		require.Equal(t, "COLUMN_GONE", ended.at("data.error_code"), string(ended.text))
		require.Contains(t, ended.at("data.error_message"), fmt.Sprintf("no longer has the column %q, which mappings[1] reads", s.column("name")))
		require.Equal(t, []string{"name removed: a mapping of the client reads it: the run fails"}, changes)
		s.control("POST", "/clock", map[string]any{"advance": "1h"}).want(200)
		require.Equal(t, ended.id("data.id"), s.lastRun(), "it is not tried again by itself")
		s.exec(`ALTER TABLE customers ADD COLUMN name TEXT DEFAULT 'Somebody'`)
		s.completes(3)
		require.Equal(t, inEachRow("Somebody"), s.values("last_name"))
	})
}

// TestSchemaOfDataset: a query that selects everything has new columns as a table has
// them, and the dataset shows them without a refresh.
func TestSchemaOfDataset(t *testing.T) {
	var said sayings
	w := newSyncWorld(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&said, nil)) })
	w.changeSource(threePeople)
	dataset := w.do("POST", "/datasets", w.key, map[string]any{"name": "All", "type": "sql", "source_id": w.source, "query": "SELECT * FROM customers"}).want(201).id("data.id")
	id := w.kept(allProperties(map[string]any{"source_attributes": map[string]any{
		"connection_id": w.source, "object": map[string]any{"type": "dataset", "id": dataset}}})).id("data.id")
	require.False(t, w.runs(id).has("data.schema_changes"))
	w.changeSource(addCity)
	run := w.runs(id)
	require.Equal(t, `mapped to the field "city"`, run.at("data.schema_changes.0.handling"), string(run.text))
	require.Contains(t, said.String(), fmt.Sprintf(`msg="column of the source has changed" run=%d sync=%d workspace=1 column=city change=added type_before="" type_after=TEXT handling="mapped to`, run.id("data.id"), id))
	run.is("data.schema_changes.0.type_before", nil, "data.schema_changes.0.type_after", "TEXT")
	require.Contains(t, string(w.do("GET", fmt.Sprintf("/datasets/%d", dataset), w.key, nil).want(200).text), `"city"`)
}

// TestSchemaWithoutNewFields: a destination that has stopped to create fields gets
// the columns that have one; the others are named, and the run is none the worse.
func TestSchemaWithoutNewFields(t *testing.T) {
	h := newHostile(t, 10*time.Second, "list_objects", over(func(r []byte) []byte {
		return bytes.ReplaceAll(r, []byte(`,"can_create_fields":"on_write"`), nil)
	}))
	id := h.kept(allProperties(nil)).id("data.id")
	h.runs(id)
	before := h.mapped(id)
	h.armed.Store(true)
	h.changeSource(addCity)
	run := h.runs(id).ended("completed")
	require.Equal(t, `not mapped: the object "person" has no field for it and creates none`, run.at("data.schema_changes.0.handling"))
	require.Equal(t, before, h.mapped(id))
	require.EqualValues(t, 0, run.id("data.records_updated"))
}

// TestSchemaPolicyIsChecked: it is shown as it was sent, and not where no client has sent
// it; it has no meaning for topics.
func TestSchemaPolicyIsChecked(t *testing.T) {
	w := newSyncWorld(t)
	require.False(t, w.kept(nil).has("data.schema_change_policy"))
	require.Equal(t, "pause", w.kept(map[string]any{"schema_change_policy": "pause"}).at("data.schema_change_policy"))
	require.Contains(t, w.refused(map[string]any{"schema_change_policy": "stop"})["schema_change_policy"], "propagate, ignore, pause")
}
