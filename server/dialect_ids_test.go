package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// inBothDialects runs a test in each; live reports which one it is.
func inBothDialects(t *testing.T, test func(t *testing.T, live bool, change func(*Config))) {
	t.Helper()
	for _, dialect := range []Dialect{DialectSpec, DialectLive} {
		t.Run(string(dialect), func(t *testing.T) {
			test(t, dialect == DialectLive, func(c *Config) { c.Dialect = dialect })
		})
	}
}

// accepted wants a success in the live dialect, and a problem of the field in
// the other one.
func (a *answer) accepted(live bool, code int, field string) *answer {
	a.t.Helper()
	if live {
		return a.want(code)
	}
	require.Contains(a.t, a.want(400).problems(), field)
	return a
}

// TestIDsAsText: ids are taken as texts of digits at every place of a body, and
// shown as numbers.
func TestIDsAsText(t *testing.T) {
	inBothDialects(t, func(t *testing.T, live bool, change func(*Config)) {
		w := newSyncWorld(t, change)
		text := func(id int64) string { return fmt.Sprint(id) }
		first := w.kept(nil)
		table := w.do("GET", fmt.Sprintf("/sources/%d/objects", w.source), w.key, nil).want(200).id("data.0.id")
		query := map[string]any{"name": "D", "type": "sql", "source_id": w.source, "query": "SELECT email, name FROM customers"}
		dataset := w.do("POST", "/datasets", w.key, query).want(201).id("data.id")
		model := w.do("POST", fmt.Sprintf("/sources/%d/models", w.source), w.key, map[string]any{"name": "M", "query": "SELECT email, name FROM customers"}).want(201).id("data.id")
		from := func(connection any, object map[string]any) map[string]any {
			return map[string]any{"source_attributes": map[string]any{"connection_id": connection, "object": object}}
		}
		for field, body := range map[string]map[string]any{
			"destination_attributes.connection_id":   {"destination_attributes": map[string]any{"connection_id": text(w.dest), "object": "person"}},
			"source_attributes.connection_id":        from(text(w.source), map[string]any{"type": "table", "id": table}),
			"source_attributes.object.id":            from(w.source, map[string]any{"type": "dataset", "id": text(dataset)}),
			"source_attributes.object.dataset_id":    from(w.source, map[string]any{"type": "dataset", "id": dataset, "dataset_id": text(dataset)}),
			"mode.triggers.sync_sequence.sync_id":    {"mode": map[string]any{"type": "triggered", "triggers": map[string]any{"sync_sequence": map[string]any{"sync_id": text(first.id("data.id"))}}}},
			"triggers.sync_sequence.sync_id":         {"triggers": map[string]any{"sync_sequence": map[string]any{"sync_id": text(first.id("data.id"))}}},
			"source_attributes.object.id (a table)":  from(w.source, map[string]any{"type": "table", "id": text(table)}),
			"source_attributes.object.id (a model)":  from(w.source, map[string]any{"type": "model", "id": text(model)}),
			"source_attributes.object.id (with a 0)": from(w.source, map[string]any{"type": "dataset", "id": "0" + text(dataset)}),
		} {
			name, _, _ := strings.Cut(field, " ")
			a := w.do("POST", "/syncs", w.key, w.body(body)).accepted(live, 200, name)
			if live {
				shown := w.do("GET", fmt.Sprintf("/syncs/%d", a.id("data.sync_id")), w.key, nil).want(200)
				require.Equal(t, w.dest, shown.id("data.destination_attributes.connection_id"))
				require.Equal(t, w.source, shown.id("data.source_attributes.connection_id"))
			}
		}
		alert := map[string]any{"id": text(first.id("data.alert_attributes.0.id")), "type": "FailureAlertConfiguration", "send_for": "every_time", "should_send_recovery": true, "options": nil}
		a := w.do("PATCH", fmt.Sprintf("/syncs/%d", first.id("data.id")), w.key, w.body(map[string]any{"alert_attributes": []any{alert}})).accepted(live, 200, "alert_attributes[0].id")
		if live {
			require.Equal(t, first.id("data.alert_attributes.0.id"), a.id("data.alert_attributes.0.id"))
			require.Len(t, a.at("data.alert_attributes"), 1)
		}
		query["name"], query["source_id"] = "E", text(w.source)
		made := w.do("POST", "/datasets", w.key, query).accepted(live, 201, "source_id")
		if live {
			require.Equal(t, w.source, made.id("data.source_id"))
		}
		w.do("PATCH", fmt.Sprintf("/datasets/%d", dataset), w.key, map[string]any{"source_id": text(w.source)}).accepted(live, 200, "source_id")
		workspace := w.do("GET", "/workspaces", w.pat, nil).want(200).id("data.0.id")
		w.do("POST", "/invitations", w.pat, map[string]any{
			"email": "i@example.com", "role": "member", "workspaces": []any{map[string]any{"id": text(workspace), "role": "viewer"}},
		}).accepted(live, 200, "workspaces[0].id")
	})
}

// TestIDsAsTextAreDigits: nothing else is read as an id, and no other number may
// be a text.
func TestIDsAsTextAreDigits(t *testing.T) {
	inBothDialects(t, func(t *testing.T, live bool, change func(*Config)) {
		w := newSyncWorld(t, change)
		for _, id := range []string{"", " 7", "7 ", "+7", "-7", "7.0", "1e1", "0x7", "seven", "٣", "99999999999999999999"} {
			a := w.do("POST", "/syncs", w.key, w.body(map[string]any{"destination_attributes": map[string]any{"connection_id": id, "object": "person"}})).want(400)
			require.Contains(t, a.at("message"), "destination_attributes.connection_id: must be an integer", id)
		}
		for field, body := range map[string]map[string]any{
			"mode.triggers.schedule.hour":                   {"mode": map[string]any{"type": "triggered", "triggers": map[string]any{"schedule": map[string]any{"frequency": "daily", "hour": "5"}}}},
			"failed_record_notifications_threshold_percent": {"failed_record_notifications_threshold_percent": "20"},
		} {
			require.Contains(t, w.do("POST", "/syncs", w.key, w.body(body)).want(400).at("message"), field+": must be an integer")
		}
		// Ids of other products are texts, and stay so.
		dbt := map[string]any{"project_id": "12", "job_id": "0034"}
		body := w.body(map[string]any{"mode": map[string]any{"type": "triggered", "triggers": map[string]any{"dbt_cloud": dbt}}})
		if live {
			body["destination_attributes"] = map[string]any{"connection_id": fmt.Sprint(w.dest), "object": "person"}
		}
		shown := w.do("GET", fmt.Sprintf("/syncs/%d", w.do("POST", "/syncs", w.key, body).want(200).id("data.sync_id")), w.key, nil).want(200)
		require.Equal(t, dbt, shown.at("data.mode.triggers.dbt_cloud"))
	})
}

// TestIDsAsTextChangeNothingElse: values next to such an id arrive as sent, and
// the journal keeps what was sent.
func TestIDsAsTextChangeNothingElse(t *testing.T) {
	w := newSyncWorld(t, func(c *Config) { c.Dialect = DialectLive })
	body := w.body(map[string]any{
		"label": "<a & b> \u2028 7", "destination_attributes": map[string]any{"connection_id": fmt.Sprint(w.dest), "object": "person"},
	})
	mappings := append(body["mappings"].([]any), map[string]any{
		"from": map[string]any{"type": "constant_value", "data": map[string]any{"value": json.Number("12345678901234567890.125"), "basic_type": "number"}}, "to": "score",
	})
	body["mappings"] = mappings
	id := w.do("POST", "/syncs", w.key, body).want(200).id("data.sync_id")
	shown := w.do("GET", fmt.Sprintf("/syncs/%d", id), w.key, nil).want(200)
	shown.is("data.label", body["label"], "data.mappings.2.from.data.value", json.Number("12345678901234567890.125"))
	kept := w.control("GET", "/journal/requests?operation=createSync", nil).want(200)
	require.Equal(t, fmt.Sprint(w.dest), kept.at("entries.0.request.destination_attributes.connection_id"))

	// A second problem is still reported, an unknown field still ignored.
	wrong := maps.Clone(body)
	wrong["operation"], wrong["colour"] = "replace", "red"
	a := w.do("POST", "/syncs", w.key, wrong).want(400)
	require.Regexp(t, `^operation: must be one of [a-z, ]+, is "replace"$`, a.at("message"))
	require.Contains(t, a.header.Get("Warning"), "colour")
	a = w.do("POST", "/syncs", w.key, `{"destination_attributes":{"connection_id":"1","connection_id":"2","object":"person"}}`).want(400)
	require.Contains(t, a.at("message"), "destination_attributes.connection_id: stands more than once")
}

// TestQueryBooleans: as clients of several languages write them.
func TestQueryBooleans(t *testing.T) {
	inBothDialects(t, func(t *testing.T, live bool, change func(*Config)) {
		w := newSyncWorld(t, change)
		path := fmt.Sprintf("/syncs/%d/trigger", w.kept(nil).id("data.id"))
		forced := func(value string) *answer {
			a := w.do("POST", path+"?force_full_sync="+value, w.key, nil)
			w.control("POST", "/settle", nil).want(200)
			return a
		}
		full := func(a *answer) any {
			return w.do("GET", fmt.Sprintf("/sync_runs/%d", a.want(200).id("data.sync_run_id")), w.key, nil).want(200).at("data.full_sync")
		}
		full(forced("false")) // the first run of a sync
		for value, want := range map[string]bool{"true": true, "false": false, "True": true, "TRUE": true, "1": true, "False": false, "FALSE": false, "0": false} {
			if plain := value == "true" || value == "false"; !live && !plain {
				require.Contains(t, forced(value).want(400).problems(), "force_full_sync", value)
				continue
			}
			require.Equal(t, want, full(forced(value)), value)
		}
		for _, value := range []string{"", "yes", "t", "2", "on", "null", "true%20"} {
			require.Contains(t, forced(value).want(400).at("message"), "force_full_sync: must be true or false", value)
		}
	})
}
