package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
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

// TestDestination reads every property of a destination back (spec 2.2).
func TestDestination(t *testing.T) {
	proves(t, "F-2.2-01", "F-2.2-02", "F-2.2-03", "F-2.2-04", "F-2.2-05", "F-2.2-06", "F-2.2-09", "F-2.2-10", "F-4-05", "F-4-06", "F-4-07", "F-4-27", "F-4-28")
	w := newWorld(t)
	a := w.do("POST", "/destinations", w.key, customDestination(w.destination())).want(201)
	require.Equal(t, "created", a.at("status"))
	path := fmt.Sprintf("/destinations/%d", a.id("data.id"))
	for _, shown := range []*answer{a, w.do("GET", path, w.key, nil).want(200)} {
		require.Equal(t, "Endpoint", shown.at("data.name"))
		require.Equal(t, "custom_api", shown.at("data.type"))
		require.Regexp(t, `^\d{4}-\d\d-\d\dT[\d:.]+Z$`, shown.at("data.created_at"))
		require.Regexp(t, `^\d{4}-\d\d-\d\dT[\d:.]+Z$`, shown.at("data.last_tested_at"))
		require.Equal(t, true, shown.at("data.last_test_succeeded"))
		steps := shown.at("data.last_test_results.steps").([]any)
		require.Len(t, steps, 5)
		require.Equal(t, "test_connection", steps[4].(map[string]any)["step"])
		require.Equal(t, json.Number("1"), shown.at("data.connection_details.api_version"))
		require.Nil(t, shown.at("data.connection_details.custom_headers.X-Client.value"))
		require.NotContains(t, string(shown.text), "destination-token")
		require.NotContains(t, string(shown.text), "header-secret")
		require.Len(t, shown.at("data.objects"), 3)
	}
	list := w.do("GET", "/destinations", w.key, nil).want(200)
	require.Equal(t, a.at("data.id"), list.at("data.0.id"))
}

// TestUpdateOnlyProperties: what the specification shows in the reply of an
// update is shown there only, and everywhere in the live dialect (spec 2.2, 2.3).
func TestUpdateOnlyProperties(t *testing.T) {
	proves(t, "F-2.2-08", "F-2.3-04", "F-2.3-06", "F-2.3-11", "F-4-08", "F-2.2-07")
	for _, dialect := range []Dialect{DialectSpec, DialectLive} {
		w := newWorld(t, func(c *Config) { c.Dialect = dialect })
		a := w.emulated("google_ads")
		path := fmt.Sprintf("/destinations/%d", a.id("data.id"))
		properties := func(shown *answer, wanted bool) {
			t.Helper()
			require.Equal(t, wanted, shown.has("data.is_file_system_destination"))
			for _, property := range []string{"primary_identifier_mapping_attributes", "supported_custom_field_types", "is_audience_destination"} {
				require.Equal(t, wanted, shown.has("data.objects.0."+property), property)
			}
		}
		live := dialect == DialectLive
		properties(a, live)
		properties(w.do("GET", path, w.key, nil).want(200), live)
		updated := w.do("PATCH", path, w.key, map[string]any{"service_connection": map[string]any{"name": "Ads"}}).want(200)
		require.Equal(t, "updated", updated.at("status"))
		properties(updated, true)
		require.Equal(t, true, updated.at("data.objects.0.is_audience_destination"))
		for _, rule := range []string{"upsert", "mirror"} {
			for _, key := range []string{"required", "hide_destination_key", "notes"} {
				require.True(t, updated.has("data.objects.0.primary_identifier_mapping_attributes."+rule+"."+key))
			}
		}
		require.Equal(t, "123-456-7890", updated.at("data.connection_details.account_id"))
		require.NotEmpty(t, updated.at("data.connection_details.account_name"))
	}
}

// TestDestinationObjects reads objects, fields and definitions of each kind
// through the API (spec 2.3 to 2.5).
func TestDestinationObjects(t *testing.T) {
	proves(t, "F-2.3-01", "F-2.3-02", "F-2.3-03", "F-2.3-05", "F-2.3-07", "F-2.3-08", "F-2.3-09", "F-2.3-10", "F-2.3-12", "F-2.3-13", "F-4-09", "F-4-10")
	proves(t, "F-2.4-01", "F-2.4-02", "F-2.4-03", "F-2.4-04", "F-2.4-05", "F-2.4-06", "F-2.4-07", "F-2.4-08", "F-2.4-09")
	proves(t, "F-2.5-01", "F-2.5-02", "F-2.5-03", "F-2.5-04", "F-2.5-05", "F-2.5-06", "F-2.5-07", "F-2.5-08", "F-2.5-09", "F-2.5-10", "F-2.5-11", "F-2.5-12", "F-2.5-13", "F-2.5-14")
	w := newWorld(t, func(c *Config) { c.Dialect = DialectLive })
	seen := map[string]map[string]bool{}
	note := func(kind string, properties map[string]any) {
		for name, value := range properties {
			key := kind + "." + name
			if seen[key] == nil {
				seen[key] = map[string]bool{}
			}
			text, err := json.Marshal(value)
			require.NoError(t, err)
			seen[key][string(text)] = true
		}
	}
	note("destination", map[string]any{"id": w.newDestination()})
	for _, typ := range []string{"salesforce", "google_sheets", "google_ads"} {
		w.emulated(typ)
	}
	for _, d := range w.do("GET", "/destinations", w.key, nil).want(200).at("data").([]any) {
		path := fmt.Sprintf("/destinations/%s/objects", d.(map[string]any)["id"])
		for _, o := range w.do("GET", path, w.key, nil).want(200).at("data").([]any) {
			object := o.(map[string]any)
			one := w.do("GET", path+"/"+object["full_name"].(string), w.key, nil).want(200)
			require.Equal(t, o, one.at("data"), "one object is as in the list")
			note("object", object)
			for _, f := range object["fields"].([]any) {
				note("field", f.(map[string]any))
			}
			definitions := object["configurable_field_definitions"].(map[string]any)
			for _, f := range object["advanced_configuration_field_definitions"].([]any) {
				field := f.(map[string]any)
				require.Equal(t, field["type"], definitions[field["name"].(string)])
				note("definition", field)
			}
		}
	}
	// A property that never varies would be a constant, not something measured.
	for _, property := range []string{
		"object.label", "object.full_name", "object.supported_operations", "object.allow_custom_fields", "object.allow_case_sensitive_fields",
		"object.supports_field_ordering", "object.is_audience_destination", "object.configurable_field_definitions",
		"definition.name", "definition.type", "definition.label", "definition.input_type", "definition.placeholder", "definition.default",
		"definition.sort_order", "definition.required", "field.label", "field.full_name", "field.createable", "field.updateable",
		"field.operations", "field.array", "field.preserve_values_supported", "field.required_for_mapping", "field.can_be_upsert_key",
		"field.can_be_update_key", "field.can_be_insert_key", "field.can_be_reference_key", "field.lookup_object", "field.type",
	} {
		require.Greater(t, len(seen[property]), 1, "%s is always the same: %v", property, seen[property])
	}
	require.NotEmpty(t, seen["definition.supported_values"])
	for _, kind := range []string{`"text"`, `"textarea"`, `"dropdown"`} {
		require.Contains(t, seen["definition.input_type"], kind)
	}
	require.Contains(t, seen["object.can_be_sync_destination"], "true")
}

// TestPlanningGoesThroughTheCache: objects come from real calls, are kept, and
// are asked for again when they are old or a client wants it (spec 4.2).
func TestPlanningGoesThroughTheCache(t *testing.T) {
	proves(t, "F-4.2-01", "F-4.2-02", "F-4.2-03", "F-4.2-04", "F-4.2-07")
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
	person := w.do("GET", path+"/objects/person", w.key, nil).want(200)
	require.Equal(t, "Person", person.at("data.label"))
	require.ElementsMatch(t, []any{"insert", "update", "upsert", "mirror"}, person.at("data.supported_operations"))
	var email map[string]any
	for _, f := range person.at("data.fields").([]any) {
		if f.(map[string]any)["full_name"] == "email" {
			email = f.(map[string]any)
		}
	}
	require.Equal(t, true, email["can_be_upsert_key"])
	w.do("GET", path+"/objects", w.key, nil).want(200)
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

// TestAuthToken: sent with every call, can be changed, cannot be removed
// (spec 5.2.2); secrets of the URL arrive as they are (spec 5.2.3).
func TestAuthToken(t *testing.T) {
	proves(t, "F-5.2-02", "F-5.2-03", "F-5.2-04", "F-5.2-05", "F-9-05", "F-9-06", "F-9-07")
	w := newWorld(t)
	var got []string
	sim, err := destsim.New(destsim.Config{Preset: "crm"})
	require.NoError(t, err)
	defer sim.Close()
	endpoint := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		got = append(got, r.Header.Get("Authorization")+" "+r.RequestURI+" "+r.Header.Get("X-Client"))
		w.mu.Unlock()
		sim.ServeHTTP(rw, r)
	}))
	defer endpoint.Close()
	id := w.do("POST", "/destinations", w.key, customDestination(endpoint.URL+"/p%2Fq/?segment=un%20guessable&api_key=K")).want(201).id("data.id")
	path := fmt.Sprintf("/destinations/%d", id)
	require.Len(t, got, 8)
	for _, call := range got {
		require.Equal(t, "Bearer destination-token /p%2Fq/?segment=un%20guessable&api_key=K header-secret", call)
	}
	patch := func(credentials map[string]any) *answer {
		got = nil
		return w.do("PATCH", path, w.key, map[string]any{"service_connection": map[string]any{"credentials": credentials}})
	}
	patch(map[string]any{"auth_token": "another"}).want(200)
	require.Contains(t, got[0], "Bearer another ")
	patch(map[string]any{"custom_headers": map[string]any{"X-Client": map[string]any{"value": nil, "is_secret": true}}}).want(200)
	require.Equal(t, "Bearer another /p%2Fq/?segment=un%20guessable&api_key=K header-secret", got[0], "what is left out stays")
	for _, removal := range []any{nil, ""} {
		require.Contains(t, patch(map[string]any{"auth_token": removal}).want(400).problems(), "service_connection.credentials.auth_token")
	}
	for _, version := range []any{2, 0, "1"} {
		require.Contains(t, patch(map[string]any{"api_version": version}).want(400).problems(), "service_connection.credentials.api_version")
	}
	require.Empty(t, got, "nothing was called")
}

// TestConnectionTestSteps: the failing step is named with the destination's own
// words (spec 3, 7.1.3, 7.2).
func TestConnectionTestSteps(t *testing.T) {
	proves(t, "F-3-05", "F-7.1-03", "F-7.2-01", "F-7.2-02", "F-7.2-03")
	for _, one := range []struct{ name, body, step, message string }{
		{"unhealthy", `{"jsonrpc":"2.0","id":"%s","result":{"success":false,"error_message":"The API Key is invalid"}}`, "test_connection", "The API Key is invalid"},
		{"error", `{"jsonrpc":"2.0","id":"%s","error":{"code":-32000,"message":"database is down"}}`, "test_connection", "database is down"},
		{"error with its code", `{"jsonrpc":"2.0","id":"%s","error":{"code":-32000,"message":"x"}}`, "test_connection", "-32000"},
		{"wrong keys", `{"ok":"%s"}`, "test_connection", "unknown error"},
	} {
		t.Run(one.name, func(t *testing.T) {
			w := newWorld(t)
			endpoint := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				var call struct{ ID string }
				require.NoError(t, json.NewDecoder(r.Body).Decode(&call))
				fmt.Fprintf(rw, one.body, call.ID)
			}))
			defer endpoint.Close()
			a := w.do("POST", "/destinations", w.key, customDestination(endpoint.URL)).want(201)
			require.Equal(t, false, a.at("data.last_test_succeeded"))
			steps := a.at("data.last_test_results.steps").([]any)
			failed := steps[len(steps)-1].(map[string]any)
			require.Equal(t, one.step, failed["step"])
			require.Equal(t, "failed", failed["status"])
			require.Contains(t, strings.ToLower(failed["error"].(map[string]any)["message"].(string)), strings.ToLower(one.message))
			// It is the latest test that counts.
			path := fmt.Sprintf("/destinations/%d", a.id("data.id"))
			w.do("PATCH", path, w.key, map[string]any{"service_connection": map[string]any{"credentials": map[string]any{"webhook_url": w.destination()}}}).want(200)
			require.Equal(t, true, w.do("GET", path, w.key, nil).want(200).at("data.last_test_succeeded"))
		})
	}
}

// TestSlowDestination: a call that does not end in time fails, and so does the
// test (spec 8).
func TestSlowDestination(t *testing.T) {
	proves(t, "F-8-09")
	w := newWorld(t, func(c *Config) { c.CallTimeout = 50_000_000 })
	hang := make(chan struct{})
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	defer endpoint.Close()
	defer close(hang)
	a := w.do("POST", "/destinations", w.key, customDestination(endpoint.URL)).want(201)
	require.Equal(t, false, a.at("data.last_test_succeeded"))
	require.Contains(t, string(a.text), "did not answer within")
}
