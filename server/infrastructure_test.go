package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// providers are the two kinds of such clients: the older keeps ids as texts,
// authenticates with HTTP Basic, sends every setting in an update and the type
// of a connection twice; the newer keeps numbers and sends only what changes.
func providers(w *world) map[string]*infrastructureProvider {
	basic := func(r *http.Request) { r.SetBasicAuth("bearer", w.key) }
	bearer := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+w.key) }
	return map[string]*infrastructureProvider{
		"older": {&infrastructureClient{w, basic}, true},
		"newer": {&infrastructureClient{w, bearer}, false},
	}
}

type infrastructureProvider struct {
	*infrastructureClient
	older bool
}

// ref is how the client writes an id that it keeps.
func (p *infrastructureProvider) ref(id string) any {
	if p.older {
		return id
	}
	return json.Number(id)
}

// TestInfrastructureClients plays whole configurations: create, read, plan
// without a change, import, update, delete.
func TestInfrastructureClients(t *testing.T) {
	for _, name := range []string{"older", "newer"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.Dialect = DialectLive })
			p := providers(w)[name]
			if p.older {
				// It first requests the key of the workspace, and the catalogues, whose
				// rules are lists.
				workspace := w.do("GET", "/workspaces", w.pat, nil).want(200).id("data.0.id")
				require.JSONEq(t, fmt.Sprintf(`{"api_key":%q}`, w.key), string(w.do("GET", fmt.Sprintf("/workspaces/%d/api_key", workspace), w.pat, nil).want(200).text))
				for _, catalogue := range []string{"/source_types", "/connectors"} {
					require.IsType(t, []any{}, p.call("GET", catalogue, nil).want(200).at("data.0.configuration_fields.fields.0.rules"))
				}
			}
			for i := range connectionShapes {
				p.source(i)
			}
			p.configuration()
		})
	}
}

// source makes one of the connections, and deletes it.
func (p *infrastructureProvider) source(i int) {
	shape := connectionShapes[i]
	at := func(values map[string]any) map[string]any {
		out := map[string]any{}
		for key, value := range values {
			if text, ok := value.(string); ok {
				value = strings.ReplaceAll(text, "%PATH%", p.sourceFile())
			}
			out[key] = value
		}
		return out
	}
	settings := map[string]any{"name": "Source " + shape.typ, "type": shape.typ, "credentials": at(shape.credentials)}
	m := &managed{
		name: shape.typ, collection: "/sources", wrapper: "connection", settings: settings, whole: p.older, code: 201, details: at(shape.details),
		change: map[string]any{"name": "Renamed " + shape.typ},
	}
	if p.older { // its default for every type
		settings["sync_engine"] = "advanced"
	}
	id := p.create(m)
	read := p.planned(m, id)
	require.Equal(p.t, !shape.fails, read.at("data.last_test_succeeded"))
	decodesStrictly(p.t, read)
	p.update(m, id)
	m.change = map[string]any{"credentials": at(map[string]any{shape.changed: shape.now})}
	m.whole, m.details = false, at(map[string]any{shape.changed: shape.now})
	p.update(m, id)
	p.gone(m, id)
}

// decodesStrictly reads a source as a client that has plain integers: a null
// among them ends it.
func decodesStrictly(t testing.TB, a *answer) {
	var source struct {
		Data struct {
			ID        plainInteger  `json:"id"`
			Retention *plainInteger `json:"warehouse_writeback_retention_in_days"`
		} `json:"data"`
	}
	require.NoError(t, json.Unmarshal(a.text, &source))
	var raw struct{ Data map[string]json.RawMessage }
	require.NoError(t, json.Unmarshal(a.text, &raw))
	if days, sent := raw.Data["warehouse_writeback_retention_in_days"]; sent {
		require.NotEqual(t, "null", string(days))
	}
}

// plainInteger fails on anything but an integer.
type plainInteger int64

func (n *plainInteger) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return fmt.Errorf("null is no integer")
	}
	return json.Unmarshal(text, (*int64)(n))
}

// configuration is a source, a destination of each kind, a dataset, a model and
// the syncs between them.
func (p *infrastructureProvider) configuration() {
	source := &managed{
		name: "source", collection: "/sources", wrapper: "connection", code: 201, whole: p.older,
		settings: map[string]any{"name": "Shop", "type": "sqlite", "sync_engine": "advanced", "credentials": map[string]any{"path": p.sourceFile()}},
		change:   map[string]any{"name": "The shop"},
	}
	sourceID := p.lives(source)
	endpoint := &managed{
		name: "endpoint", collection: "/destinations", wrapper: "service_connection", code: 201, whole: p.older, withheld: []string{"type"},
		settings: customDestination(p.destination())["service_connection"].(map[string]any),
		change:   map[string]any{"name": "Endpoint 2"},
		details:  map[string]any{"webhook_url": p.destination()},
	}
	application := &managed{
		name: "application", collection: "/destinations", wrapper: "service_connection", code: 201, whole: p.older, withheld: []string{"type"},
		settings: map[string]any{"name": "Application", "type": "salesforce", "credentials": map[string]any{
			"instance_url": "https://acme.my.salesforce.com", "client_id": "id", "client_secret": "s",
		}},
		change: map[string]any{"name": "Application 2"},
	}
	if p.older {
		endpoint.beside, application.beside = map[string]any{"type": "custom_api"}, map[string]any{"type": "salesforce"}
	}
	endpointID, applicationID := p.lives(endpoint), p.lives(application)
	query := "SELECT id, email, name, age FROM customers"
	dataset := &managed{
		name: "dataset", collection: "/datasets", code: 201, whole: p.older,
		settings: map[string]any{"name": "People", "type": "sql", "source_id": p.ref(sourceID), "query": query, "description": ""},
		change:   map[string]any{"description": "all of them"},
	}
	model := &managed{
		name: "model", collection: "/sources/" + sourceID + "/models", code: 201, whole: p.older,
		settings: map[string]any{"name": "Persons", "query": query, "description": ""}, change: map[string]any{"query": query + " WHERE id > 0"},
	}
	datasetID, modelID := p.lives(dataset), p.lives(model)
	p.syncs(sourceID, endpointID, applicationID, datasetID, modelID)
	p.gone(model, modelID)
	p.gone(dataset, datasetID)
	p.gone(endpoint, endpointID)
	p.gone(application, applicationID)
	p.gone(source, sourceID)
}

// syncs makes one after each trigger, with templates, alerts and schedules.
func (p *infrastructureProvider) syncs(source, endpoint, application, dataset, model string) {
	to := func(destination, object string) map[string]any {
		at := map[string]any{"connection_id": p.ref(destination), "object": object}
		if p.older {
			at["lead_union_insert_to"] = ""
		}
		return at
	}
	from := func(typ, id string) map[string]any {
		return map[string]any{"connection_id": p.ref(source), "object": map[string]any{"type": typ, "id": p.ref(id)}}
	}
	liquid := func(to string) map[string]any {
		return map[string]any{"from": map[string]any{"type": "liquid_template", "data": "{{ record['name'] | upcase }} <&>"}, "to": to}
	}
	alert := func(typ, sendFor string, options any) map[string]any {
		return map[string]any{"type": typ, "send_for": sendFor, "should_send_recovery": true, "options": options}
	}
	schedule := func(fields map[string]any) map[string]any {
		return map[string]any{"type": "triggered", "triggers": map[string]any{"schedule": fields}}
	}
	parent := &managed{
		name: "sync of a dataset", collection: "/syncs", code: 200, whole: p.older, withheld: []string{"operation"},
		settings: map[string]any{
			"label": "People", "operation": "upsert", "paused": false, "source_attributes": from("dataset", dataset),
			"destination_attributes": to(endpoint, "person"), "mappings": []any{column("email", "email", true), liquid("last_name")},
			"field_behavior": "specific_properties", "mode": schedule(map[string]any{"frequency": "daily", "hour": 6, "minute": 30}),
			"alert_attributes": []any{
				alert("FailureAlertConfiguration", "first_time", map[string]any{}), alert("InvalidRecordPercentAlertConfiguration", "every_time", map[string]any{"threshold": 20}),
				alert("RuntimeAlertConfiguration", "first_time", map[string]any{"threshold": 30, "unit": "minutes", "start_type": "actual"}),
				alert("StatusAlertConfiguration", "every_time", map[string]any{"status_name": "completed"}),
			},
		},
		change: map[string]any{"label": "All people", "mode": schedule(map[string]any{"frequency": "expression", "cron_expression": "15 6 * * 1,2,3"})},
	}
	parentID := p.lives(parent)
	p.alertsKeepTheirIDs(parent, parentID)
	child := &managed{
		name: "sync of a model", collection: "/syncs", code: 200, whole: p.older, withheld: []string{"operation"},
		settings: map[string]any{
			"label": "Contacts", "operation": "update", "source_attributes": from("model", model),
			"destination_attributes": to(application, "Contact"), "mappings": []any{column("email", "Email", true)},
			"mode": map[string]any{"type": "triggered", "triggers": map[string]any{
				"sync_sequence": map[string]any{"sync_id": p.ref(parentID)}, "dbt_cloud": map[string]any{"project_id": "12", "job_id": "34"},
				"fivetran": map[string]any{"job_id": "connector", "job_name": "Shop"},
			}},
		},
		change: map[string]any{"mode": schedule(map[string]any{"frequency": "weekly", "day": "Monday", "hour": 5, "minute": 0})},
	}
	childID := p.lives(child)
	read := p.planned(child, childID)
	require.Equal(p.t, []any{}, notIn(read, "resource_identifier", "schedule_day", "schedule_hour", "schedule_minute", "cron_expression"))
	p.triggers(parentID)
	p.gone(child, childID)
	p.gone(parent, parentID)
}

// notIn lists the keys that data does not have.
func notIn(a *answer, keys ...string) []any {
	missing := []any{}
	for _, key := range keys {
		if !a.has("data." + key) {
			missing = append(missing, key)
		}
	}
	return missing
}

// alertsKeepTheirIDs: an update names the alerts that stay by their ids, and one
// that leaves the alerts out keeps all.
func (p *infrastructureProvider) alertsKeepTheirIDs(m *managed, id string) {
	before := p.planned(m, id)
	var kept []any
	for i, entry := range m.settings["alert_attributes"].([]any)[:2] {
		alert := map[string]any{"id": p.ref(fmt.Sprint(before.id(fmt.Sprintf("data.alert_attributes.%d.id", i))))}
		for key, value := range entry.(map[string]any) {
			alert[key] = value
		}
		kept = append(kept, alert)
	}
	m.change = map[string]any{"alert_attributes": kept}
	p.update(m, id)
	p.call("PATCH", m.collection+"/"+id, map[string]any{"paused": true}).want(200)
	m.settings["paused"] = true
	p.planned(m, id)
	p.call("PATCH", m.collection+"/"+id, map[string]any{"paused": false}).want(200)
	m.settings["paused"] = false
	p.planned(m, id)
}

// triggers starts runs: the older client forces a full sync in the body, others
// in the query.
func (p *infrastructureProvider) triggers(id string) {
	for i, one := range []struct {
		query string
		body  any
		full  bool
	}{
		{"", nil, false},
		{"", map[string]any{"force_full_sync": true}, true},
		{"?force_full_sync=true", nil, true},
		{"?force_full_sync=True", nil, true},
		{"?force_full_sync=False", map[string]any{}, false},
	} {
		run := p.call("POST", "/syncs/"+id+"/trigger"+one.query, one.body).want(200).id("data.sync_run_id")
		p.control("POST", "/settle", nil).want(200)
		a := p.call("GET", fmt.Sprintf("/sync_runs/%d", run), nil).want(200).ended("completed")
		require.Equal(p.t, one.full, a.at("data.full_sync"), "%+v", one)
		if i > 0 {
			require.Equal(p.t, one.full, a.id("data.records_processed") > 0, "%+v", one)
		}
		require.Nil(p.t, a.at("data.scheduled_execution_time"))
	}
	require.Contains(p.t, fmt.Sprint(p.stored()), "ADA <&>")
}

// stored is what the endpoint has.
func (p *infrastructureProvider) stored() (fields []string) {
	records, _ := p.records("person")
	for _, r := range records {
		fields = append(fields, string(r.Fields))
	}
	return fields
}
