package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/internal/yamldoc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/connectors"
	"github.com/destkit/destkit/server/internal/sync/destination/catalogue"
)

// ownType is a type of destinations and of sources under one name.
const ownType = `
destination:
  service_name: acme_crm
  label: Acme CRM
  account: {from: tenant, name: Acme}
  refuse: {credential: key, word: wrong}
  credentials:
    - {id: tenant, label: Tenant, type: string, rules: [required], input_type: text, placeholder: north}
    - {id: key, label: Key, type: string, rules: [required], input_type: password, password: true}
  objects:
    - full_name: person
      label: Person
      operations: [upsert, update, mirror]
      custom_fields: true
      fields:
        - {full_name: ref, label: Reference, type: string, keys: [upsert, update]}
        - {full_name: name, label: Name, type: string, required: true}
      advanced_configuration:
        - {name: note, type: string, label: Note, input_type: text, default: none, effect: stamp, field: note_kept}
source:
  service_name: acme_crm
  label: Acme warehouse
  engines: [basic, advanced]
  refuse: {credential: key, word: wrong}
  credentials:
    - {id: tenant, label: Tenant, type: string, rules: [required], input_type: text, placeholder: north}
    - {id: key, label: Key, type: string, rules: [required], input_type: password, password: true}
  warehouse:
    catalog: tenant
    schemas: [public]
    types: {string: words}
    tables:
      - name: people
        rows: 30
        columns: [{name: id, values: uuid}, {name: name, values: first_name}, {name: born, values: date}]
`

// ownConnections makes a source and a destination of the type.
func ownConnections(w *world) (source, destination int64) {
	w.t.Helper()
	credentials := map[string]any{"tenant": "north", "key": "own-secret"}
	a := w.do("POST", "/sources", w.key, map[string]any{"connection": map[string]any{"name": "Own", "type": "acme_crm", "sync_engine": "advanced", "credentials": credentials}}).want(http.StatusCreated)
	require.Equal(w.t, true, a.at("data.last_test_succeeded"), a.header.Get("Warning"))
	b := w.do("POST", "/destinations", w.key, map[string]any{"service_connection": map[string]any{"name": "Own", "type": "acme_crm", "credentials": credentials}}).want(http.StatusCreated)
	require.Equal(w.t, "Acme north", b.at("data.connection_details.account_name"))
	return a.id("data.id"), b.id("data.id")
}

// runOwn makes a sync between the two, runs it, and counts what arrived.
func runOwn(w *world, source, destination int64) {
	w.t.Helper()
	id := w.do("POST", "/syncs", w.key, map[string]any{
		"label": "Own", "operation": "upsert",
		"source_attributes":      map[string]any{"connection_id": source, "object": map[string]any{"type": "table", "table_catalog": "north", "table_schema": "public", "table_name": "people"}},
		"destination_attributes": map[string]any{"connection_id": destination, "object": "person"},
		"mappings":               []any{column("id", "ref", true), column("name", "name", false)},
		"mode":                   map[string]any{"type": "triggered", "triggers": map[string]any{}},
	}).want(http.StatusOK).id("data.sync_id")
	w.oneRun(id).ended("completed")
	kept := w.control("GET", fmt.Sprintf("/destinations/%d/records?object=person", destination), nil).want(http.StatusOK)
	require.EqualValues(w.t, 30, kept.id("total"))
	require.Contains(w.t, string(kept.text), `"note_kept":"none"`, "the effect of a key that was declared")
}

// A declared type is listed, used end to end, and goes when nothing uses it.
func TestOwnTypes(t *testing.T) {
	w := newWorld(t)
	made := w.control("POST", "/connectors", ownType).want(http.StatusCreated)
	require.Equal(t, []any{"destination", "source"}, made.at("kinds"))
	w.control("POST", "/connectors", ownType).want(http.StatusOK)
	for _, list := range []string{"/connectors", "/source_types"} {
		require.Contains(t, string(w.do("GET", list+"?per_page=100", w.key, nil).want(http.StatusOK).text), `"service_name":"acme_crm"`)
	}
	source, destination := ownConnections(w)
	table := w.do("GET", fmt.Sprintf("/sources/%d/objects", source), w.key, nil).want(http.StatusOK).id("data.0.id")
	require.Equal(t, "words", w.do("GET", fmt.Sprintf("/sources/%d/tables/%d", source, table), w.key, nil).want(http.StatusOK).at("data.columns.0.type"))
	refused := w.destinationOf("acme_crm", map[string]any{"tenant": "n", "key": "wrong"})
	require.Equal(t, false, refused.at("data.last_test_succeeded"))
	w.do("DELETE", fmt.Sprintf("/destinations/%d", refused.id("data.id")), w.key, nil).want(http.StatusOK)
	runOwn(w, source, destination)

	changed := strings.Replace(ownType, "label: Acme CRM", "label: Acme", 1)
	used := w.control("POST", "/connectors", changed).want(http.StatusConflict)
	require.Contains(t, used.at("message"), "used by 1 destinations and 1 sources")
	w.control("DELETE", "/connectors/acme_crm", nil).want(http.StatusConflict)
	listed := w.control("GET", "/connectors", nil).want(http.StatusOK)
	require.EqualValues(t, 1, listed.id("connectors.0.destinations"))

	syncs := w.do("GET", "/syncs", w.key, nil).want(http.StatusOK)
	w.do("DELETE", fmt.Sprintf("/syncs/%d", syncs.id("data.0.id")), w.key, nil).want(http.StatusOK)
	w.do("DELETE", fmt.Sprintf("/sources/%d", source), w.key, nil).want(http.StatusOK)
	w.do("DELETE", fmt.Sprintf("/destinations/%d", destination), w.key, nil).want(http.StatusOK)
	w.control("POST", "/connectors", changed).want(http.StatusCreated)
	w.control("DELETE", "/connectors/acme_crm", nil).want(http.StatusOK)
	w.control("DELETE", "/connectors/acme_crm", nil).want(http.StatusNotFound)
	require.NotContains(t, string(w.do("GET", "/connectors?per_page=100", w.key, nil).want(http.StatusOK).text), "acme_crm")
	w.do("POST", "/sources", w.key, map[string]any{"connection": map[string]any{"name": "Own", "type": "acme_crm", "credentials": map[string]any{}}}).want(http.StatusBadRequest)
}

// Mistakes are named with their places, in YAML and in JSON.
func TestOwnTypeMistakes(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ old, replacement, want string }{
		{"label: Acme CRM", "lable: Acme CRM", "connector:4:3"},
		{"account: {from: tenant", "account: {from: key", "destination.account.from"},
		{"operations: [upsert, update, mirror]", "operations: [upsort]", "destination.objects[0].operations[0]"},
		{"label: Acme CRM", `label: ""`, "destination.label"},
		{"destination:\n  service_name: acme_crm", "destination:\n  service_name: salesforce", "destination.service_name"},
		{"source:\n  service_name: acme_crm", "source:\n  service_name: bigquery", "source.service_name"},
		{"source:\n  service_name: acme_crm", "source:\n  service_name: other", "must be that of the destination"},
		{"engines: [basic", "aliases: [x]\n  engines: [basic", "source.aliases[0]"},
		{"catalog: tenant", "catalog: key", "source.warehouse.catalog"},
		{"values: date", "values: day", "source.warehouse.tables[0].columns[2].values"},
		{"types: {string: words}", "types: {text: words}", "source.warehouse.types.text"},
	} {
		require.Contains(t, ownType, c.old)
		a := w.control("POST", "/connectors", strings.Replace(ownType, c.old, c.replacement, 1)).want(http.StatusBadRequest)
		require.Contains(t, string(a.text), c.want)
	}
	w.control("POST", "/connectors", `{}`).want(http.StatusBadRequest)
	require.Empty(t, w.control("GET", "/connectors", nil).want(http.StatusOK).at("connectors"))
	w.control("POST", "/connectors", `{"destination": {"service_name": "slim", "label": "Slim", "account": {"from": "id", "name": "Slim"}, "refuse": {"credential": "id", "word": "wrong"},
		"credentials": [{"id": "id", "label": "ID", "type": "string", "rules": ["required"], "input_type": "text"}],
		"objects": [{"full_name": "a", "label": "A", "operations": ["insert"], "fields": [{"full_name": "k", "label": "K", "type": "string", "keys": ["insert"]}]}]}}`).want(http.StatusCreated)
}

// Declared types are in snapshots and in a seed; a seed that fails
// leaves none.
func TestOwnTypesElsewhere(t *testing.T) {
	sealed := func(c *Config) { c.MasterKey = make([]byte, masterKeySize) }
	w := newWorld(t, sealed)
	w.control("POST", "/connectors", ownType).want(http.StatusCreated)
	from, to := ownConnections(w)
	snapshot := w.control("GET", "/snapshot", nil).want(http.StatusOK).text

	other := newWorld(t, sealed)
	other.control("POST", "/restore", string(snapshot)).want(http.StatusOK)
	other.key = w.key
	runOwn(other, from, to)
	require.Equal(t, "acme_crm", other.control("GET", "/connectors", nil).want(http.StatusOK).at("connectors.0.service_name"))

	seeded := newWorld(t)
	seed := "connectors:\n  - " + strings.ReplaceAll(strings.TrimSpace(ownType), "\n", "\n    ") + "\n"
	bad := seed + "organizations: [{first: true, workspaces: [{name: First workspace, sources: [{name: S, type: nonsense}]}]}]\n"
	seeded.control("POST", "/seed", bad).want(http.StatusBadRequest)
	require.Empty(t, seeded.control("GET", "/connectors", nil).want(http.StatusOK).at("connectors"))
	seeded.control("POST", "/seed", strings.Replace(seed, "label: Acme CRM", "label: ''", 1)).want(http.StatusBadRequest)
	good := seed + "organizations: [{first: true, workspaces: [{name: First workspace, sources: [{name: S, type: acme_crm, credentials: {tenant: north, key: k}}]}]}]\n"
	require.Equal(t, []any{"acme_crm"}, seeded.control("POST", "/seed", good).want(http.StatusCreated).at("connectors"))
}

// Declared types survive the end of the process, and a stored one reads back as
// it was written.
func TestOwnTypesAfterARestart(t *testing.T) {
	w := newWorld(t, inDir(t))
	w.control("POST", "/connectors", ownType).want(http.StatusCreated)
	from, to := ownConnections(w)
	w.again(nil)
	runOwn(w, from, to)
}

// Every row of the catalogues is a declaration that reads back as it was written.
func TestDeclarationsReadBack(t *testing.T) {
	one := &connectors.Declaration{}
	require.NoError(t, yamldoc.Decode("own", []byte(ownType), one))
	require.Empty(t, one.Check())
	list := []*connectors.Declaration{one}
	for _, e := range catalogue.BuiltIn() {
		list = append(list, &connectors.Declaration{Destination: e})
	}
	for _, e := range source.Emulated() {
		list = append(list, &connectors.Declaration{Source: e})
	}
	require.Len(t, list, 24)
	for _, d := range list {
		text := must(yamldoc.Encode(d))(t)
		again := &connectors.Declaration{}
		require.NoError(t, yamldoc.Decode(d.Name(), text, again), string(text))
		second := must(yamldoc.Encode(again))(t)
		require.Equal(t, string(text), string(second))
	}
}

// exampleOf gives credentials of a type from what a client sees of it: what is
// required, with its placeholder.
func exampleOf(t *testing.T, typ string, fields any) map[string]any {
	more := map[string]map[string]any{ // what only the sets and formats of the catalogue say
		"snowflake":  {"user": "SYNC", "password": "anything"},
		"sftp":       {"private_key": "anything"},
		"salesforce": {"username": "sync@example.com", "jwt_signing_key": "anything", "domain": "login.salesforce.com"},
	}
	made := map[string]any{}
	for _, one := range fields.([]any) {
		f := one.(map[string]any)
		if f["rules"] != "required" {
			continue
		}
		made[f["id"].(string)] = f["placholder"]
		switch {
		case f["type"] == "integer":
			made[f["id"].(string)] = 7
		case f["placholder"] == "":
			made[f["id"].(string)] = "anything"
		}
	}
	for id, value := range more[typ] {
		made[id] = value
	}
	return made
}

// TestEverySourceType: each emulated type can be made with its placeholders, is
// tested, shows its tables, and takes a query.
func TestEverySourceType(t *testing.T) {
	w := newWorld(t)
	types := w.do("GET", "/source_types?order=asc", w.key, nil).want(http.StatusOK).at("data").([]any)
	for _, one := range types {
		shown := one.(map[string]any)
		typ := shown["service_name"].(string)
		if !w.s.sources.Described(typ).Emulated {
			continue
		}
		t.Run(typ, func(t *testing.T) {
			credentials := exampleOf(t, typ, shown["configuration_fields"].(map[string]any)["fields"])
			a := w.sourceOf(typ, credentials)
			require.Equal(t, true, a.at("data.last_test_succeeded"), a.header.Get("Warning"))
			id := a.id("data.id")
			objects := w.do("GET", fmt.Sprintf("/sources/%d/objects?order=asc", id), w.key, nil).want(http.StatusOK)
			require.Len(t, objects.at("data"), 4)
			require.NotEmpty(t, w.do("GET", fmt.Sprintf("/sources/%d/tables/%d", id, objects.id("data.0.id")), w.key, nil).want(http.StatusOK).at("data.columns.0.type"))
			query := fmt.Sprintf("SELECT * FROM %s.%s", objects.at("data.3.table_schema"), objects.at("data.3.table_name"))
			w.do("POST", "/datasets", w.key, map[string]any{"name": typ, "type": "sql", "source_id": id, "query": query}).want(http.StatusCreated)
		})
	}
}

// TestEveryDestinationType: each emulated type can be made with its placeholders,
// lists its objects, and a sync to each object that can be a destination runs end
// to end.
func TestEveryDestinationType(t *testing.T) {
	w := newWorld(t)
	source := w.do("POST", "/sources", w.key, map[string]any{"connection": map[string]any{"name": "Rows", "type": "generator", "credentials": map[string]any{
		"rows": 20, "columns": []any{
			map[string]any{"name": "id", "type": "id"}, map[string]any{"name": "uuid", "type": "uuid"}, map[string]any{"name": "balance", "type": "decimal"},
			map[string]any{"name": "active", "type": "boolean"}, map[string]any{"name": "signed_up_on", "type": "date"}, map[string]any{"name": "updated_at", "type": "date_time"},
		}}}}).want(http.StatusCreated).id("data.id")
	for _, shown := range w.do("GET", "/connectors?order=asc", w.key, nil).want(http.StatusOK).objects("data") {
		typ := shown["service_name"].(string)
		if typ == api.TypeCustomAPI || typ == api.TypeLocalFiles {
			continue
		}
		t.Run(typ, func(t *testing.T) {
			credentials := exampleOf(t, typ, shown["configuration_fields"].(map[string]any)["fields"])
			a := w.destinationOf(typ, credentials)
			require.Equal(t, true, a.at("data.last_test_succeeded"), string(a.text))
			require.NotEmpty(t, a.at("data.connection_details.account_id"))
			w.syncEach(t, source, a.id("data.id"))
		})
	}
}

// syncEach runs a sync to every object of a destination and reads the records
// back.
func (w *world) syncEach(t *testing.T, source, destination int64) {
	objects := w.do("GET", fmt.Sprintf("/destinations/%d/objects", destination), w.key, nil).want(http.StatusOK)
	var list struct{ Data []api.DestinationObject }
	require.NoError(t, json.Unmarshal(objects.text, &list))
	require.NotEmpty(t, list.Data)
	for i := range list.Data {
		o := &list.Data[i]
		if !o.CanBeSyncDestination {
			continue
		}
		body := syncTo(o)
		body["label"] = o.FullName
		body["source_attributes"] = map[string]any{"connection_id": source, "object": map[string]any{
			"type": "table", "table_catalog": "main", "table_schema": "main", "table_name": "generated"}}
		body["destination_attributes"] = map[string]any{"connection_id": destination, "object": o.FullName}
		body["advanced_configuration"] = advancedOf(o)
		id := w.do("POST", "/syncs", w.key, body).want(http.StatusOK).id("data.sync_id")
		ended := w.oneRun(id).ended("completed")
		require.EqualValues(t, 20, ended.id("data.records_updated"), string(ended.text))
		records := w.control("GET", fmt.Sprintf("/destinations/%d/records?object=%s", destination, o.FullName), nil).want(http.StatusOK)
		require.EqualValues(t, 20, records.id("total"), o.FullName)
	}
}

// syncTo maps the key of an object and what it requires, with values of the
// generator of the right type.
func syncTo(o *api.DestinationObject) map[string]any {
	values := map[string]string{"string": "uuid", "integer": "id", "float": "balance", "decimal": "balance", "boolean": "active", "date": "signed_up_on", "date_time": "updated_at"}
	operation := o.SupportedOperations[0]
	mappings := []any{}
	identified := operation == api.OperationAppend
	if identified {
		mappings = append(mappings, column("id", "unique_id", true))
	}
	for _, f := range o.Fields {
		key := !identified && f.Createable && (f.CanBeUpsertKey && operation != api.OperationInsert || f.CanBeInsertKey && operation == api.OperationInsert)
		if !key && !f.RequiredForMapping {
			continue
		}
		identified = identified || key
		mappings = append(mappings, column(values[f.Type], f.FullName, key))
	}
	if !identified { // a column that the sync makes identifies rows without a key
		mappings = append(mappings, column("uuid", "id", true, map[string]any{"generate_field": true}))
	}
	return map[string]any{"operation": operation, "mappings": mappings, "mode": map[string]any{"type": "triggered", "triggers": map[string]any{}}}
}

// advancedOf gives what the advanced configuration of an object requires.
func advancedOf(o *api.DestinationObject) map[string]any {
	given := map[string]any{}
	for _, f := range o.AdvancedConfigurationFields {
		if f.Required != nil && *f.Required && f.Default == nil {
			given[f.Name] = "Everybody"
		}
	}
	return given
}
