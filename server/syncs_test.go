package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSyncIsCheckedWhole: one payload, many mistakes, one answer that names all
// of them; nothing is stored.
func TestSyncIsCheckedWhole(t *testing.T) {
	proves(t, "F-4.1-15", "F-7.1-04")
	w := newWorld(t)
	body := syncBody(w.newSource(), w.newDestination())
	body["mappings"] = []any{
		map[string]any{"from": map[string]any{"type": "column", "data": "e_mail"}, "to": "email", "is_primary_identifier": true},
		map[string]any{"from": map[string]any{"type": "liquid_template", "data": "{{ record['name' }}"}, "to": "first_name"},
		map[string]any{"from": map[string]any{"type": "constant_value", "data": map[string]any{"value": "x", "basic_type": "number"}}, "to": "no.such.field"},
	}
	body["mirror_strategy"] = "upload_and_swap"
	body["historical_sync_operation"] = "skip_current_records"
	body["field_order"] = "mapping_order"
	body["advanced_configuration"] = map[string]any{"no_such_key": 1}
	problems := w.do("POST", "/syncs", w.key, body).want(http.StatusBadRequest).problems()
	for _, field := range []string{
		"mappings[0].from.data", "mappings[1].from.data", "mirror_strategy",
		"historical_sync_operation", "field_order", "advanced_configuration.no_such_key",
	} {
		require.Contains(t, problems, field)
		require.NotEmpty(t, problems[field])
	}
	require.Contains(t, problems["mappings[0].from.data"], `"email"`, "the nearest column is suggested")
	require.Empty(t, w.do("GET", "/syncs", w.key, nil).want(200).at("data"))

	// An update is checked as a whole, too, and changes nothing.
	whole := syncBody(w.newSource(), w.newDestination())
	path := fmt.Sprintf("/syncs/%d", w.do("POST", "/syncs", w.key, whole).want(200).id("data.sync_id"))
	before := w.do("GET", path, w.key, nil).want(200).at("data")
	refused := w.do("PATCH", path, w.key, map[string]any{"label": "Changed", "operation": "merge", "paused": "yes"}).want(http.StatusBadRequest)
	require.NotEmpty(t, refused.at("message"))
	require.Contains(t, refused.problems(), "operation")
	require.Contains(t, refused.problems(), "paused")
	require.Equal(t, before, w.do("GET", path, w.key, nil).want(200).at("data"))
}

// TestSyncReferences: what a sync points at must exist in the workspace.
func TestSyncReferences(t *testing.T) {
	w := newWorld(t)
	source, destination := w.newSource(), w.newDestination()
	for field, change := range map[string]func(map[string]any){
		"source_attributes.connection_id": func(b map[string]any) {
			b["source_attributes"].(map[string]any)["connection_id"] = 999
		},
		"source_attributes.object.table_name": func(b map[string]any) {
			b["source_attributes"].(map[string]any)["object"].(map[string]any)["table_name"] = "nobody"
		},
		"source_attributes.object.id": func(b map[string]any) {
			b["source_attributes"].(map[string]any)["object"] = map[string]any{"type": "dataset", "id": 999}
		},
		"destination_attributes.connection_id": func(b map[string]any) {
			b["destination_attributes"].(map[string]any)["connection_id"] = 999
		},
		"destination_attributes.object": func(b map[string]any) {
			b["destination_attributes"].(map[string]any)["object"] = "nothing"
		},
		"mode.triggers.sync_sequence.sync_id": func(b map[string]any) {
			b["mode"] = map[string]any{"type": "triggered", "triggers": map[string]any{"sync_sequence": map[string]any{"sync_id": 999}}}
		},
	} {
		t.Run(field, func(t *testing.T) {
			body := syncBody(source, destination)
			change(body)
			require.Contains(t, w.do("POST", "/syncs", w.key, body).want(400).problems(), field)
		})
	}
}

// TestSyncRoundTrip: every field that was sent is read back; read-only fields
// that a client echoes are ignored.
func TestSyncRoundTrip(t *testing.T) {
	w := newWorld(t)
	id := w.newSync()
	path := fmt.Sprintf("/syncs/%d", id)
	before := w.do("GET", path, w.key, nil).want(200)
	require.Equal(t, "ready", before.at("data.status"))
	require.Len(t, before.at("data.alert_attributes"), 2, "the two default alerts")
	var echoed struct {
		Data map[string]any `json:"data"`
	}
	require.NoError(t, json.Unmarshal(before.text, &echoed))
	echoed.Data["status"], echoed.Data["id"] = "failing", 4711
	after := w.do("PATCH", path, w.key, echoed.Data).want(200)
	require.Equal(t, "ready", after.at("data.status"))
	require.Equal(t, id, after.id("data.id"))
	for _, key := range []string{"mappings", "alert_attributes", "mode", "source_attributes", "destination_attributes", "paused", "label"} {
		require.Equal(t, before.at("data."+key), after.at("data."+key), key)
	}
	require.True(t, after.has("data.match_rate_details"), "shown in the reply of an update")
	require.Nil(t, after.at("data.match_rate_details"))
	require.False(t, before.has("data.match_rate_details"))
}

// TestSyncUpdateKeepsWhatItLeavesOut (spec 4.1.1), and what is required.
func TestSyncUpdateKeepsWhatItLeavesOut(t *testing.T) {
	proves(t, "F-4.1-01", "F-4.1-02", "F-3-01")
	w := newWorld(t)
	source, destination := w.newSource(), w.newDestination()
	body := syncBody(source, destination)
	body["mode"] = map[string]any{"type": "triggered", "triggers": map[string]any{"schedule": map[string]any{"frequency": "daily", "hour": 7, "minute": 30}}}
	body["alert_attributes"] = []any{}
	id := w.do("POST", "/syncs", w.key, body).want(200).id("data.sync_id")
	path := fmt.Sprintf("/syncs/%d", id)
	require.Empty(t, w.do("GET", path, w.key, nil).want(200).at("data.alert_attributes"))
	update := syncBody(source, destination)
	update["paused"] = true
	a := w.do("PATCH", path, w.key, update).want(200)
	require.Equal(t, true, a.at("data.paused"))
	require.Equal(t, "daily", a.at("data.mode.triggers.schedule.frequency"))
	update["paused"] = false
	require.Equal(t, false, w.do("PATCH", path, w.key, update).want(200).at("data.paused"))
	for _, required := range []string{"operation", "destination_attributes", "source_attributes", "mappings"} {
		short := maps.Clone(update)
		delete(short, required)
		require.Contains(t, w.do("PATCH", path, w.key, short).want(400).problems(), required)
	}
}

// TestValidateOnly changes nothing, and shows the sync as it would be.
func TestValidateOnly(t *testing.T) {
	proves(t, "F-4.1-03")
	w := newWorld(t)
	source, destination := w.newSource(), w.newDestination()
	id := w.do("POST", "/syncs", w.key, syncBody(source, destination)).want(200).id("data.sync_id")
	path := fmt.Sprintf("/syncs/%d", id)
	before := w.do("GET", path, w.key, nil).text
	body := syncBody(source, destination)
	body["label"], body["validate_only"] = "As it would be", true
	a := w.do("PATCH", path, w.key, body).want(200)
	require.Equal(t, "success", a.at("status"))
	require.Equal(t, "As it would be", a.at("data.label"))
	require.Equal(t, string(before), string(w.do("GET", path, w.key, nil).text))
	a = w.do("POST", "/syncs", w.key, body).want(200)
	require.False(t, a.has("data.id"))
	require.Len(t, w.do("GET", "/syncs", w.key, nil).at("data"), 1)
}

// TestConcurrentUpdates: of updates that come together each wins whole or is
// refused with 409; they never mix.
func TestConcurrentUpdates(t *testing.T) {
	w := newWorld(t)
	source, destination := w.newSource(), w.newDestination()
	id := w.do("POST", "/syncs", w.key, syncBody(source, destination)).want(200).id("data.sync_id")
	path := fmt.Sprintf("/syncs/%d", id)
	var wait sync.WaitGroup
	won := make([]bool, 16)
	for i := range won {
		wait.Go(func() {
			body := syncBody(source, destination)
			body["label"] = fmt.Sprintf("writer %d", i)
			body["advanced_configuration"] = map[string]any{"allow_empty_source": i%2 == 0}
			a := w.do("PATCH", path, w.key, body)
			won[i] = a.code == http.StatusOK
			if !won[i] {
				a.want(http.StatusConflict)
			}
		})
	}
	wait.Wait()
	a := w.do("GET", path, w.key, nil).want(200)
	var winner int
	_, err := fmt.Sscanf(a.at("data.label").(string), "writer %d", &winner)
	require.NoError(t, err)
	require.True(t, won[winner])
	require.Equal(t, winner%2 == 0, a.at("data.advanced_configuration.allow_empty_source"))
}

// TestDeprecatedAlertsCanBeChanged: by themselves, as long as the alerts are
// those that they have made; alert_attributes win wherever a client uses them
// (spec 2.6).
func TestDeprecatedAlertsCanBeChanged(t *testing.T) {
	proves(t, "F-2.6-30")
	w := newSyncWorld(t)
	id := w.kept(map[string]any{"failed_record_notifications_threshold_percent": 20}).id("data.id")
	update := func(changes map[string]any) (alerts []string) {
		for _, a := range w.do("PATCH", fmt.Sprintf("/syncs/%d", id), w.key, w.body(changes)).want(200).at("data.alert_attributes").([]any) {
			a := a.(map[string]any)
			shown := fmt.Sprint(a["id"], " ", strings.TrimSuffix(a["type"].(string), "AlertConfiguration"))
			if options, ok := a["options"].(map[string]any); ok && options["threshold"] != nil {
				shown += fmt.Sprint(" ", options["threshold"])
			}
			alerts = append(alerts, shown)
		}
		return alerts
	}
	require.Equal(t, []string{"1 Failure", "2 InvalidRecordPercent 20"}, update(nil))
	require.Equal(t, []string{"1 Failure", "2 InvalidRecordPercent 30"}, update(map[string]any{"failed_record_notifications_threshold_percent": 30}))
	require.Equal(t, []string{"2 InvalidRecordPercent 30"}, update(map[string]any{"failed_run_notifications_enabled": false}))
	require.Empty(t, update(map[string]any{"failed_record_notifications_enabled": false}))
	require.Equal(t, []string{"3 Failure"}, update(map[string]any{"failed_run_notifications_enabled": true}))
	own := map[string]any{"alert_attributes": []any{map[string]any{"id": 3, "type": "FailureAlertConfiguration", "send_for": "every_time", "should_send_recovery": true}}}
	require.Equal(t, []string{"3 Failure"}, update(own))
	require.Equal(t, []string{"3 Failure"}, update(map[string]any{"failed_run_notifications_enabled": false, "failed_record_notifications_enabled": true}), "alerts of a client's own stay")
	own["failed_record_notifications_enabled"] = true
	require.Equal(t, []string{"3 Failure"}, update(own))
}

// TestDeprecatedFields work and are marked (spec 9).
func TestDeprecatedFields(t *testing.T) {
	proves(t, "F-9-03", "F-9-04")
	w := newWorld(t)
	source, destination := w.newSource(), w.newDestination()
	for field, value := range map[string]any{
		"failed_run_notifications_enabled":              false,
		"failed_record_notifications_enabled":           false,
		"failed_record_notifications_threshold_percent": 10,
		"high_water_mark_attributes":                    nil,
	} {
		body := syncBody(source, destination)
		body[field] = value
		a := w.do("POST", "/syncs", w.key, body).want(200)
		require.Regexp(t, `^@\d+$`, a.header.Get("Deprecation"), field)
		shown := w.do("GET", fmt.Sprintf("/syncs/%d", a.id("data.sync_id")), w.key, nil)
		require.Equal(t, fmt.Sprint(value), fmt.Sprint(shown.at("data."+field)))
	}
	a := w.do("POST", "/syncs", w.key, syncBody(source, destination)).want(200)
	require.Empty(t, a.header.Get("Deprecation"))
}

// TestTriggerAndCancel: one run at a time; what comes meanwhile is skipped.
func TestTriggerAndCancel(t *testing.T) {
	proves(t, "F-2.9-01", "F-2.9-02", "F-2.9-03", "F-2.9-04", "F-2.9-05", "F-2.9-06", "F-2.9-07", "F-2.9-08", "F-2.9-09", "F-2.9-10", "F-2.9-11", "F-2.9-12", "F-2.9-13")
	proves(t, "F-3-02", "F-4-14", "F-4-31", "F-7.1-02")
	w := newWorld(t)
	id := w.newSync()
	path := fmt.Sprintf("/syncs/%d", id)
	reached, release := w.hold()
	defer release()
	first := w.do("POST", path+"/trigger?force_full_sync=true", w.key, nil).want(200).id("data.sync_run_id")
	<-reached
	second := w.do("POST", path+"/trigger", w.key, `{"force_full_sync":false}`).want(200).id("data.sync_run_id")
	shown := w.do("GET", fmt.Sprintf("/sync_runs/%d", first), w.key, nil).want(200)
	require.Equal(t, true, shown.at("data.full_sync"))
	require.Equal(t, "Manual", shown.at("data.sync_trigger_reason.ui_tag"))
	require.NotEmpty(t, shown.at("data.sync_trigger_reason.ui_detail"))
	require.Equal(t, first, shown.id("data.id"))
	require.Equal(t, id, shown.id("data.sync_id"))
	require.Equal(t, "working", shown.at("data.status"))
	require.NotEmpty(t, shown.at("data.current_step"))
	require.Equal(t, false, shown.at("data.canceled"))
	require.Nil(t, shown.at("data.completed_at"))
	for _, moment := range []string{"created_at", "updated_at", "scheduled_execution_time"} {
		require.NotEmpty(t, shown.at("data."+moment))
	}
	for _, counter := range []string{
		"source_record_count", "source_record_updates", "source_record_deletes", "source_record_invalids",
		"records_processed", "records_updated", "records_failed", "records_invalid",
	} {
		require.Nil(t, shown.at("data."+counter), "unknown before the run knows it")
	}
	require.Equal(t, "skipped", w.do("GET", fmt.Sprintf("/sync_runs/%d", second), w.key, nil).want(200).at("data.status"))
	w.do("POST", fmt.Sprintf("/sync_runs/%d/cancel", first), w.key, nil).want(200)
	release()
	w.control("POST", "/settle", nil).want(200)
	shown = w.do("GET", fmt.Sprintf("/sync_runs/%d", first), w.key, nil).want(200)
	require.Equal(t, "failed", shown.at("data.status"))
	require.Equal(t, "CANCELED", shown.at("data.error_code"))
	require.NotEmpty(t, shown.at("data.error_message"))
	require.True(t, shown.has("data.error_detail"))
	require.NotNil(t, shown.at("data.completed_at"))
	w.do("POST", path+"/trigger?force_full_sync=perhaps", w.key, nil).want(400)
	w.do("POST", path+"/trigger", w.key, `{"force_full_sync":"yes"}`).want(400)
	require.Len(t, w.do("GET", path+"/sync_runs", w.key, nil).want(200).at("data"), 2)
}
