package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
)

// lenientWorld is a service that resembles what clients depend on.
func lenientWorld(t *testing.T) *world {
	return newWorld(t, func(c *Config) { c.Dialect = DialectLive })
}

// keyFile is the key of a service account as an object.
func keyFile() map[string]any {
	return map[string]any{"type": "service_account", "project_id": "p", "private_key": "big-secret", "client_email": "reader@example.com"}
}

// The live dialect reads a credential as its field means it; the spec dialect
// keeps to its type.
func TestCredentialsCoerced(t *testing.T) {
	redshift := map[string]any{"hostname": "h.example.com", "port": "5439", "database": "dev", "user": "u", "password": 12345}
	snowflake := map[string]any{
		"account": "xy1", "warehouse": "W", "database": "D", "username": "S", "user": "", "password": "", "role": "",
		"use_keypair": "true", "private_key_pkcs8": "-----BEGIN",
	}
	text := `{"type":"service_account","project_id":"p","private_key":"big-secret","client_email":"reader@example.com"}`
	for _, c := range []struct {
		name, typ   string
		credentials map[string]any
		details     map[string]any
		problem     string // of the spec dialect
	}{
		{"a port as text", "redshift", redshift, map[string]any{"hostname": "h.example.com", "port": json.Number("5439"), "database": "dev", "user": "u"}, "connection.credentials.port"},
		{"a boolean as text, empty texts", "snowflake", snowflake, map[string]any{"account": "xy1", "user": "S", "warehouse": "W", "use_keypair": true}, "connection.credentials.use_keypair"},
		{
			"a key file as text", "big_query", map[string]any{"project_id": "my-project", "location": "", "service_account_key": text},
			map[string]any{"project_id": "my-project", "location": "US", "service_account": "reader@example.com", "location_editable": true}, "connection.credentials.location",
		},
		{"a key file as an object", "big_query", map[string]any{"project_id": "my-project", "service_account_key": keyFile()}, nil, ""},
		{"no key file", "big_query", map[string]any{"project_id": "my-project", "location": "EU"}, map[string]any{
			"project_id": "my-project", "location": "EU", "service_account": "sync@destkit.example", "location_editable": true}, ""},
		{"the older name", "bigquery", map[string]any{"project_id": "my-project"}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := map[string]any{"connection": map[string]any{"name": "S", "type": c.typ, "credentials": c.credentials}}
			a := lenientWorld(t).want201(t, "/sources", body)
			require.Equal(t, true, a.at("data.last_test_succeeded"), a.header.Get("Warning"))
			if c.details != nil {
				require.Equal(t, c.details, a.at("data.connection_details"))
			}
			require.Equal(t, source.BuiltIn().Name(c.typ), a.at("data.type"))
			strict := newWorld(t)
			b := strict.do("POST", "/sources", strict.key, body)
			if c.problem == "" {
				b.want(http.StatusCreated)
			} else if c.problem != "connection.credentials.location" { // "" is no location there
				require.Contains(t, b.want(http.StatusBadRequest).problems(), c.problem)
			}
		})
	}
}

// want201 makes something.
func (w *world) want201(t *testing.T, path string, body any) *answer {
	t.Helper()
	return w.do("POST", path, w.key, body).want(http.StatusCreated)
}

// Unknown credentials of sources are kept out with a warning, as those of
// destinations are, and an update that repeats empty texts changes nothing.
func TestCredentialsOfUpdates(t *testing.T) {
	w := lenientWorld(t)
	a := w.want201(t, "/sources", map[string]any{"connection": map[string]any{"name": "S", "type": "redshift", "credentials": map[string]any{
		"host": "h.example.com", "database": "dev", "username": "u", "password": "p4ss-word", "ssh_tunnel": true}}})
	require.Contains(t, a.header.Get("Warning"), "unknown field connection.credentials.ssh_tunnel was ignored")
	require.Equal(t, map[string]any{"hostname": "h.example.com", "port": json.Number("5439"), "database": "dev", "user": "u"}, a.at("data.connection_details"))
	path := fmt.Sprintf("/sources/%d", a.id("data.id"))
	update := func(credentials map[string]any) *answer {
		return w.do("PATCH", path, w.key, map[string]any{"connection": map[string]any{"type": "redshift", "credentials": credentials}})
	}
	b := update(map[string]any{"port": "5440", "user": "v"}).want(http.StatusOK)
	require.Equal(t, map[string]any{"hostname": "h.example.com", "port": json.Number("5440"), "database": "dev", "user": "v"}, b.at("data.connection_details"))
	require.EqualValues(t, 5440, update(map[string]any{"port": "", "username": ""}).want(http.StatusOK).id("data.connection_details.port"))
	require.Contains(t, update(map[string]any{"user": "a", "username": "b"}).want(http.StatusBadRequest).at("message"), "another spelling of user")
	require.Contains(t, update(map[string]any{"port": "many"}).want(http.StatusBadRequest).at("message"), "port")
}

// The credentials of destinations are read so, too; of the two ways to log in to
// one type either is enough.
func TestCredentialsOfDestinations(t *testing.T) {
	w := lenientWorld(t)
	post := func(typ string, credentials map[string]any) *answer {
		return w.do("POST", "/destinations", w.key, map[string]any{"service_connection": map[string]any{"name": "D", "type": typ, "credentials": credentials}})
	}
	a := post("google_sheets", map[string]any{"spreadsheet_id": 12345678901, "service_account_key": keyFile(), "value_input": ""}).want(http.StatusCreated)
	require.Equal(t, "12345678901", a.at("data.connection_details.spreadsheet_id"))
	require.NotContains(t, string(a.text), "big-secret")
	a = post("custom_api", map[string]any{
		"api_version": "1", "webhook_url": w.destination(), "auth_token": "destination-token",
		"custom_headers": `{"X-Client":{"value":7,"is_secret":"false"},"X-Key":{"value":"header-secret","is_secret":"True"}}`,
	}).want(http.StatusCreated)
	require.Equal(t, map[string]any{
		"X-Client": map[string]any{"value": "7", "is_secret": false}, "X-Key": map[string]any{"value": nil, "is_secret": true},
	}, a.at("data.connection_details.custom_headers"))
	require.Contains(t, post("custom_api", map[string]any{
		"api_version": 1, "webhook_url": w.destination(), "custom_headers": map[string]any{"X-Key": map[string]any{"value": "v", "is_secret": "perhaps"}},
	}).want(http.StatusBadRequest).at("message"), "custom_headers.X-Key.is_secret: must be true or false")
	jwt := map[string]any{"username": "u@example.com", "jwt_signing_key": "-----BEGIN\nk", "domain": "login.salesforce.com", "instance_url": "", "client_id": "", "client_secret": "", "sandbox": "false", "x": 1}
	a = post("salesforce", jwt).want(http.StatusCreated)
	require.Equal(t, true, a.at("data.last_test_succeeded"), string(a.text))
	a.is("data.connection_details.account_id", "login.salesforce.com", "data.connection_details.sandbox", false)
	require.Contains(t, a.header.Get("Warning"), "service_connection.credentials.x")
	delete(jwt, "domain")
	require.Contains(t, post("salesforce", jwt).want(http.StatusBadRequest).at("message"), "domain")
	jwt["domain"], jwt["jwt_signing_key"] = "login.salesforce.com", "wrong"
	require.Equal(t, false, post("salesforce", jwt).want(http.StatusCreated).at("data.last_test_succeeded"))
}

// Logs of syncs are kept in the warehouses that can take them, by the advanced
// engine alone.
func TestRetentionOfWarehouses(t *testing.T) {
	w := lenientWorld(t)
	connections := map[string]map[string]any{
		"snowflake":  {"account": "xy1", "warehouse": "W", "database": "D", "user": "S", "password": "p"},
		"big_query":  {"project_id": "my-project"},
		"redshift":   {"hostname": "h", "database": "d", "user": "u", "password": "p"},
		"databricks": {"hostname": "h", "http_path": "/x", "catalog": "main", "access_token": "t"},
	}
	for typ, credentials := range connections {
		connection := map[string]any{"name": typ, "type": typ, "credentials": credentials, "sync_engine": "advanced", "warehouse_writeback_retention_in_days": 14}
		require.EqualValues(t, 14, w.want201(t, "/sources", map[string]any{"connection": connection}).id("data.warehouse_writeback_retention_in_days"))
		connection["sync_engine"] = "basic"
		a := w.do("POST", "/sources", w.key, map[string]any{"connection": connection}).want(http.StatusBadRequest)
		require.Contains(t, a.at("message"), "needs the sync_engine advanced")
	}
	mysql := map[string]any{"name": "M", "type": "mysql", "credentials": map[string]any{"hostname": "h", "database": "d", "user": "u", "password": "p"}, "warehouse_writeback_retention_in_days": 14}
	w.do("POST", "/sources", w.key, map[string]any{"connection": mysql}).want(http.StatusBadRequest)
}

// A refresh of columns sees changes, and a failed one reports the reason.
func TestRefreshedColumns(t *testing.T) {
	for _, dialect := range []Dialect{DialectSpec, DialectLive} {
		w := newWorld(t, func(c *Config) { c.Dialect = dialect })
		id := w.newEmulated("s3cret").id("data.id")
		w.executes(id, "CREATE TABLE THINGS (A INTEGER)")
		w.refreshTables(id)
		dataset := fmt.Sprintf("/datasets/%d", w.want201(t, "/datasets", map[string]any{"name": "Things", "type": "sql", "source_id": id, "query": "SELECT * FROM THINGS"}).id("data.id"))
		model := fmt.Sprintf("/sources/%d/models/%d", id, w.want201(t, fmt.Sprintf("/sources/%d/models", id), map[string]any{"name": "M", "query": "SELECT * FROM THINGS"}).id("data.id"))
		tables := fmt.Sprintf("/sources/%d/tables", id)
		named := "?table_catalog=SHOP&table_schema=PUBLIC&table_name=THINGS"
		columns := func() *answer { return w.do("GET", tables+"/columns"+named, w.key, nil).want(http.StatusOK) }
		before := columns()
		require.Len(t, before.at("data"), 1)
		w.control("POST", "/clock", map[string]any{"advance": "1h"}).want(http.StatusOK)
		w.executes(id, "ALTER TABLE THINGS ADD COLUMN B TEXT")
		for _, path := range []string{dataset, model, tables} {
			query := ""
			if path == tables {
				query = named
			}
			w.refresh(path+"/refresh_columns"+query, path+"/refresh_columns_status"+query)
		}
		require.Len(t, w.do("GET", dataset, w.key, nil).want(http.StatusOK).at("data.columns"), 2)
		require.Len(t, w.do("GET", model, w.key, nil).want(http.StatusOK).at("data.columns"), 2)
		after := columns()
		require.Equal(t, map[string]any{"name": "B", "data_type": "VARCHAR(16777216)"}, after.at("data.1"))
		require.Greater(t, after.at("last_refreshed_at"), before.at("last_refreshed_at"))
		require.Equal(t, dialect == DialectLive, after.has("next"))
		if dialect == DialectLive {
			next := w.do("GET", tables+"/columns"+named+"&per_page=1", w.key, nil).want(http.StatusOK).at("next").(string)
			path := strings.TrimPrefix(next, "http://example.com"+api.BasePath)
			require.Equal(t, "B", w.do("GET", path, w.key, nil).want(http.StatusOK).at("data.0.name"), "the next page is that of the same table")
		}
		require.Len(t, w.do("GET", tables+"/columns"+named+"&per_page=1&page=2", w.key, nil).want(http.StatusOK).at("data"), 1)

		key := w.do("POST", tables+"/refresh_columns"+named, w.key, nil).want(http.StatusOK).id("refresh_key")
		w.control("POST", "/settle", nil).want(http.StatusOK)
		w.do("GET", fmt.Sprintf("%s/refresh_columns_status?refresh_key=%d", dataset, key+100), w.key, nil).want(http.StatusNotFound)
		w.executes(id, "DROP TABLE THINGS")
		for _, path := range []string{dataset, model} {
			key := w.do("POST", path+"/refresh_columns", w.key, nil).want(http.StatusOK).id("refresh_key")
			w.control("POST", "/settle", nil).want(http.StatusOK)
			failed := w.do("GET", fmt.Sprintf("%s/refresh_columns_status?refresh_key=%d", path, key), w.key, nil).want(http.StatusBadRequest)
			require.Contains(t, failed.at("message"), "no such table: THINGS")
		}
		w.refreshTables(id)
		w.do("GET", tables+"/columns"+named, w.key, nil).want(http.StatusNotFound)
		w.do("GET", tables+"/columns?table_name=THINGS", w.key, nil).want(http.StatusBadRequest)
	}
}
