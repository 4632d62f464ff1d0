package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

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
