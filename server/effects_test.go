package server

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
)

// served is a simulator behind a server.
func served(t *testing.T, config destsim.Config) (*destsim.Sim, *httptest.Server) {
	sim := must(destsim.New(config))(t)
	server := httptest.NewServer(sim)
	t.Cleanup(func() { server.Close(); sim.Close() })
	return sim, server
}

// TestObjectsOfAnyName: an object is fetched by its path and synced whatever it is
// called, and its name leads nowhere in the file system (spec 2.3).
func TestObjectsOfAnyName(t *testing.T) {
	names := []string{"..", ".", "a/b", "../../etc/passwd", "with space", "%2F", "100% sure?", "ünïcode ☃", "#", "a+b", "..%2f.."}
	config := destsim.Config{Token: "destination-token"}
	for _, name := range names {
		config.Objects = append(config.Objects, destsim.ObjectConfig{Name: name, Label: "Label of " + name, Operations: []string{"upsert"}, Fields: []destsim.FieldConfig{
			{Name: "email", Type: rpc.TypeString, Identifier: true, Required: true, Unique: true}, {Name: "last_name", Type: rpc.TypeString},
		}})
	}
	w := newWorld(t, inDir(t))
	w.sim, w.dest = served(t, config)
	y := &syncWorld{w, w.newSource(), w.newDestination()}
	for _, name := range names {
		escaped := ""
		for _, b := range []byte(name) {
			escaped += fmt.Sprintf("%%%02X", b)
		}
		one := w.do("GET", fmt.Sprintf("/destinations/%d/objects/%s", y.dest, escaped), w.key, nil).want(200)
		require.Equal(t, name, one.at("data.full_name"))
		id := y.kept(map[string]any{"destination_attributes": map[string]any{"connection_id": y.dest, "object": name}}).id("data.id")
		y.runs(id).ended("completed")
		_, total := w.records(name)
		require.Equal(t, 1, total, name)
		require.Empty(t, said(y.audits(id, nil)))
	}
	// Without the escapes the path would mean nothing, or another object.
	w.do("GET", fmt.Sprintf("/destinations/%d/objects/no%%2Fsuch", y.dest), w.key, nil).want(404)
}

// TestWhyAnObjectIsNoDestination is said with the object and in the refusal of a sync
// (spec 2.3).
func TestWhyAnObjectIsNoDestination(t *testing.T) {
	proves(t, "F-2.3-10")
	for _, dialect := range []Dialect{DialectSpec, DialectLive} {
		w := newWorld(t, func(c *Config) { c.Dialect = dialect })
		w.sim, w.dest = served(t, destsim.Config{Token: "destination-token", Objects: []destsim.ObjectConfig{
			{Name: "loose", Label: "Loose", Operations: []string{"upsert"}, Fields: []destsim.FieldConfig{{Name: "email", Type: rpc.TypeString, Identifier: true, Required: true, Unique: true}, {Name: "last_name", Type: rpc.TypeString}}},
		}})
		list := rewriting(t, w, `"identifier":true`, `"identifier":false`)
		w.dest = list
		y := &syncWorld{w, w.newSource(), w.newDestination()}
		one := w.do("GET", fmt.Sprintf("/destinations/%d/objects/loose", y.dest), w.key, nil).want(200)
		require.Equal(t, false, one.at("data.can_be_sync_destination"))
		why := "list_fields names no identifier of type string or integer"
		require.Contains(t, one.at("data.primary_identifier_mapping_attributes.upsert.notes"), why)
		refused := func(destination int64, object, operation string) any {
			return w.do("POST", "/syncs", w.key, y.body(map[string]any{
				"operation": operation, "destination_attributes": map[string]any{"connection_id": destination, "object": object},
			})).want(400).at("message")
		}
		require.Contains(t, refused(y.dest, "loose", "upsert"), "cannot be the destination of a sync: "+why)

		salesforce := w.emulated("salesforce").id("data.id")
		one = w.do("GET", fmt.Sprintf("/destinations/%d/objects/Organization", salesforce), w.key, nil).want(200)
		require.Contains(t, one.at("data.primary_identifier_mapping_attributes.upsert.notes"), "syncs can only read it")
		require.Contains(t, refused(salesforce, "Organization", "update"), "syncs can only read it")
	}
}

// rewriting changes what the destination of a world answers.
func rewriting(t *testing.T, w *world, before, after string) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = rw.Write(bytes.ReplaceAll(serve(w.sim, r).Body.Bytes(), []byte(before), []byte(after)))
	}))
	t.Cleanup(server.Close)
	return server
}

// TestTheOnlyOwnerStays: no invitation takes the last owner of a workspace away.
func TestTheOnlyOwnerStays(t *testing.T) {
	w := newWorld(t)
	id := w.do("GET", "/workspaces", w.pat, nil).want(200).id("data.0.id")
	users := fmt.Sprintf("/workspaces/%d/users", id)
	first := w.do("GET", users, w.pat, nil).want(200)
	owner := first.at("data.0.email").(string)
	require.Equal(t, "owner", first.at("data.0.role"))
	invitations := fmt.Sprintf("/workspaces/%d/invitations", id)
	refused := w.do("POST", invitations, w.pat, map[string]any{"emails": []string{owner}, "role": "viewer"}).want(409)
	require.Contains(t, refused.at("message"), "is the only owner")
	w.do("POST", "/invitations", w.pat, map[string]any{
		"email": owner, "role": "member", "workspaces": []any{map[string]any{"id": id, "role": "editor"}},
	}).want(409)
	require.Equal(t, "owner", w.do("GET", users, w.pat, nil).want(200).at("data.0.role"))
	require.Empty(t, w.do("GET", invitations, w.pat, nil).want(200).at("data"), "nothing of a refused call stays")
	w.do("POST", invitations, w.pat, map[string]any{"emails": []string{owner}, "role": "owner"}).want(200)
	// With another owner the first one may go.
	other := w.do("POST", invitations, w.pat, map[string]any{"emails": []string{"second@example.com"}, "role": "owner"}).want(200).id("data.id")
	w.control("POST", fmt.Sprintf("/workspace_invitations/%d/claim", other), map[string]any{}).want(200)
	w.do("POST", invitations, w.pat, map[string]any{"emails": []string{owner}, "role": "viewer"}).want(200)
	require.Equal(t, "viewer", w.do("GET", users+"?order=asc", w.pat, nil).want(200).at("data.0.role"))
}

// TestNewSecretOfAURL: another query or an unguessable segment leads to the same
// destination, and another path or host to a new one (spec 5.2.3, 7.2.5).
func TestNewSecretOfAURL(t *testing.T) {
	w := newSyncWorld(t)
	path := fmt.Sprintf("/destinations/%d", w.dest)
	base := w.destination()[:strings.Index(w.destination(), "/hook")]
	moves := func(url string) {
		w.do("PATCH", path, w.key, map[string]any{"service_connection": map[string]any{"credentials": map[string]any{"webhook_url": url}}}).want(200)
	}
	moves(base + "/hook/1f0e2d3c4b5a69788796a5b4c3d2e1f0?api_key=first")
	id := w.kept(nil).id("data.id")
	full := func() bool { return w.runs(id).at("data.full_sync").(bool) }
	require.False(t, full())
	moves(base + "/hook/1f0e2d3c4b5a69788796a5b4c3d2e1f0?api_key=second&extra")
	require.False(t, full(), "another key")
	moves(base + "/hook/00112233445566778899aabbccddeeff")
	require.False(t, full(), "another segment that nobody would guess")
	moves(base + "/orders/00112233445566778899aabbccddeeff")
	require.True(t, full(), "another path")
	moves(strings.Replace(base, "127.0.0.1", "localhost", 1) + "/orders")
	require.True(t, full(), "another host")
	require.False(t, full())
}

// TestLiveOnAStreamingDatabase: a live sync of a streaming database sends new rows,
// with event-based activation and without (spec 2.6).
func TestLiveOnAStreamingDatabase(t *testing.T) {
	for _, family := range []any{nil, "activateEvents"} {
		w := newSyncWorld(t)
		w.control("POST", "/clock", `{"freeze":true}`).want(200)
		database := w.sourceOf("materialize", map[string]any{"host": "db.example.com", "port": 6875, "database": "materialize", "user": "reader", "password": "p"}).id("data.id")
		w.executes(database, `CREATE TABLE clicks (email TEXT PRIMARY KEY, name TEXT); INSERT INTO clicks VALUES ('a@example.com', 'A')`)
		clicks := w.do("POST", "/datasets", w.key, dataset(database, "Clicks", "SELECT email, name FROM clicks")).want(201).id("data.id")
		body := map[string]any{
			"source_attributes": map[string]any{"connection_id": database, "object": map[string]any{"type": "dataset", "id": clicks}},
			"mode":              map[string]any{"type": "live"},
		}
		if family != nil {
			body["sync_behavior_family"] = family
		}
		id := w.kept(body).id("data.id")
		runs := func() *answer { return w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", id), w.key, nil).want(200) }
		stored := func() (total int) { _, total = w.records("person"); return total }
		w.control("POST", "/clock", `{"advance":"1m"}`).want(200)
		require.Equal(t, "completed", runs().at("data.0.status"), string(runs().text))
		require.Equal(t, 1, stored())
		w.executes(database, `INSERT INTO clicks VALUES ('b@example.com', 'B')`)
		w.control("POST", "/clock", `{"advance":"1m"}`).want(200)
		require.Equal(t, 2, stored())
		require.EqualValues(t, 1, runs().id("data.0.records_updated"), "what had come before is not sent again")
	}
}

// TestHandledMappings: the destination applies the options of a mapping as well as its
// value. A lookup writes the id of the record that a value names, a list grows, an
// existing value stays, and a field is created with the given type (spec 2.7).
func TestHandledMappings(t *testing.T) {
	w := newSyncWorld(t)
	crm := w.emulated("salesforce").id("data.id")
	query := `SELECT id, email, name, json_array(name) AS names FROM customers`
	people := w.do("POST", "/datasets", w.key, dataset(w.source, "People", query)).want(201).id("data.id")
	sync := func(object string, mappings ...any) int64 {
		return w.kept(map[string]any{
			"source_attributes":      map[string]any{"connection_id": w.source, "object": map[string]any{"type": "dataset", "id": people}},
			"destination_attributes": map[string]any{"connection_id": crm, "object": object}, "mappings": mappings,
		}).id("data.id")
	}
	accounts := sync("Account", column("name", "External_ID__c", true), column("name", "Name", false))
	contacts := sync("Contact", column("email", "Email", true), column("name", "LastName", false),
		column("name", "account", false, map[string]any{"lookup_object": "Account", "lookup_field": "External_ID__c"}),
		column("name", "FirstName", false, map[string]any{"preserve_values": true}),
		column("names", "Interests__c", false, map[string]any{"operation": "merge"}),
		column("id", "Shoe_Size__c", false, map[string]any{"generate_field": true, "field_type": "string"}),
	)
	contact := func() map[string]any {
		t.Helper()
		run := w.runs(contacts).ended("completed")
		require.EqualValues(t, 1, run.id("data.records_updated"), string(run.text))
		return w.keptRecords(crm, "Contact")[0]
	}
	w.runs(accounts)
	found := contact()
	require.Equal(t, []any{"Ada", "Ada", []any{"Ada"}, "1"}, []any{found["LastName"], found["FirstName"], found["Interests__c"], found["Shoe_Size__c"]})
	require.Equal(t, "1", found["account"], "the id of the first account, and not its name")

	w.changeSource(`UPDATE customers SET name = 'Grace'`)
	w.runs(accounts)
	found = contact()
	require.Equal(t, []any{"Grace", "Ada", []any{"Ada", "Grace"}}, []any{found["LastName"], found["FirstName"], found["Interests__c"]})
	require.Regexp(t, `^\d+$`, found["account"])
	require.NotEqual(t, "1", found["account"], "the account with the new name")

	w.changeSource(`UPDATE customers SET name = 'Nobody'`)
	run := w.runsThrough(contacts)
	require.EqualValues(t, 1, run.id("data.records_failed"), string(run.text))
	records := w.do("GET", fmt.Sprintf("/sync_runs/%d/records", run.id("data.id")), w.key, nil).want(200)
	require.Contains(t, string(records.text), `no record of \"Account\" has this External_ID__c`)
}

// TestIgnoredKeys: a value that a client sends back as shown, or repeats next to
// its place, changes nothing.
func TestIgnoredKeys(t *testing.T) {
	w := newSyncWorld(t)
	body := customDestination(w.destination())
	body["type"] = "salesforce"
	require.Equal(t, "custom_api", w.do("POST", "/destinations", w.key, body).want(201).at("data.type"))

	people := w.do("POST", "/datasets", w.key, dataset(w.source, "People", "SELECT email, name FROM customers")).want(201).id("data.id")
	id := w.kept(map[string]any{"source_attributes": map[string]any{"connection_id": w.source, "object": map[string]any{
		"type": "dataset", "id": people, "name": "Others", "query": "SELECT 1", "dataset_id": 99,
		"created_at": "2020-01-01T00:00:00Z", "updated_at": "2020-01-01T00:00:00Z",
	}}}).id("data.id")
	object := "data.source_attributes.object."
	shown := w.do("GET", fmt.Sprintf("/syncs/%d", id), w.key, nil).want(200)
	shown.is(object+"name", "People", object+"query", "SELECT email, name FROM customers")
	require.NotContains(t, fmt.Sprint(shown.at(object+"created_at"), shown.at(object+"updated_at")), "2020")
	require.EqualValues(t, 1, w.runs(id).id("data.records_updated"))

	models := fmt.Sprintf("/sources/%d/models", w.source)
	model := w.do("POST", models, w.key, map[string]any{"name": "M", "query": "SELECT email FROM customers"}).want(201)
	changed := w.do("PATCH", fmt.Sprintf("%s/%d", models, model.id("data.id")), w.key, map[string]any{"dataset_id=": 99}).want(200)
	require.Equal(t, model.id("data.dataset_id"), changed.id("data.dataset_id="))
}
