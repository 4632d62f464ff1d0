package violation

import (
	"encoding/json"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// modesViolations break the rules of MOD: mode, triggers and alert settings (spec 2.6, 2.8).
func modesViolations() []violation { return append(modeViolations(), alertSettingViolations()...) }

// scheduleIn is that of a body; an empty one where there is none.
func scheduleIn(m map[string]any) map[string]any {
	return exchange.Inside(m, "mode", "triggers", "schedule")
}

// modeViolations change when a sync runs.
func modeViolations() []violation {
	broken := func(field string, is func(any) bool, other any) func(map[string]any) {
		return func(m map[string]any) {
			if value, there := scheduleIn(m)[field]; there && is(value) {
				scheduleIn(m)[field] = other
			}
		}
	}
	is := func(wanted any) func(any) bool { return func(v any) bool { return v == wanted } }
	return []violation{
		misshown("MOD-001", "the hour of a daily schedule is a string", readSync, func(m map[string]any) {
			if at := scheduleIn(m); at["frequency"] == api.FrequencyDaily && at["hour"] == json.Number("5") {
				at["hour"] = "5"
			}
		}),
		misshown("MOD-001.2", "the minute 0 of a daily schedule is not shown", readSync, broken("minute", is(json.Number("0")), nil)),
		misshown("MOD-002", "every quarter of an hour is shown as every hour", readSync, broken("frequency", is(api.FrequencyQuarterHourly), api.FrequencyHourly)),
		misshown("MOD-002.2", "the expression of a schedule is not shown", readSync, func(m map[string]any) { delete(scheduleIn(m), "cron_expression") }),
		misshown("MOD-002.3", "the day of a weekly schedule is shown as a number", readSync, broken("day", is("Tuesday"), 2)),
		misread("MOD-003", "an unknown frequency is taken for never", createSync, func(m map[string]any) {
			guessed("frequency", api.FrequencyNever, api.FrequencyNever, api.FrequencyContinuous, api.FrequencyQuarterHourly,
				api.FrequencyHourly, api.FrequencyDaily, api.FrequencyWeekly, api.FrequencyExpression)(scheduleIn(m))
		}),
		misread("MOD-003.2", "an unknown mode is taken for triggered", createSync, func(m map[string]any) {
			guessed("type", api.ModeTriggered, api.ModeLive)(exchange.Inside(m, "mode"))
		}),
		misshown("MOD-006", "of several triggers dbt_cloud is not shown", readSync, func(m map[string]any) { delete(exchange.Inside(m, "mode", "triggers"), "dbt_cloud") }),
		misshown("MOD-006.2", "of several triggers sync_sequence is not shown", readSync, func(m map[string]any) {
			delete(exchange.Inside(m, "mode", "triggers"), "sync_sequence")
		}),
		misshown("MOD-007", "a schedule is not shown beside a sequence without one", readSync, func(m map[string]any) {
			if triggers := exchange.Inside(m, "mode", "triggers"); triggers["sync_sequence"] != nil && scheduleIn(m)["frequency"] == api.FrequencyNever {
				delete(triggers, "schedule")
			}
		}),
		misread("MOD-008", "an update does not change the mode", changeSync, func(m map[string]any) {
			if scheduleIn(m)["frequency"] != nil {
				delete(m, "mode")
			}
		}),
		waved("MOD-009", "any source may be read live", "mode.type", "live needs a streaming source"),
		misread("MOD-010", "the older fields of the schedule are not read", createSync, func(m map[string]any) {
			for _, field := range []string{"schedule_frequency", "schedule_hour", "schedule_minute"} {
				delete(m, field)
			}
		}),
	}
}

// inAlerts changes each alert of a sync.
func inAlerts(change func(alert map[string]any)) func(map[string]any) {
	return func(sync map[string]any) {
		alerts, _ := sync["alert_attributes"].([]any)
		for _, one := range alerts {
			if alert, ok := one.(map[string]any); ok {
				change(alert)
			}
		}
	}
}

// ofInvalid changes alerts about invalid records.
func ofInvalid(change func(alert map[string]any)) func(map[string]any) {
	return inAlerts(func(alert map[string]any) {
		if alert["type"] == api.AlertInvalidRecordPercent {
			change(alert)
		}
	})
}

// alertSettingViolations change whom a sync tells of what.
func alertSettingViolations() []violation {
	return []violation{
		misshown("MOD-012", "an alert for each time is shown as one for the first time", readSync, ofInvalid(func(alert map[string]any) {
			if t := exchange.Inside(alert, "options")["threshold"]; t == json.Number("0") || t == json.Number("100") {
				alert["send_for"] = api.SendFirstTime
			}
		})),
		misread("MOD-012.2", "every new alert tells of recovery", createSync, inAlerts(func(alert map[string]any) {
			if alert["options"] == nil && alert["type"] == api.AlertFailure {
				alert["should_send_recovery"] = true
			}
		})),
		misshown("MOD-012.3", "a threshold of 30 is shown as a string", readSync, ofInvalid(func(alert map[string]any) {
			replaced("threshold", json.Number("30"), "30")(exchange.Inside(alert, "options"))
		})),
		misread("MOD-013", "a sync that names no alerts has none", createSync, func(m map[string]any) {
			if _, there := m["alert_attributes"]; !there {
				m["alert_attributes"] = []any{}
			}
		}),
		misshown("MOD-013.2", "the threshold of 75 is shown as 50", readSync, ofInvalid(func(alert map[string]any) {
			replaced("threshold", json.Number("75"), 50)(exchange.Inside(alert, "options"))
		})),
		misread("MOD-014", "an empty list of alerts is taken for none sent", createSync, func(m map[string]any) {
			if alerts, ok := m["alert_attributes"].([]any); ok && len(alerts) == 0 {
				delete(m, "alert_attributes")
			}
		}),
		misread("MOD-016", "an update does not take alerts away", changeSync, func(m map[string]any) {
			if alerts, ok := m["alert_attributes"].([]any); ok && len(alerts) == 0 {
				delete(m, "alert_attributes")
			}
		}),
		misread("MOD-016.2", "an update keeps the default threshold", changeSync, ofInvalid(func(alert map[string]any) {
			replaced("threshold", json.Number("40"), 75)(exchange.Inside(alert, "options"))
		})),
		misshown("MOD-017", "alerts have no ids", readSync, inAlerts(func(alert map[string]any) { delete(alert, "id") })),
		misread("MOD-017.2", "every update makes new alerts", changeSync, inAlerts(func(alert map[string]any) { delete(alert, "id") })),
		misread("MOD-019", "alerts about run times are refused", createSync, inAlerts(replaced("type", api.AlertRuntime, "Runtime"))),
		misshown("MOD-019.2", "the status of an alert is not shown", readSync, inAlerts(func(alert map[string]any) {
			delete(exchange.Inside(alert, "options"), "status_name")
		})),
	}
}
