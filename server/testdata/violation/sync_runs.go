package violation

import (
	"net/http"
	"strings"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// syncRunsViolations break the rules of RUN: executions of syncs (spec 2.9).
func syncRunsViolations() []violation {
	return append(runShownViolations(), runActionViolations()...)
}

// runShownViolations change how a run is read, by its id and in the list.
func runShownViolations() []violation {
	shown := func(id, changes string, change func(map[string]any)) violation {
		return breaks(id, changes, seams{tell: func(a *exchange.Answer) {
			if (a.Is("GET /sync_runs/*") || a.Is("GET /syncs/*/sync_runs")) && a.Status < http.StatusBadRequest {
				a.Data(change)
			}
		}})
	}
	at := func(status string, change func(map[string]any)) func(map[string]any) {
		return func(m map[string]any) {
			if m["status"] == status {
				change(m)
			}
		}
	}
	return []violation{
		shown("RUN-001", "canceled is a number", replaced("canceled", false, 0)),
		shown("RUN-001.2", "full_sync is a number where a run was not full", replaced("full_sync", false, 0)),
		shown("RUN-001.3", "scheduled_execution_time is in seconds", func(m map[string]any) { m["scheduled_execution_time"] = 1772616600 }),
		shown("RUN-001.4", "updated_at has no time zone", func(m map[string]any) {
			m["updated_at"] = strings.TrimSuffix(exchange.Text(m["updated_at"]), "Z")
		}),
		shown("RUN-002", "records_processed is a string", func(m map[string]any) { m["records_processed"] = exchange.Text(m["records_processed"]) }),
		shown("RUN-002.2", "source_record_deletes is left out", func(m map[string]any) { delete(m, "source_record_deletes") }),
		shown("RUN-002.3", "records_invalid is null", func(m map[string]any) { m["records_invalid"] = nil }),
		shown("RUN-003", "the reason of a run is a word", func(m map[string]any) { m["sync_trigger_reason"] = "manual" }),
		shown("RUN-003.2", "the reason of a run has no detail", func(m map[string]any) { delete(exchange.Inside(m, "sync_trigger_reason"), "ui_detail") }),
		misworded("RUN-005", "a run is answered with the status ok", "GET /sync_runs/*", api.StatusSuccess, "ok"),
		shown("RUN-005.2", "sync_id is that of the sync that was made next", func(m map[string]any) {
			n, _ := exchange.Int(m["sync_id"])
			m["sync_id"] = n + 1
		}),
		breaks("RUN-006", "a run that is not there is answered as an empty one", seams{tell: func(a *exchange.Answer) {
			if a.Is("GET /sync_runs/*") && a.Status == http.StatusNotFound {
				a.Status, a.Body = http.StatusOK, []byte(`{"status":"success","data":{}}`)
			}
		}}),
		shown("RUN-007", "a run at work is preparing", replaced("status", api.RunWorking, "preparing")),
		shown("RUN-008", "a run at work has no step", at(api.RunWorking, func(m map[string]any) { m["current_step"] = nil })),
		shown("RUN-010", "the step of a completed run stays", at(api.RunCompleted, func(m map[string]any) { m["current_step"] = "Running sync" })),
		shown("RUN-010.2", "the message of a completed run is empty", at(api.RunCompleted, func(m map[string]any) { m["error_message"] = "" })),
		shown("RUN-011", "a failed run has no code", at(api.RunFailed, func(m map[string]any) { m["error_code"] = nil })),
		shown("RUN-011.2", "a failed run has no message", at(api.RunFailed, func(m map[string]any) { m["error_message"] = "" })),
		shown("RUN-011.3", "a failed run has no detail", at(api.RunFailed, func(m map[string]any) { delete(m, "error_detail") })),
		misshown("RUN-015", "the list of runs has no counters", "GET /syncs/*/sync_runs", func(m map[string]any) { delete(m, "records_updated") }),
		breaks("RUN-015.2", "the list of runs has the latest only", seams{tell: func(a *exchange.Answer) {
			if a.Is("GET /syncs/*/sync_runs") {
				a.Edit(func(m map[string]any) {
					if runs, ok := m["data"].([]any); ok && len(runs) > 1 {
						m["data"] = runs[:1]
					}
				})
			}
		}}),
	}
}

// runActionViolations change how runs are started and ended.
func runActionViolations() []violation {
	return []violation{
		misworded("RUN-004", "a triggered sync is answered as queued", "POST /syncs/*/trigger", api.StatusSuccess, "queued"),
	}
}
