package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
)

// emulated makes a destination of an emulated type.
func (w *world) emulated(typ string) *answer {
	w.t.Helper()
	credentials := map[string]map[string]any{
		"salesforce":    {"instance_url": "https://acme.my.salesforce.com", "client_id": "id", "client_secret": "salesforce-secret"},
		"google_sheets": {"spreadsheet_id": "1AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcdefg", "service_account_key": `{"type":"service_account"}`},
		"google_ads":    {"customer_id": "123-456-7890", "developer_token": "ads-secret"},
	}
	a := w.do("POST", "/destinations", w.key, map[string]any{"service_connection": map[string]any{
		"name": "Emulated " + typ, "type": typ, "credentials": credentials[typ],
	}}).want(201)
	require.Equal(w.t, true, a.at("data.last_test_succeeded"), string(a.text))
	return a
}

// TestUpdateOnlyProperties: properties that the specification has in the reply of an update are
// shown there only, and everywhere in the live dialect (spec 2.2, 2.3).
func TestUpdateOnlyProperties(t *testing.T) {
	inBothDialects(t, func(t *testing.T, live bool, change func(*Config)) {
		w := newWorld(t, change)
		a := w.emulated("google_ads")
		path := fmt.Sprintf("/destinations/%d", a.id("data.id"))
		updated := w.do("PATCH", path, w.key, map[string]any{"service_connection": map[string]any{"name": "Ads"}}).want(200)
		for shown, wanted := range map[*answer]bool{a: live, w.do("GET", path, w.key, nil).want(200): live, updated: true} {
			require.Equal(t, wanted, shown.has("data.is_file_system_destination"))
			for _, property := range []string{"primary_identifier_mapping_attributes", "supported_custom_field_types", "is_audience_destination"} {
				require.Equal(t, wanted, shown.has("data.objects.0."+property), property)
			}
		}
	})
}

// TestPlanningGoesThroughTheCache: objects come from real calls, are kept, and
// are fetched again when they are old or a client wants it (spec 4.2).
func TestPlanningGoesThroughTheCache(t *testing.T) {
	proves(t, "F-4.2-01", "F-4.2-04")
	w := newWorld(t)
	id := w.newDestination()
	path := fmt.Sprintf("/destinations/%d", id)
	calls := func() (methods []string) {
		for _, call := range w.control("GET", "/journal/calls?limit=1000", nil).want(200).at("entries").([]any) {
			methods = append(methods, call.(map[string]any)["method"].(string))
		}
		return methods
	}
	require.ElementsMatch(t, []string{
		"test_connection", "list_objects", "list_fields", "list_fields", "list_fields",
		"supported_operations", "supported_operations", "supported_operations",
	}, calls())
	for object, operations := range map[string][]any{"deal": {"upsert", "update"}, "person": {"upsert", "insert", "update", "mirror"}} {
		require.Equal(t, operations, w.do("GET", path+"/objects/"+object, w.key, nil).want(200).at("data.supported_operations"))
	}
	require.Len(t, calls(), 8, "answered from the cache")
	w.refresh(path+"/refresh_objects", path+"/refresh_objects_status")
	require.Len(t, calls(), 15, "a refresh asks again")
	w.control("POST", "/clock", map[string]any{"advance": "16m"}).want(200)
	w.do("GET", path+"/objects", w.key, nil).want(200)
	require.Len(t, calls(), 22, "old objects are asked for again")
	w.dest.Close()
	w.control("POST", "/clock", map[string]any{"advance": "16m"}).want(200)
	require.NotEmpty(t, w.do("GET", path+"/objects", w.key, nil).want(200).at("data"), "old ones are better than none")
}

// TestCredentialsOfACustomDestination: a custom header comes with every call, and stays
// where an update leaves its value out; there is one version of the protocol (spec 5.2, 9).
func TestCredentialsOfACustomDestination(t *testing.T) {
	proves(t, "F-4-27", "F-4-28", "F-9-05", "F-9-07")
	w := newWorld(t)
	var got []string
	sim := must(destsim.New(destsim.Config{Preset: "crm", Token: "destination-token"}))(t)
	defer sim.Close()
	endpoint := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		got = append(got, r.Header.Get("Authorization")+" "+r.Header.Get("X-Client"))
		w.mu.Unlock()
		rw.Header().Set("Set-Cookie", "session=1; Path=/") // never sent back
		sim.ServeHTTP(rw, r)
	}))
	defer endpoint.Close()
	id := w.do("POST", "/destinations", w.key, customDestination(endpoint.URL)).want(201).id("data.id")
	patch := func(credentials map[string]any) *answer {
		return w.do("PATCH", fmt.Sprintf("/destinations/%d", id), w.key, map[string]any{"service_connection": map[string]any{"credentials": credentials}})
	}
	patch(map[string]any{"custom_headers": map[string]any{"X-Client": map[string]any{"value": nil, "is_secret": true}}}).want(200)
	require.Equal(t, slices.Repeat([]string{"Bearer destination-token header-secret"}, 16), got)
	for _, version := range []any{2, 0, "1"} {
		require.Contains(t, patch(map[string]any{"api_version": version}).want(400).problems(), "service_connection.credentials.api_version")
	}
	require.Len(t, got, 16, "nothing was called")
}

// TestEveryDestinationHasAnAccount: account_id and account_name are texts for each
// type (spec 2.2).
func TestEveryDestinationHasAnAccount(t *testing.T) {
	proves(t, "F-2.2-07")
	w := newWorld(t, inDir(t))
	url := w.destination()
	host := strings.SplitN(strings.TrimPrefix(url, "http://"), "/", 2)[0]
	for a, want := range map[*answer][2]string{
		w.destinationOf("local_files", map[string]any{"path": "out"}):          {"out", "Local files out"},
		w.do("POST", "/destinations", w.key, customDestination(url)).want(201): {host, "Custom API " + host},
		w.emulated("google_ads"): {"123-456-7890", "Google Ads 123-456-7890"},
		w.emulated("salesforce"): {"acme.my.salesforce.com", "Salesforce acme.my.salesforce.com"},
	} {
		require.Equal(t, want, [2]string{a.at("data.connection_details.account_id").(string), a.at("data.connection_details.account_name").(string)})
	}
}

// TestDestinationsAreMadeAndChanged: each answers its status, and the time of the test
// that it has caused (spec 2.2, 4).
func TestDestinationsAreMadeAndChanged(t *testing.T) {
	proves(t, "F-2.2-06", "F-4-06", "F-4-08")
	w := newWorld(t)
	w.control("POST", "/clock", map[string]any{"freeze": true}).want(200)
	body := customDestination(w.destination())
	made := w.do("POST", "/destinations", w.key, body).want(201)
	w.control("POST", "/clock", map[string]any{"advance": "90m"}).want(200)
	changed := w.do("PATCH", fmt.Sprintf("/destinations/%d", made.id("data.id")), w.key, body).want(200)
	require.Equal(t, []any{"created", "updated"}, []any{made.at("status"), changed.at("status")})
	first := must(time.Parse(time.RFC3339, made.at("data.last_tested_at").(string)))(t)
	second := must(time.Parse(time.RFC3339, changed.at("data.last_tested_at").(string)))(t)
	require.Equal(t, 90*time.Minute, second.Sub(first))
}

// TestErrorsOfADestinationAreShown with their code and message (spec 7.2).
func TestErrorsOfADestinationAreShown(t *testing.T) {
	proves(t, "F-7.2-02")
	w := newWorld(t)
	endpoint := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var call struct{ ID string }
		_ = json.NewDecoder(r.Body).Decode(&call)
		_, _ = fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%q,"error":{"code":-32017,"message":"the database is down"}}`, call.ID)
	}))
	defer endpoint.Close()
	a := w.do("POST", "/destinations", w.key, customDestination(endpoint.URL)).want(201)
	steps := a.at("data.last_test_results.steps").([]any)
	failed := steps[len(steps)-1].(map[string]any)
	require.Equal(t, []any{"test_connection", "failed"}, []any{failed["step"], failed["status"]})
	message := failed["error"].(map[string]any)["message"]
	holds(t, message, "-32017", "the database is down")
}

// TestFieldsThatAreNotAsTheOthers: one that only the destination fills, one that is
// given once, and one that refers to another object (spec 2.5).
func TestFieldsThatAreNotAsTheOthers(t *testing.T) {
	proves(t, "F-2.5-03", "F-2.5-04", "F-2.5-13", "F-4-09")
	w := newWorld(t)
	list := w.do("GET", fmt.Sprintf("/destinations/%d/objects", w.emulated("salesforce").id("data.id")), w.key, nil).want(200)
	found := map[string][]any{}
	for _, object := range list.objects("data") {
		for _, f := range object["fields"].([]any) {
			field := f.(map[string]any)
			found[fmt.Sprint(object["full_name"], ".", field["full_name"])] = []any{field["createable"], field["updateable"], field["lookup_object"]}
		}
	}
	for field, want := range map[string][]any{
		"Contact.Id":          {false, false, ""},
		"Contact.CreatedDate": {true, false, ""},
		"Contact.LastName":    {true, true, ""},
		"Contact.account":     {true, true, "Account"},
	} {
		require.Equal(t, want, found[field], field)
	}
}

// TestPlanningIgnoresTheDeadlineOfBatches (spec 8): a slow get_sync_speed is waited for.
func TestPlanningIgnoresTheDeadlineOfBatches(t *testing.T) {
	w := newSyncWorld(t, func(c *Config) { c.BatchTimeout = 60 * time.Millisecond })
	id := w.kept(nil).id("data.id")
	_, err := w.sim.ArmFault(destsim.Fault{Kind: "delay", Delay: &destsim.Delay{MS: 100}, When: destsim.Trigger{Method: rpc.MethodGetSyncSpeed, Times: 1}})
	require.NoError(t, err)
	run := w.trigger(id)
	require.NoError(t, w.s.Settle(t.Context()))
	require.Equal(t, "completed", w.status(run))
	require.Empty(t, w.sim.UnfiredFaults())
}
