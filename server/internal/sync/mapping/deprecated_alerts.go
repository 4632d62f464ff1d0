package mapping

import (
	"reflect"
	"slices"

	"github.com/destkit/destkit/server/api"
)

// FollowDeprecated lets an update by the deprecated fields act on a sync whose
// alerts are still those that the service has made from these fields: otherwise
// the fields could never be changed, as alert_attributes take precedence (spec
// 2.6). before is the configuration that was stored, after the one with the
// payload laid over it, present its top-level keys. Alerts keep their ids.
func FollowDeprecated(before, after *api.SyncConfig, present map[string]bool) {
	deprecated := present["failed_run_notifications_enabled"] || present["failed_record_notifications_enabled"] ||
		present["failed_record_notifications_threshold_percent"]
	if !deprecated || present["alert_attributes"] || !madeByService(before) {
		return
	}
	fresh := DefaultAlerts(after)
	for i := range fresh {
		had := func(a api.Alert) bool { return a.Type == fresh[i].Type }
		if at := slices.IndexFunc(before.AlertAttributes, had); at >= 0 {
			fresh[i].ID = before.AlertAttributes[at].ID
		}
	}
	after.AlertAttributes = fresh
}

// madeByService reports whether the alerts are what the deprecated fields say.
func madeByService(c *api.SyncConfig) bool {
	return c.AlertAttributes != nil && slices.EqualFunc(c.AlertAttributes, DefaultAlerts(c), func(a, b api.Alert) bool {
		a.ID, b.ID = nil, nil
		return reflect.DeepEqual(a, b)
	})
}
