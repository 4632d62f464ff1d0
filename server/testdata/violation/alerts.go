package violation

import (
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// alertsViolations break the rules of alerts (spec 2.8, 6).
func alertsViolations() []violation {
	return []violation{
		alertsAs("ALRT-001", "an alert without options is never looked at", func(a map[string]any) bool { return a["options"] != nil }),
		alertsAs("ALRT-002", "an alert of failures is sent every time", setAlert(api.AlertFailure, "send_for", api.SendEveryTime)),
		alertsAs("ALRT-003", "an alert of failures is sent the first time only", setAlert(api.AlertFailure, "send_for", api.SendFirstTime)),
		alertsAs("ALRT-004", "the recovery of a failure is never sent", setAlert(api.AlertFailure, "should_send_recovery", false)),
		alertsAs("ALRT-006", "the threshold of invalid records is taken for more than it is", setThreshold(65)),
		onSync("ALRT-009", "failed_run_notifications_enabled is ignored where it is true", func(y map[string]any) {
			if y["failed_run_notifications_enabled"] == true && y["alert_attributes"] == nil {
				y["failed_run_notifications_enabled"] = false
			}
		}),
		onSync("ALRT-011", "failed_record_notifications_threshold_percent is 90 where nothing is said", unsaidThreshold(90)),
		onSync("ALRT-011.2", "failed_record_notifications_threshold_percent is 25 where nothing is said", unsaidThreshold(25)),
		onSync("ALRT-012", "failed_run_notifications_enabled is looked at beside alert_attributes", func(y map[string]any) {
			if list, ok := y["alert_attributes"].([]any); ok && y["failed_run_notifications_enabled"] == true {
				y["alert_attributes"] = append(list, map[string]any{
					"type": api.AlertFailure, "send_for": api.SendFirstTime, "should_send_recovery": true, "options": nil,
				})
			}
		}),
		{Violation{ID: "ALRT-013", Changes: "the last of several notification_emails is left out"}, func(*Service) seams {
			return seams{ask: func(q *exchange.Request) {
				if !q.Is("POST /workspaces") {
					return
				}
				q.Edit(func(body map[string]any) {
					if list, ok := body["notification_emails"].([]any); ok && len(list) > 1 {
						body["notification_emails"] = list[:len(list)-1]
					}
				})
			}}
		}},
		alertsAs("ALRT-014", "alerts of the status are never looked at", notOf(api.AlertStatus)),
		alertsAs("ALRT-015", "alerts of full syncs are never looked at", notOf(api.AlertFullSyncTrigger)),
		alertsAs("ALRT-016", "alerts of counts that deviate are never looked at", notOf(api.AlertRecordCountDeviation)),
		onSync("ALRT-017", "a sync with several alerts also tells when it completes", func(y map[string]any) {
			if list, ok := y["alert_attributes"].([]any); ok && len(list) > 1 {
				y["alert_attributes"] = append(list, map[string]any{
					"type": api.AlertStatus, "send_for": api.SendEveryTime, "should_send_recovery": false, "options": map[string]any{"status_name": "completed"},
				})
			}
		}),
	}
}

// onSync changes the payload of a sync that is made.
func onSync(id, changes string, change func(map[string]any), also ...Also) violation {
	v := breaks(id, changes, seams{ask: func(q *exchange.Request) {
		if q.Is("POST /syncs") {
			q.Edit(change)
		}
	}})
	v.Also = also
	return v
}

// alertsAs changes each alert of a sync that is made; one for which keep says
// false is left out.
func alertsAs(id, changes string, keep func(map[string]any) bool) violation {
	return onSync(id, changes, func(y map[string]any) {
		list, ok := y["alert_attributes"].([]any)
		if !ok {
			return
		}
		kept := []any{}
		for _, one := range list {
			if alert, ok := one.(map[string]any); !ok || keep(alert) {
				kept = append(kept, one)
			}
		}
		y["alert_attributes"] = kept
	})
}

func setAlert(kind, field string, value any) func(map[string]any) bool {
	return func(a map[string]any) bool {
		if a["type"] == kind {
			a[field] = value
		}
		return true
	}
}

func notOf(kind string) func(map[string]any) bool {
	return func(a map[string]any) bool { return a["type"] != kind }
}

// setThreshold gives alerts of invalid records another threshold, where theirs is
// one that a person would choose.
func setThreshold(percent int64) func(map[string]any) bool {
	return func(a map[string]any) bool {
		options, _ := a["options"].(map[string]any)
		if n, ok := exchange.Int(options["threshold"]); ok && a["type"] == api.AlertInvalidRecordPercent && n >= 50 && n < 100 && (percent > 60) == (n < 60) {
			options["threshold"] = percent
		}
		return true
	}
}

func unsaidThreshold(percent int64) func(map[string]any) {
	return func(y map[string]any) {
		if y["failed_record_notifications_enabled"] == true && y["failed_record_notifications_threshold_percent"] == nil {
			y["failed_record_notifications_threshold_percent"] = percent
		}
	}
}
