package server

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

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
