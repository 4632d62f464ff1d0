package server

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
)

// syncWorld is a world with a source and a destination, and the means to try
// bodies of syncs.
type syncWorld struct {
	*world
	source, dest int64
}

func newSyncWorld(t testing.TB, change ...func(*Config)) *syncWorld {
	w := newWorld(t, change...)
	return &syncWorld{w, w.newSource(), w.newDestination()}
}

// body is a valid sync with changes laid over it.
func (w *syncWorld) body(changes map[string]any) map[string]any {
	body := syncBody(w.source, w.dest)
	maps.Copy(body, changes)
	return body
}

// kept creates a sync and reads it back.
func (w *syncWorld) kept(changes map[string]any) *answer {
	w.t.Helper()
	id := w.do("POST", "/syncs", w.key, w.body(changes)).want(200).id("data.sync_id")
	return w.do("GET", fmt.Sprintf("/syncs/%d", id), w.key, nil).want(200)
}

// refused tries a sync that must not be, and gives its problems.
func (w *syncWorld) refused(changes map[string]any) map[string]string {
	w.t.Helper()
	return w.do("POST", "/syncs", w.key, w.body(changes)).want(400).problems()
}

// spreadsheet makes the sync write to an object with field ordering and append.
func (w *syncWorld) spreadsheet(changes map[string]any) map[string]any {
	w.t.Helper()
	id := w.emulated("google_sheets").id("data.id")
	out := map[string]any{
		"destination_attributes": map[string]any{"connection_id": id, "object": "Sheet1"},
		"operation":              "append",
		"mappings":               []any{map[string]any{"from": map[string]any{"type": "column", "data": "name"}, "to": "name"}},
	}
	maps.Copy(out, changes)
	return out
}

func TestSyncFields(t *testing.T) {
	proves(t, "F-2.6-01", "F-2.6-03", "F-2.6-04", "F-2.6-05", "F-2.6-06", "F-2.6-09", "F-2.6-10", "F-2.6-21", "F-2.6-31", "F-3-06", "F-4-11", "F-4-12")
	w := newSyncWorld(t)
	a := w.kept(map[string]any{"id": 99, "status": "failing", "created_at": "2020-01-01T00:00:00Z", "updated_at": "2020-01-01T00:00:00Z",
		"mode": map[string]any{"type": "triggered", "triggers": map[string]any{"schedule": map[string]any{"frequency": "daily", "hour": 5, "minute": 15}}}})
	require.Equal(t, "success", a.at("status"))
	require.NotEqual(t, int64(99), a.id("data.id"))
	require.Equal(t, "ready", a.at("data.status"))
	require.NotContains(t, a.at("data.created_at"), "2020")
	require.Equal(t, "Customers", a.at("data.label"))
	require.Equal(t, w.dest, a.id("data.destination_attributes.connection_id"))
	require.Equal(t, "person", a.at("data.destination_attributes.object"))
	require.Equal(t, w.source, a.id("data.source_attributes.connection_id"))
	require.Equal(t, "customers", a.at("data.source_attributes.object.table_name"))
	require.Len(t, a.at("data.mappings"), 2)
	require.Equal(t, false, a.at("data.paused"))
	require.Equal(t, "triggered", a.at("data.mode.type"))
	require.EqualValues(t, 5, a.id("data.mode.triggers.schedule.hour"))
	require.EqualValues(t, 15, a.id("data.mode.triggers.schedule.minute"))
	require.Contains(t, w.refused(map[string]any{"operation": "merge"}), "operation")
	require.Contains(t, w.refused(map[string]any{"paused": "yes"}), "paused")
	require.Contains(t, w.refused(map[string]any{"validate_only": 1}), "validate_only")
	list := w.do("GET", "/syncs", w.key, nil).want(200)
	require.Equal(t, a.at("data"), list.at("data.0"), "the list shows what one sync shows")
}

func TestSyncOperations(t *testing.T) {
	proves(t, "F-2.6-02", "F-2.6-25", "F-2.6-26", "F-2.6-27", "F-2.6-28", "F-2.6-29", "F-4.1-05", "F-4.1-06", "F-2.6-18", "F-2.6-19")
	w := newSyncWorld(t)
	for _, operation := range []string{"insert", "update", "upsert", "mirror"} {
		require.Equal(t, operation, w.kept(map[string]any{"operation": operation}).at("data.operation"))
	}
	require.Contains(t, w.refused(map[string]any{"operation": "append"}), "operation", "not among those of a custom destination")
	for _, strategy := range []string{"sync_updates_and_deletes", "sync_updates_and_nulls", "upload_and_swap"} {
		a := w.kept(map[string]any{"operation": "mirror", "mirror_strategy": strategy})
		require.Equal(t, strategy, a.at("data.mirror_strategy"))
	}
	require.Contains(t, w.refused(map[string]any{"mirror_strategy": "upload_and_swap"}), "mirror_strategy")
	require.Contains(t, w.refused(map[string]any{"operation": "mirror", "mirror_strategy": "swap"}), "mirror_strategy")
	require.Contains(t, w.refused(map[string]any{"historical_sync_operation": "skip_current_records"}), "historical_sync_operation")
	for _, history := range []string{"skip_current_records", "backfill_all_records"} {
		a := w.kept(w.spreadsheet(map[string]any{"historical_sync_operation": history}))
		require.Equal(t, "append", a.at("data.operation"))
		require.Equal(t, history, a.at("data.historical_sync_operation"))
	}
	a := w.kept(w.spreadsheet(map[string]any{"high_water_mark_attribute": "signed_up"}))
	require.Equal(t, "signed_up", a.at("data.high_water_mark_attribute"))
	a = w.kept(w.spreadsheet(map[string]any{"high_water_mark_attributes": map[string]any{"use_high_water_mark_diff_type": true, "column_name": "signed_up"}}))
	require.Equal(t, "signed_up", a.at("data.high_water_mark_attributes.column_name"))
	require.Equal(t, true, a.at("data.high_water_mark_attributes.use_high_water_mark_diff_type"))
	require.Contains(t, w.refused(w.spreadsheet(map[string]any{"high_water_mark_attribute": "name"})), "high_water_mark_attribute")
	require.Contains(t, w.refused(map[string]any{"high_water_mark_attribute": "signed_up"}), "high_water_mark_attribute")
}

func TestSyncBehavior(t *testing.T) {
	proves(t, "F-2.6-08", "F-2.6-11", "F-2.6-13", "F-2.6-14", "F-2.6-15", "F-4.1-04", "F-2.6-12")
	w := newSyncWorld(t)
	require.Equal(t, "specific_properties", w.kept(nil).at("data.field_behavior"))
	for _, form := range []string{"start_case", "lower_case", "upper_case", "camel_case", "snake_case", "match_source_names"} {
		a := w.kept(map[string]any{"field_behavior": "sync_all_properties", "field_normalization": form})
		require.Equal(t, form, a.at("data.field_normalization"))
	}
	require.Contains(t, w.refused(map[string]any{"field_normalization": "snake_case"}), "field_normalization")
	require.Contains(t, w.refused(map[string]any{"field_behavior": "sync_all_properties", "field_normalization": "kebab"}), "field_normalization")
	require.Contains(t, w.refused(map[string]any{"field_order": "mapping_order"}), "field_order")
	for _, order := range []string{"alphabetical_column_name", "mapping_order"} {
		require.Equal(t, order, w.kept(w.spreadsheet(map[string]any{"field_order": order})).at("data.field_order"))
	}
	a := w.kept(map[string]any{"advanced_configuration": map[string]any{"delete_records": "full"}})
	require.Equal(t, "full", a.at("data.advanced_configuration.delete_records"))
	require.Contains(t, w.refused(map[string]any{"advanced_configuration": map[string]any{"colour": "red"}}), "advanced_configuration.colour")
	require.Contains(t, w.refused(map[string]any{"advanced_configuration": map[string]any{"delete_records": 7}}), "advanced_configuration.delete_records")
}

// TestSyncBehaviorFamily has both exclusions of spec 2.6.
func TestSyncBehaviorFamily(t *testing.T) {
	proves(t, "F-2.6-16", "F-2.6-17", "F-2.6-32")
	w := newSyncWorld(t)
	require.Equal(t, "mapRecords", w.kept(map[string]any{"sync_behavior_family": "mapRecords"}).at("data.sync_behavior_family"))
	require.Contains(t, w.refused(map[string]any{"sync_behavior_family": "activateEvents"}), "sync_behavior_family")
	require.Contains(t, w.refused(map[string]any{"mode": map[string]any{"type": "live"}}), "mode.type")
	require.Contains(t, w.refused(map[string]any{"mode": map[string]any{"type": "hourly"}}), "mode.type")

	stream := w.do("POST", "/sources", w.key, connection(map[string]any{"name": "Stream", "type": "topic_log", "credentials": map[string]any{}})).want(201).id("data.id")
	topic := w.do("POST", fmt.Sprintf("/sources/%d/topics", stream), w.key, map[string]any{"name": "t", "sample_message": map[string]any{"email": "a", "name": "b"}}).want(201).id("data.id")
	live := map[string]any{
		"source_attributes":    map[string]any{"connection_id": stream, "object": map[string]any{"type": "topic", "id": topic}},
		"mode":                 map[string]any{"type": "live"},
		"sync_behavior_family": "activateEvents",
	}
	a := w.kept(live)
	require.Equal(t, "activateEvents", a.at("data.sync_behavior_family"))
	require.Equal(t, "live", a.at("data.mode.type"))

	database := w.do("POST", "/sources", w.key, connection(map[string]any{"name": "Streaming database", "type": "materialize", "credentials": map[string]any{
		"host": "db.example.com", "port": 6875, "database": "materialize", "user": "reader", "password": "p",
	}})).want(201).id("data.id")
	table := w.do("GET", fmt.Sprintf("/sources/%d/objects?order=asc", database), w.key, nil).want(200).at("data.0").(map[string]any)
	delete(table, "id")
	columns := w.do("GET", fmt.Sprintf("/sources/%d/tables/%d", database, w.do("GET", fmt.Sprintf("/sources/%d/objects?order=asc", database), w.key, nil).id("data.0.id")), w.key, nil).want(200).at("data.columns").([]any)
	require.NotEmpty(t, columns)
	refused := w.refused(map[string]any{
		"source_attributes":    map[string]any{"connection_id": database, "object": table},
		"mode":                 map[string]any{"type": "live"},
		"sync_behavior_family": "mapRecords",
	})
	require.Contains(t, refused, "sync_behavior_family")
}

func TestSyncSchedules(t *testing.T) {
	proves(t, "F-2.6-33", "F-2.6-34", "F-2.6-35")
	w := newSyncWorld(t)
	schedule := func(fields map[string]any) map[string]any {
		return map[string]any{"mode": map[string]any{"type": "triggered", "triggers": map[string]any{"schedule": fields}}}
	}
	for _, fields := range []map[string]any{
		{"frequency": "never"}, {"frequency": "continuous"}, {"frequency": "quarter_hourly"}, {"frequency": "hourly", "minute": 10},
		{"frequency": "daily", "hour": 1, "minute": 2}, {"frequency": "weekly", "day": "Sunday", "hour": 1, "minute": 2},
		{"frequency": "expression", "cron_expression": "0 6 * * 1,2,3"},
	} {
		require.Equal(t, fields["frequency"], w.kept(schedule(fields)).at("data.mode.triggers.schedule.frequency"))
	}
	for _, fields := range []map[string]any{
		{"frequency": "yearly"}, {"frequency": "daily", "hour": 25}, {"frequency": "daily", "hour": 1, "minute": 60},
		{"frequency": "weekly", "day": "Caturday"}, {"frequency": "expression", "cron_expression": "every day"},
	} {
		require.NotEmpty(t, w.refused(schedule(fields)), fields)
	}
	first := w.kept(nil).id("data.id")
	a := w.kept(map[string]any{"mode": map[string]any{"type": "triggered", "triggers": map[string]any{
		"sync_sequence": map[string]any{"sync_id": first},
		"dbt_cloud":     map[string]any{"project_id": "1", "job_id": "2"},
		"fivetran":      map[string]any{"job_id": "3", "job_name": "load"},
	}}})
	require.Equal(t, first, a.id("data.mode.triggers.sync_sequence.sync_id"))
	require.Equal(t, "2", a.at("data.mode.triggers.dbt_cloud.job_id"))
	require.Equal(t, "load", a.at("data.mode.triggers.fivetran.job_name"))
	require.Equal(t, "never", a.at("data.mode.triggers.schedule.frequency"), "a schedule is shown even where none was given")
	a = w.kept(map[string]any{"schedule_frequency": "weekly", "schedule_day": "Monday", "schedule_hour": 3, "schedule_minute": 4})
	require.Equal(t, "Monday", a.at("data.mode.triggers.schedule.day"))
	require.Equal(t, "weekly", a.at("data.schedule_frequency"))
}

func TestSyncMappings(t *testing.T) {
	proves(t, "F-2.7-01", "F-2.7-02", "F-2.7-03", "F-2.7-04", "F-2.7-05", "F-2.7-06", "F-2.7-07", "F-2.7-08", "F-2.7-09", "F-2.7-10", "F-4.2-05", "F-4.2-06")
	w := newSyncWorld(t)
	key := map[string]any{"from": map[string]any{"type": "column", "data": "email"}, "to": "email", "is_primary_identifier": true}
	name := map[string]any{"from": map[string]any{"type": "column", "data": "name"}, "to": "last_name"}
	with := func(more ...map[string]any) map[string]any {
		mappings := []any{key, name}
		for _, m := range more {
			mappings = append(mappings, m)
		}
		return map[string]any{"mappings": mappings}
	}
	from := func(typ string, data any, to string) map[string]any {
		return map[string]any{"from": map[string]any{"type": typ, "data": data}, "to": to}
	}
	a := w.kept(with(
		from("constant_value", map[string]any{"value": "Ms", "basic_type": "text"}, "first_name"),
		from("liquid_template", "{{ record['name'] | upcase }}", "account_domain"),
		from("liquid_template", map[string]any{"liquid_template": "{{ record['age'] }}"}, "birthday"),
	))
	silent := map[string]any{"from": map[string]any{"type": "column", "data": "name"}, "to": "first_name", "sync_null_values": false}
	require.Equal(t, false, w.kept(with(silent)).at("data.mappings.2.sync_null_values"))
	require.Contains(t, w.refused(map[string]any{"mappings": []any{key, from("column", "no_such_column", "last_name")}}), "mappings[1].from.data")
	require.Equal(t, "email", a.at("data.mappings.0.from.data"))
	require.Equal(t, true, a.at("data.mappings.0.is_primary_identifier"))
	require.Equal(t, false, a.at("data.mappings.1.is_primary_identifier"))
	require.Equal(t, "Ms", a.at("data.mappings.2.from.data.value"))
	require.Equal(t, "text", a.at("data.mappings.2.from.data.basic_type"))
	require.Equal(t, "{{ record['name'] | upcase }}", a.at("data.mappings.3.from.data.liquid_template"), "a bare string is shown as an object")
	for _, property := range []string{"lookup_object", "lookup_field", "generate_field", "preserve_values", "sync_null_values", "operation", "array_field", "field_type", "follow_source_type", "position"} {
		require.True(t, a.has("data.mappings.0."+property), property)
	}
	require.Equal(t, true, a.at("data.mappings.0.sync_null_values"))

	require.Contains(t, w.refused(with(from("column", "nobody", "first_name"))), "mappings[2].from.data")
	account := w.do("GET", fmt.Sprintf("/destinations/%d/objects/account", w.dest), w.key, nil).want(200)
	require.Equal(t, false, account.at("data.allow_custom_fields"))
	require.Contains(t, w.refused(map[string]any{
		"destination_attributes": map[string]any{"connection_id": w.dest, "object": "account"},
		"mappings":               []any{map[string]any{"from": map[string]any{"type": "column", "data": "email"}, "to": "domain", "is_primary_identifier": true}, from("column", "age", "no_such_field"), from("column", "name", "name")},
	}), "mappings[1].to")
	require.Contains(t, w.refused(with(from("constant_value", map[string]any{"value": 1, "basic_type": "text"}, "first_name"))), "mappings[2].from.data.value")
	require.Contains(t, w.refused(with(from("liquid_template", "{% if %}", "first_name"))), "mappings[2].from.data")
	second := maps.Clone(name)
	second["is_primary_identifier"] = true
	require.NotEmpty(t, w.refused(map[string]any{"mappings": []any{key, second}}), "two identifiers")
	require.NotEmpty(t, w.refused(map[string]any{"mappings": []any{second}}), "a field that may not identify")
	require.NotEmpty(t, w.refused(map[string]any{"mappings": []any{name}}), "no identifier")

	salesforce := w.emulated("salesforce").id("data.id")
	lookup := from("column", "name", "AccountId")
	lookup["lookup_object"], lookup["lookup_field"] = "Account", "External_ID__c"
	contact := w.do("GET", fmt.Sprintf("/destinations/%d/objects/Contact", salesforce), w.key, nil).want(200)
	var reference, identifier string
	for _, f := range contact.at("data.fields").([]any) {
		field := f.(map[string]any)
		if field["lookup_object"] == "Account" {
			reference = field["full_name"].(string)
		}
		if field["can_be_upsert_key"] == true && identifier == "" {
			identifier = field["full_name"].(string)
		}
	}
	lookup["to"] = reference
	mappings := []any{map[string]any{"from": map[string]any{"type": "column", "data": "email"}, "to": identifier, "is_primary_identifier": true}, lookup}
	for _, f := range contact.at("data.fields").([]any) {
		field := f.(map[string]any)
		if field["required_for_mapping"] == true && field["full_name"] != identifier {
			mappings = append(mappings, from("column", "name", field["full_name"].(string)))
		}
	}
	at := map[string]any{"connection_id": salesforce, "object": "Contact"}
	a = w.kept(map[string]any{"destination_attributes": at, "mappings": mappings})
	require.Equal(t, "Account", a.at("data.mappings.1.lookup_object"))
	require.Equal(t, "External_ID__c", a.at("data.mappings.1.lookup_field"))
	lookup["lookup_object"] = "Nothing"
	require.Contains(t, w.refused(map[string]any{"destination_attributes": at, "mappings": mappings}), "mappings[1].lookup_object")
}

func TestSyncAlerts(t *testing.T) {
	proves(t, "F-2.8-03", "F-2.8-04", "F-2.8-05", "F-2.8-06", "F-2.8-08", "F-2.8-09", "F-2.6-07", "F-2.6-30", "F-6-01", "F-2.6-22", "F-2.6-23", "F-2.6-24", "F-8-07")
	w := newSyncWorld(t)
	alert := func(typ, sendFor string, options any) map[string]any {
		return map[string]any{"type": typ, "send_for": sendFor, "should_send_recovery": true, "options": options}
	}
	alerts := func(all ...map[string]any) map[string]any { return map[string]any{"alert_attributes": all} }
	a := w.kept(alerts(
		alert("FailureAlertConfiguration", "every_time", nil),
		alert("InvalidRecordPercentAlertConfiguration", "first_time", map[string]any{"threshold": 10}),
		alert("FullSyncTriggerAlertConfiguration", "first_time", nil),
		alert("RecordCountDeviationAlertConfiguration", "first_time", map[string]any{"threshold": 20, "record_type": "records_failed", "run_count": 5}),
		alert("RuntimeAlertConfiguration", "first_time", map[string]any{"threshold": 30, "unit": "minutes", "start_type": "actual"}),
		alert("StatusAlertConfiguration", "first_time", map[string]any{"status_name": "completed"}),
	))
	require.Len(t, a.at("data.alert_attributes"), 6)
	require.Equal(t, "every_time", a.at("data.alert_attributes.0.send_for"))
	require.Nil(t, a.at("data.alert_attributes.0.options"))
	require.EqualValues(t, 10, a.id("data.alert_attributes.1.options.threshold"))
	ids := map[int64]bool{}
	for i := range 6 {
		ids[a.id(fmt.Sprintf("data.alert_attributes.%d.id", i))] = true
	}
	require.Len(t, ids, 6, "each alert has an id of its own")
	for _, bad := range []map[string]any{
		alert("PagerAlertConfiguration", "first_time", nil), alert("FailureAlertConfiguration", "sometimes", nil),
		alert("FailureAlertConfiguration", "first_time", map[string]any{"threshold": 1}),
		alert("InvalidRecordPercentAlertConfiguration", "first_time", map[string]any{"threshold": 101}),
		alert("InvalidRecordPercentAlertConfiguration", "first_time", nil),
		alert("RuntimeAlertConfiguration", "first_time", map[string]any{"threshold": 1, "unit": "days", "start_type": "actual"}),
		alert("StatusAlertConfiguration", "first_time", map[string]any{"status_name": "paused"}),
	} {
		require.NotEmpty(t, w.refused(alerts(bad)), bad)
	}
	defaults := w.kept(map[string]any{"failed_run_notifications_enabled": true})
	require.Len(t, defaults.at("data.alert_attributes"), 2)
	require.Equal(t, true, defaults.at("data.failed_record_notifications_enabled"))
	require.EqualValues(t, 75, defaults.id("data.failed_record_notifications_threshold_percent"))
	require.Empty(t, w.kept(alerts([]map[string]any{}...)).at("data.alert_attributes"))
	both := w.kept(map[string]any{"failed_run_notifications_enabled": true, "alert_attributes": []any{alert("FailureAlertConfiguration", "every_time", nil)}})
	require.Len(t, both.at("data.alert_attributes"), 1, "alert_attributes win over the deprecated fields")
	for _, percent := range []any{-1, 101, "many"} {
		require.Contains(t, w.refused(map[string]any{"failed_record_notifications_threshold_percent": percent}), "failed_record_notifications_threshold_percent")
	}
	path := fmt.Sprintf("/syncs/%d", a.id("data.id"))
	update := w.body(nil)
	require.Len(t, w.do("PATCH", path, w.key, update).want(200).at("data.alert_attributes"), 6, "left out they stay")
	unknown := alert("FailureAlertConfiguration", "first_time", nil)
	unknown["id"] = 999
	update["alert_attributes"] = []any{unknown}
	require.NotEmpty(t, w.do("PATCH", path, w.key, update).want(400).problems(), "an id that the sync does not have")
}
