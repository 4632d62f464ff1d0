package violation

import (
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// arrivalsViolations break the rules of ARR: what a destination has after real
// runs (spec 2.6).
func arrivalsViolations() []violation {
	const order, history = "field_order", "historical_sync_operation"
	return []violation{
		pretended("ARR-001", "columns are always written by name", order, swapped(order, api.OrderMapping, api.OrderAlphabetical)),
		misread("ARR-001.2", "an append sync that asks for no order has that of its mappings", createSync, func(m map[string]any) {
			if _, there := m[order]; !there && m["operation"] == api.OperationAppend {
				m[order] = api.OrderMapping
			}
		}),
		pretended("ARR-001.3", "columns are always written in the order of the mappings", order, swapped(order, api.OrderAlphabetical, api.OrderMapping)),
		engineBreaks("ARR-002", "an append sync sends a record again when it has changed", func(d *executor.Deviations) { d.AppendsChanges = true }),
		engineBreaks("ARR-002.2", "an append sync sends every record in every run", func(d *executor.Deviations) { d.AppendsAgain = true },
			Also{"ARR-003", "what was skipped is among them"}),
		engineBreaks("ARR-003", "what the first run of an append sync skips is sent by the next one", func(d *executor.Deviations) { d.ForgetsSkipped = true }),
		pretended("ARR-003.2", "skipped history is sent all the same", history, swapped(history, api.HistorySkip, api.HistoryBackfill)),
		engineBreaks("ARR-004", "rows at the new high-water mark are sent at once, and none of that moment later", func(d *executor.Deviations) { d.SendsTop = true }),
		engineBreaks("ARR-004.2", "rows at the high-water mark are never sent", func(d *executor.Deviations) { d.LeavesMark = true }),
		engineBreaks("ARR-005", "upload_and_swap removes only what the sync itself has sent", func(d *executor.Deviations) { d.SwapsOwn = true }),
		misshown("ARR-006", "mappings that the service has made are not shown", readSync, func(m map[string]any) {
			if mappings, _ := m["mappings"].([]any); m["field_behavior"] == api.BehaviorAllProperties && len(mappings) > 2 {
				m["mappings"] = mappings[:2]
			}
		}),
		engineBreaks("ARR-006.2", "a new column is sent with later changes of a record, and not for all", func(d *executor.Deviations) { d.KeepsMapping = true }),
		breaks("ARR-006.3", "a run that sends everything for a new column is not called a full sync", seams{tell: func(a *exchange.Answer) {
			if a.Is("GET /sync_runs/*") {
				a.Data(func(run map[string]any) { run["full_sync"] = false })
			}
		}}),
		pretended("ARR-007", "a live sync that maps records waits to be triggered", "paused", func(m map[string]any) bool {
			if exchange.Inside(m, "mode")["type"] != api.ModeLive || m["sync_behavior_family"] != api.FamilyMapRecords || m["paused"] != false {
				return false
			}
			m["paused"] = true
			return true
		}),
		engineBreaks("ARR-007.2", "of several messages of an identifier the first one counts", func(d *executor.Deviations) { d.KeepsFirst = true }),
		pretended("ARR-008", "events of the same identifier are folded into one record", "sync_behavior_family",
			swapped("sync_behavior_family", api.FamilyActivateEvents, api.FamilyMapRecords)),
		engineBreaks("ARR-008.2", "every run reads the topic from its first message", func(d *executor.Deviations) { d.ReadsAnew = true }),
	}
}
