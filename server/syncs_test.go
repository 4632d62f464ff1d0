package server

import (
	"fmt"
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
