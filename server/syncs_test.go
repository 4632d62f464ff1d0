package server

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

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
	must(fmt.Sscanf(a.at("data.label").(string), "writer %d", &winner))(t)
	require.True(t, won[winner])
	require.Equal(t, winner%2 == 0, a.at("data.advanced_configuration.allow_empty_source"))
}

// TestDeprecatedAlertsCanBeChanged: by themselves, as long as the alerts are
// those that they have made; alert_attributes win wherever a client uses them
// (spec 2.6).
func TestDeprecatedAlertsCanBeChanged(t *testing.T) {
	proves(t, "F-2.6-30")
	w, id := newKept(t, map[string]any{"failed_record_notifications_threshold_percent": 20})
	update := func(changes map[string]any) (alerts []string) {
		for _, a := range w.do("PATCH", fmt.Sprintf("/syncs/%d", id), w.key, w.body(changes)).want(200).objects("data.alert_attributes") {
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

// TestDeprecationsAreMarked: what is older works, and its reply has the header (spec 9).
func TestDeprecationsAreMarked(t *testing.T) {
	proves(t, "F-9-02", "F-9-03", "F-9-04")
	w := newSyncWorld(t)
	mark := `^@\d+$`
	model := w.do("POST", fmt.Sprintf("/sources/%d/models", w.source), w.key, map[string]any{"name": "m", "query": "SELECT 1 AS one"}).want(201)
	require.Regexp(t, mark, model.header.Get("Deprecation"))
	for field, value := range map[string]any{
		"failed_run_notifications_enabled":              false,
		"failed_record_notifications_enabled":           false,
		"failed_record_notifications_threshold_percent": 10,
		"high_water_mark_attributes":                    nil,
	} {
		made := w.do("POST", "/syncs", w.key, w.body(map[string]any{field: value})).want(200)
		require.Regexp(t, mark, made.header.Get("Deprecation"), field)
		shown := w.do("GET", fmt.Sprintf("/syncs/%d", made.id("data.sync_id")), w.key, nil)
		require.Equal(t, fmt.Sprint(value), fmt.Sprint(shown.at("data."+field)))
	}
	require.Empty(t, w.do("POST", "/syncs", w.key, w.body(nil)).want(200).header.Get("Deprecation"))
}

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

// newKept is a world with a sync.
func newKept(t testing.TB, changes map[string]any, change ...func(*Config)) (w *syncWorld, id int64) {
	w = newSyncWorld(t, change...)
	return w, w.kept(changes).id("data.id")
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
		"mappings":               []any{column("name", "name", false)},
	}
	maps.Copy(out, changes)
	return out
}

// TestSettingsThatExcludeEachOther: a form of names without all properties, and the
// mapping of records in a live sync of a streaming database (spec 2.6).
func TestSettingsThatExcludeEachOther(t *testing.T) {
	proves(t, "F-2.6-14", "F-2.6-17")
	w := newSyncWorld(t)
	require.Contains(t, w.refused(map[string]any{"field_normalization": "snake_case"}), "field_normalization")
	database := w.sourceOf("materialize", map[string]any{"host": "db.example.com", "port": 6875, "database": "materialize", "user": "reader", "password": "p"}).id("data.id")
	table := w.do("GET", fmt.Sprintf("/sources/%d/objects?order=asc", database), w.key, nil).want(200).at("data.0")
	require.Contains(t, w.refused(map[string]any{
		"source_attributes":    map[string]any{"connection_id": database, "object": table},
		"mode":                 map[string]any{"type": "live"},
		"sync_behavior_family": "mapRecords",
	}), "sync_behavior_family")
}

// settingThatFits is a setting with a body of a sync that may have it, and one that may not.
type settingThatFits struct {
	row         string
	takes, bars map[string]any
	field       string
}

func (w *syncWorld) fits(settings []settingThatFits) {
	w.t.Helper()
	for _, one := range settings {
		w.kept(one.takes)
		problems := w.refused(one.bars)
		require.Len(w.t, problems, 1, "%s: %v", one.row, problems)
		require.Contains(w.t, problems, one.field, one.row)
	}
}

// TestSettingsOfOneOperation: what is for one operation, one kind of object or one kind
// of source alone is refused everywhere else (spec 2.6, 4.1).
func TestSettingsOfOneOperation(t *testing.T) {
	proves(t, "F-2.6-16", "F-4.1-04", "F-4.1-05", "F-4.1-06")
	w := newSyncWorld(t)
	stream := w.newTopicSource()
	topic := w.do("POST", fmt.Sprintf("/sources/%d/topics", stream), w.key, map[string]any{"name": "t", "sample_message": map[string]any{"email": "a", "name": "b"}}).want(201).id("data.id")
	of := func(name string, value any) map[string]any { return map[string]any{name: value} }
	events := of("sync_behavior_family", "activateEvents")
	w.fits([]settingThatFits{
		{"F-2.6-16", map[string]any{
			"source_attributes": map[string]any{"connection_id": stream, "object": map[string]any{"type": "topic", "id": topic}},
			"mode":              map[string]any{"type": "live"}, "sync_behavior_family": "activateEvents",
		}, events, "sync_behavior_family"},
		{"F-4.1-04", w.spreadsheet(of("field_order", "mapping_order")), of("field_order", "mapping_order"), "field_order"},
		{"F-4.1-05", w.spreadsheet(of("historical_sync_operation", "skip_current_records")), of("historical_sync_operation", "skip_current_records"), "historical_sync_operation"},
		{"F-4.1-06", map[string]any{"operation": "mirror", "mirror_strategy": "upload_and_swap"}, of("mirror_strategy", "upload_and_swap"), "mirror_strategy"},
	})
}

// TestMappingsThatDoNotFit are refused with their place (spec 2.7, 4.2).
func TestMappingsThatDoNotFit(t *testing.T) {
	proves(t, "F-2.7-10", "F-4.2-06")
	w := newSyncWorld(t)
	email, name := column("email", "email", true), column("name", "last_name", false)
	account := func(to string) map[string]any {
		return map[string]any{
			"destination_attributes": map[string]any{"connection_id": w.dest, "object": "account"},
			"mappings":               []any{column("email", "domain", true), column("name", "name", false), column("name", to, false)},
		}
	}
	mappings := func(all ...any) map[string]any { return map[string]any{"mappings": all} }
	w.fits([]settingThatFits{
		{"F-2.7-10", mappings(email, name), mappings(email, column("nobody", "last_name", false)), "mappings[1].from.data"},
		{"F-2.7-10", account("industries"), account("no_such_field"), "mappings[2].to"},
		{"F-4.2-06", mappings(email, name), mappings(column("email", "email", false), column("name", "last_name", true)), "mappings[1].to"},
	})
}

// TestMembersOfAMapping: the further ones are kept, and have a value where none was
// given (spec 2.7).
func TestMembersOfAMapping(t *testing.T) {
	proves(t, "F-2.7-09")
	w := newSyncWorld(t)
	shown := w.kept(map[string]any{"mappings": []any{
		column("email", "email", true), column("name", "last_name", false, map[string]any{"sync_null_values": false}),
	}})
	for i, nulls := range []bool{true, false} {
		at := fmt.Sprintf("data.mappings.%d.", i)
		require.Equal(t, nulls, shown.at(at+"sync_null_values"))
		require.Equal(t, int64(i), shown.id(at+"position"))
		for _, member := range []string{"array_field", "generate_field", "preserve_values", "follow_source_type"} {
			require.Equal(t, false, shown.at(at+member), member)
		}
		for _, member := range []string{"lookup_object", "lookup_field", "operation", "field_type"} {
			require.True(t, shown.has(at+member), member)
			require.Nil(t, shown.at(at+member), member)
		}
	}
}

// TestMembersOfAnAlert: each has the four, and takes the options of its type and the
// words of the specification alone (spec 2.8).
func TestMembersOfAnAlert(t *testing.T) {
	proves(t, "F-2.8-03", "F-2.8-04", "F-2.8-05", "F-2.8-06")
	w := newSyncWorld(t)
	alert := func(typ, sendFor string, options any) map[string]any {
		return map[string]any{"alert_attributes": []any{map[string]any{"type": typ + "AlertConfiguration", "send_for": sendFor, "should_send_recovery": true, "options": options}}}
	}
	threshold := func(percent any) map[string]any { return map[string]any{"threshold": percent} }
	for _, one := range []map[string]any{alert("Failure", "first_time", nil), alert("InvalidRecordPercent", "every_time", threshold(10))} {
		want := one["alert_attributes"].([]any)[0].(map[string]any)
		shown := w.kept(one).at("data.alert_attributes.0").(map[string]any)
		delete(shown, "id")
		require.Equal(t, fmt.Sprint(want), fmt.Sprint(shown))
	}
	w.fits([]settingThatFits{
		{"F-2.8-04", alert("Failure", "first_time", nil), alert("Failure", "first_time", threshold(1)), "alert_attributes[0].options.threshold"},
		{"F-2.8-05", alert("InvalidRecordPercent", "first_time", threshold(100)), alert("InvalidRecordPercent", "first_time", threshold(101)), "alert_attributes[0].options.threshold"},
		{"F-2.8-05", alert("InvalidRecordPercent", "first_time", threshold(0)), alert("InvalidRecordPercent", "first_time", nil), "alert_attributes[0].options"},
		{"F-2.8-06", alert("Failure", "every_time", nil), alert("Failure", "sometimes", nil), "alert_attributes[0].send_for"},
	})
}

// TestValidateOnlyIsAFlag: nothing is kept with it; left out it is false (spec 2.6).
func TestValidateOnlyIsAFlag(t *testing.T) {
	proves(t, "F-2.6-21")
	w := newSyncWorld(t)
	path := fmt.Sprintf("/syncs/%d", w.kept(nil).id("data.id"))
	for _, one := range []struct {
		changes map[string]any
		label   string
	}{
		{map[string]any{"label": "First", "validate_only": true}, "Customers"},
		{map[string]any{"label": "Second", "validate_only": false}, "Second"},
		{map[string]any{"label": "Third"}, "Third"},
	} {
		shown := w.do("PATCH", path, w.key, w.body(one.changes)).want(200)
		require.False(t, shown.has("data.validate_only"), "it is no property of a sync")
		require.Equal(t, one.label, w.do("GET", path, w.key, nil).want(200).at("data.label"))
	}
	require.Contains(t, w.refused(map[string]any{"validate_only": 1}), "validate_only")
}
