package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// infrastructureClient sends requests in the shapes of clients that keep a
// configuration and make the service look like it. It knows a
// thing by its id alone, kept as a text.
type infrastructureClient struct {
	*world
	sign func(*http.Request) // the way to send the workspace's key
}

// call sends one request as this client does.
func (c *infrastructureClient) call(method, path string, body any) *answer {
	c.t.Helper()
	r := request(method, api.BasePath+path, "", bodyOf(c.t, body))
	c.sign(r)
	return c.send(r)
}

// managed is one thing of a configuration.
type managed struct {
	name       string
	collection string
	wrapper    string         // the key of the body that holds the settings; "" for the body itself
	beside     map[string]any // keys next to the wrapper
	settings   map[string]any // from the configuration
	change     map[string]any // what an update sends
	whole      bool           // the update sends all settings again, but for withheld
	withheld   []string       // settings that an update never sends
	code       int            // of the creation
	details    map[string]any // connection_details that a read must show
}

// body wraps settings for the wire.
func (m *managed) body(settings map[string]any) map[string]any {
	if m.wrapper == "" {
		return settings
	}
	body := map[string]any{m.wrapper: settings}
	maps.Copy(body, m.beside)
	return body
}

// create makes the thing and gives its id; a sync is answered with sync_id.
func (c *infrastructureClient) create(m *managed) string {
	c.t.Helper()
	a := c.call("POST", m.collection, m.body(m.settings)).want(m.code)
	require.Equal(c.t, "created", a.at("status"))
	if strings.HasPrefix(m.collection, "/syncs") {
		return fmt.Sprint(a.id("data.sync_id"))
	}
	return fmt.Sprint(a.id("data.id"))
}

// planned reads the thing by its id and demands that nothing is to be changed.
func (c *infrastructureClient) planned(m *managed, id string) *answer {
	c.t.Helper()
	a := c.call("GET", m.collection+"/"+id, nil).want(200)
	require.Empty(c.t, drift("", m.settings, a.at("data")), "%s: a plan would change what nobody has changed\n%s", m.name, a.text)
	require.Equal(c.t, id, fmt.Sprint(a.id("data.id")))
	for key, want := range m.details {
		require.Equal(c.t, want, a.at("data.connection_details."+key), m.name)
	}
	return a
}

// update changes the thing in part, and sees that the rest stays.
func (c *infrastructureClient) update(m *managed, id string) {
	c.t.Helper()
	sent := map[string]any{}
	if m.whole {
		for key, value := range m.settings {
			if !slices.Contains(m.withheld, key) {
				sent[key] = value
			}
		}
	}
	for key, value := range m.change {
		sent[key], m.settings[key] = value, value
	}
	a := c.call("PATCH", m.collection+"/"+id, m.body(sent)).want(200)
	require.Equal(c.t, "updated", a.at("status"))
	require.Empty(c.t, drift("", m.settings, a.at("data")), "%s: the reply to an update is what a read shows\n%s", m.name, a.text)
	c.planned(m, id)
}

// lives walks a thing through its life up to its deletion.
func (c *infrastructureClient) lives(m *managed) (id string) {
	c.t.Helper()
	id = c.create(m)
	first := c.planned(m, id)
	imported := (&infrastructureClient{c.world, c.sign}).call("GET", m.collection+"/"+id, nil).want(200)
	require.Equal(c.t, first.at("data"), imported.at("data"), "who imports by id reads what its maker reads")
	c.update(m, id)
	return id
}

// gone deletes a thing; a second deletion finds nothing.
func (c *infrastructureClient) gone(m *managed, id string) {
	c.t.Helper()
	require.Equal(c.t, "deleted", c.call("DELETE", m.collection+"/"+id, nil).want(200).at("status"))
	for _, method := range []string{"GET", "DELETE"} {
		a := c.call(method, m.collection+"/"+id, nil).want(404)
		require.JSONEq(c.t, `{"status":404}`, string(a.text))
	}
}

// drift lists where a read differs from the sent body, as such clients compare
// it: keys that were not sent are computed, ids compare as texts, unset is null,
// empty or absent, and a template is read as an object.
func drift(at string, sent, read any) (places []string) {
	switch s := sent.(type) {
	case map[string]any:
		if len(s) == 0 && read == nil {
			return nil
		}
		object, ok := read.(map[string]any)
		if !ok {
			return []string{at}
		}
		for key, value := range s {
			if key == "credentials" { // never returned
				continue
			}
			places = append(places, drift(at+"."+key, value, object[key])...)
		}
	case []any:
		list, ok := read.([]any)
		if !ok || len(list) != len(s) {
			return []string{fmt.Sprintf("%s (%d entries)", at, len(s))}
		}
		for i, value := range s {
			places = append(places, drift(fmt.Sprintf("%s[%d]", at, i), value, list[i])...)
		}
	case nil:
		if read != nil {
			return []string{at}
		}
	case string:
		if template, ok := read.(map[string]any); ok {
			read = template["liquid_template"]
		}
		if number, ok := read.(json.Number); ok && (strings.HasSuffix(at, ".id") || strings.HasSuffix(at, "_id")) {
			read = number.String()
		}
		if read != s && (s != "" || read != nil) {
			return []string{fmt.Sprintf("%s: sent %q, read %v", at, s, read)}
		}
	default:
		if fmt.Sprint(s) != fmt.Sprint(read) {
			return []string{fmt.Sprintf("%s: sent %v, read %v", at, s, read)}
		}
	}
	return places
}

// TestDrift: the comparison finds each kind of difference.
func TestDrift(t *testing.T) {
	read := map[string]any{
		"id": json.Number("7"), "name": "A", "data": map[string]any{"liquid_template": "{{ x }}"}, "hour": json.Number("6"),
		"list": []any{map[string]any{"a": true}}, "none": nil,
	}
	for _, same := range []map[string]any{
		{}, {"id": "7"}, {"id": 7}, {"name": "A", "data": "{{ x }}"}, {"data": map[string]any{"liquid_template": "{{ x }}"}},
		{"none": ""}, {"absent": ""}, {"none": nil}, {"none": map[string]any{}}, {"list": []any{map[string]any{"a": true}}}, {"hour": 6},
	} {
		require.Empty(t, drift("", same, read), "%v", same)
	}
	for _, other := range []map[string]any{
		{"id": "8"}, {"id": 8}, {"name": ""}, {"name": nil}, {"absent": "x"}, {"data": "{{ y }}"}, {"hour": "6"}, {"hour": nil},
		{"list": []any{}}, {"list": []any{map[string]any{"a": false}}}, {"none": map[string]any{"a": 1}}, {"name": map[string]any{"a": 1}},
	} {
		require.NotEmpty(t, drift("", other, read), "%v", other)
	}
}

// connectionShapes are the connections that clients make, as they write them.
// %PATH% is a database that is there.
var connectionShapes = []struct {
	typ          string
	credentials  map[string]any
	details      map[string]any // their form in a read
	fails        bool           // nothing listens there: made all the same (spec 3)
	changed, now string         // a credential of an update, and its new value
}{
	{typ: "sqlite", credentials: map[string]any{"path": "%PATH%"}, details: map[string]any{"path": "%PATH%"}, changed: "path", now: "%PATH%"},
	{
		typ: "postgres", credentials: map[string]any{"host": "127.0.0.1", "port": 1, "database": "d", "username": "u", "password": "p", "sslmode": "disable"},
		details: map[string]any{"host": "127.0.0.1", "port": json.Number("1"), "database": "d"}, fails: true, changed: "database", now: "e",
	},
	{
		typ:         "snowflake",
		credentials: map[string]any{"account": "xy12345", "warehouse": "LOADING", "database": "SHOP", "user": "reader", "password": "p"},
		details:     map[string]any{"account": "xy12345", "warehouse": "LOADING", "user": "reader"}, changed: "warehouse", now: "OTHER",
	},
	{ // ports as texts, and optional fields as an empty text
		typ:         "redshift",
		credentials: map[string]any{"hostname": "shop.abc123.eu-west-1.redshift.amazonaws.com", "port": "5440", "database": "dev", "user": "sync", "password": "p"},
		details:     map[string]any{"hostname": "shop.abc123.eu-west-1.redshift.amazonaws.com", "port": json.Number("5440"), "database": "dev", "user": "sync"},
		changed:     "database", now: "prod",
	},
	{
		typ: "big_query",
		credentials: map[string]any{"project_id": "my-project-123", "location": "",
			"service_account_key": `{"type":"service_account","project_id":"my-project-123","client_email":"reader@my-project-123.iam.gserviceaccount.com","private_key":"k"}`},
		details: map[string]any{"project_id": "my-project-123", "service_account": "reader@my-project-123.iam.gserviceaccount.com", "location_editable": true},
		changed: "location", now: "EU",
	},
	{
		typ: "databricks",
		credentials: map[string]any{"hostname": "dbc-a1b2c3d4-e5f6.cloud.databricks.com", "port": 443, "http_path": "/sql/1.0/warehouses/abc123",
			"catalog": "main", "access_token": "t"},
		details: map[string]any{"hostname": "dbc-a1b2c3d4-e5f6.cloud.databricks.com", "catalog": "main"}, changed: "catalog", now: "sales",
	},
	{
		typ:         "mysql",
		credentials: map[string]any{"hostname": "db.example.com", "port": "3306", "database": "shop", "user": "sync", "password": "p"},
		details:     map[string]any{"hostname": "db.example.com", "database": "shop"}, changed: "database", now: "crm",
	},
	{
		typ:         "sql_server",
		credentials: map[string]any{"hostname": "db.example.com", "port": 1433, "database": "shop", "user": "sync", "password": "p"},
		details:     map[string]any{"hostname": "db.example.com", "port": json.Number("1433"), "database": "shop"}, changed: "database", now: "crm",
	},
	{
		typ:         "azure_synapse",
		credentials: map[string]any{"hostname": "shop.sql.azuresynapse.net", "port": 1433, "database": "shop", "user": "sync", "password": "p"},
		details:     map[string]any{"hostname": "shop.sql.azuresynapse.net", "database": "shop"}, changed: "database", now: "crm",
	},
}
