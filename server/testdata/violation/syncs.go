package violation

import (
	"encoding/json"
	"html"
	"net/http"
	"slices"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// Calls that violations of syncs look at.
const (
	readSync   = "GET /syncs/*"
	createSync = "POST /syncs"
	changeSync = "PATCH /syncs/*"
)

// syncsViolations break the rules of SYN: the resource of a sync (spec 2.6).
func syncsViolations() []violation {
	return slices.Concat(shownSyncViolations(), updatedSyncViolations(), enumSyncViolations(), deprecatedSyncViolations())
}

// shownSyncViolations change how a sync is read and made.
func shownSyncViolations() []violation {
	return []violation{
		misshown("SYN-001", "the id of a sync is a string", readSync, func(m map[string]any) { m["id"] = exchange.Text(m["id"]) }),
		also(misshown("SYN-001.2", "the status of a sync is a number", readSync, func(m map[string]any) { m["status"] = 1 }),
			Also{"SYN-047", "a number is none of the three words"}),
		misshown("SYN-001.3", "created_at of a sync is in seconds", readSync, func(m map[string]any) { m["created_at"] = 1772616600 }),
		misshown("SYN-001.4", "updated_at of a sync has no time zone", readSync, func(m map[string]any) { m["updated_at"] = "2026-03-04T09:30:00" }),
		misworded("SYN-002", "a sync is answered with the status ok", readSync, api.StatusSuccess, "ok"),
		misworded("SYN-003", "a new sync is answered with the status success", createSync, api.StatusCreated, api.StatusSuccess),
		misshown("SYN-004", "a mirror is shown as an upsert", readSync, replaced("operation", api.OperationMirror, api.OperationUpsert)),
		misread("SYN-004.2", "a new insert is stored as an upsert", createSync, replaced("operation", api.OperationInsert, api.OperationUpsert)),
		misread("SYN-006", "an operation in capitals is taken", createSync, replaced("operation", "UPSERT", api.OperationUpsert)),
		misread("SYN-006.2", "the operation delete is taken for a mirror", createSync, replaced("operation", "delete", api.OperationMirror)),
		misshown("SYN-007", "the destination's connection_id is a string", readSync, func(m map[string]any) {
			at := exchange.Inside(m, "destination_attributes")
			at["connection_id"] = exchange.Text(at["connection_id"])
		}),
		misshown("SYN-007.2", "the destination object is shown with its number", readSync, func(m map[string]any) {
			exchange.Inside(m, "destination_attributes")["object"] = 1
		}),
		misshown("SYN-007.3", "a dataset is shown under an internal name", readSync, func(m map[string]any) {
			replaced("type", api.ObjectDataset, "business_object_source")(exchange.Inside(m, "source_attributes", "object"))
		}),
		misshown("SYN-008", "a table is shown without its catalog", readSync, func(m map[string]any) {
			delete(exchange.Inside(m, "source_attributes", "object"), "table_catalog")
		}),
		misread("SYN-009", "a label is cut to 50 characters", createSync, func(m map[string]any) {
			if label, ok := m["label"].(string); ok && len([]rune(label)) > 50 {
				m["label"] = string([]rune(label)[:50])
			}
		}),
		misread("SYN-009.2", "a label is escaped for a page", createSync, func(m map[string]any) {
			if label, ok := m["label"].(string); ok {
				m["label"] = html.EscapeString(label)
			}
		}),
		misread("SYN-009.3", "an update does not change the label", changeSync, func(m map[string]any) { delete(m, "label") }),
		misshown("SYN-010", "the list of syncs has no mappings", "GET /syncs", func(m map[string]any) { delete(m, "mappings") }),
		misshown("SYN-010.2", "the list of syncs has ids as strings", "GET /syncs", func(m map[string]any) { m["id"] = exchange.Text(m["id"]) }),
		misworded("SYN-046", "a deleted sync is answered with the status success", "DELETE /syncs/*", api.StatusDeleted, api.StatusSuccess),
		breaks("SYN-046.2", "a sync that is not there is answered as an empty one", seams{tell: func(a *exchange.Answer) {
			if a.Is(readSync) && a.Status == http.StatusNotFound {
				a.Status, a.Body = http.StatusOK, []byte(`{"status":"success","data":{}}`)
			}
		}}),
		misshown("SYN-047", "the status of a sync never changes", readSync, func(m map[string]any) { m["status"] = "ready" }),
		misshown("SYN-047.2", "a sync whose last run failed is up to date", readSync, replaced("status", "failing", "up to date")),
	}
}

// misworded changes the status word of an answer.
func misworded(id, changes, pattern string, from, to any) violation {
	return breaks(id, changes, seams{tell: func(a *exchange.Answer) {
		if a.Is(pattern) && a.Status < http.StatusBadRequest {
			a.Edit(replaced("status", from, to))
		}
	}})
}

// updatedSyncViolations change what an update and a validation do.
func updatedSyncViolations() []violation {
	return []violation{
		misworded("SYN-011", "an update is answered with the status success", changeSync, api.StatusUpdated, api.StatusSuccess),
		misshown("SYN-011.2", "the answer to an update does not have what was changed", changeSync, func(m map[string]any) { delete(m, "paused") }),
		{Violation{ID: "SYN-012", Changes: "an update may hold any field alone"}, func(s *Service) seams {
			*s.PartialSyncUpdate = true
			return seams{}
		}},
		misread("SYN-012.2", "an update without an operation makes an upsert", changeSync, func(m map[string]any) {
			if _, there := m["operation"]; !there {
				m["operation"] = api.OperationUpsert
			}
		}),
		misread("SYN-013", "an update needs a label", changeSync, needed("label")),
		misread("SYN-013.2", "an update needs alerts", changeSync, needed("alert_attributes")),
		misread("SYN-014", "an update without paused wakes the sync", changeSync, func(m map[string]any) {
			if _, there := m["paused"]; !there {
				m["paused"] = false
			}
		}),
		misread("SYN-014.2", "an update without a label takes it away", changeSync, func(m map[string]any) {
			if _, there := m["label"]; !there {
				m["label"] = nil
			}
		}),
		misread("SYN-015", "validate_only of a new sync is not read", createSync, func(m map[string]any) { delete(m, "validate_only") }),
		misread("SYN-016", "validate_only of an update is not read", changeSync, func(m map[string]any) { delete(m, "validate_only") }),
		misread("SYN-042", "an update does not wake a paused sync", changeSync, func(m map[string]any) {
			if m["paused"] == false {
				delete(m, "paused")
			}
		}),
		misshown("SYN-043", "the match rate is a text", changeSync, func(m map[string]any) { exchange.Inside(m, "match_rate_details")["match_rate"] = "70%" }),
		misshown("SYN-043.2", "the match rate has no time", changeSync, func(m map[string]any) {
			delete(exchange.Inside(m, "match_rate_details"), "match_rate_last_calculated_at")
		}),
		misshown("SYN-043.3", "an update does not tell the match rate", changeSync, func(m map[string]any) { delete(m, "match_rate_details") }),
		kept("SYN-044", "created_at is taken from the request", "created_at", never),
		kept("SYN-044.2", "the status is taken from the request", "status", never),
	}
}

func never(map[string]any) bool { return false }

// needed makes a body invalid that does not have a field.
func needed(field string) func(map[string]any) {
	return func(m map[string]any) {
		if _, there := m[field]; !there {
			m[field] = 7
		}
	}
}

// enumSyncViolations change the fields that have a list of values.
func enumSyncViolations() []violation {
	return []violation{
		misshown("SYN-019", "the order of fields is always shown as alphabetical", readSync, replaced("field_order", api.OrderMapping, api.OrderAlphabetical)),
		misread("SYN-019.2", "an unknown order of fields is taken for the default", createSync, guessed("field_order", api.OrderAlphabetical, api.OrderMapping)),
		misshown("SYN-021", "history is always shown as backfilled", readSync, replaced("historical_sync_operation", api.HistorySkip, api.HistoryBackfill)),
		misread("SYN-021.2", "an unknown word about history is taken for the default", createSync,
			guessed("historical_sync_operation", api.HistoryBackfill, api.HistorySkip)),
		pretended("SYN-023", "history is sent although it was to be skipped", "historical_sync_operation", swapped("historical_sync_operation", api.HistorySkip, api.HistoryBackfill)),
		pretended("SYN-023.2", "history is skipped although it was to be sent", "historical_sync_operation", swapped("historical_sync_operation", api.HistoryBackfill, api.HistorySkip)),
		misshown("SYN-024", "a mirror that sends nulls is shown as one that deletes", readSync, replaced("mirror_strategy", api.MirrorNulls, api.MirrorDeletes)),
		misread("SYN-024.2", "an unknown strategy is taken for the default", createSync, guessed("mirror_strategy", api.MirrorDeletes, api.MirrorNulls, api.MirrorSwap)),
		misshown("SYN-026", "a sync of all properties is shown as one of some", readSync, replaced("field_behavior", api.BehaviorAllProperties, api.BehaviorSpecificProperties)),
		misread("SYN-026.2", "an unknown field behavior is taken for the default", createSync, guessed("field_behavior", api.BehaviorSpecificProperties, api.BehaviorAllProperties)),
		misshown("SYN-027", "camel case is shown as snake case", readSync, replaced("field_normalization", "camel_case", "snake_case")),
		misread("SYN-027.2", "an unknown form of names is taken for the default", createSync,
			guessed("field_normalization", "match_source_names", "start_case", "lower_case", "upper_case", "camel_case", "snake_case")),
		{Violation{ID: "SYN-028", Changes: "a sync keeps sending the fields of its first batch"}, func(*Service) seams { return seams{carry: firstFields()} }},
		breaks("SYN-029", "snake case does not see where a word ends", seams{carry: renamed("beep_boop", "beepboop")}),
		breaks("SYN-029.2", "start case begins only the first word with a capital", seams{carry: renamed("Beep Boop", "Beep boop")}),
		misshown("SYN-030", "event-based activation is shown as the mapping of records", readSync, replaced("sync_behavior_family", api.FamilyActivateEvents, api.FamilyMapRecords)),
		misread("SYN-030.2", "an unknown family is taken for the mapping of records", createSync, guessed("sync_behavior_family", api.FamilyMapRecords, api.FamilyActivateEvents)),
	}
}

func swapped(field string, from, to any) func(map[string]any) bool {
	return func(m map[string]any) bool {
		if m[field] != from {
			return false
		}
		m[field] = to
		return true
	}
}

// firstFields sends only the fields that the first batch of a sync had.
func firstFields() exchange.Carry {
	var mu sync.Mutex
	first := map[string]map[string]bool{}
	return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		if o.Method != rpc.MethodSyncBatch {
			return next(o)
		}
		mu.Lock()
		defer mu.Unlock()
		o.Edit(func(body map[string]any) {
			params := exchange.Inside(body, "params")
			schema := exchange.Inside(params, "sync_plan", "schema")
			id := exchange.Text(exchange.Inside(params, "sync_plan")["sync_id"])
			if first[id] == nil {
				first[id] = map[string]bool{}
				for name := range schema {
					first[id][name] = true
				}
			}
			exchange.EachObject(params["records"], func(record map[string]any) {
				for name := range schema {
					if !first[id][name] {
						delete(record, name)
					}
				}
			})
		})
		return next(o)
	}
}

// renamed sends a field under another name.
func renamed(from, to string) exchange.Carry {
	move := func(m map[string]any) {
		if v, there := m[from]; there {
			delete(m, from)
			m[to] = v
		}
	}
	return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		if o.Method == rpc.MethodSyncBatch {
			o.Edit(func(body map[string]any) {
				params := exchange.Inside(body, "params")
				schema := exchange.Inside(params, "sync_plan", "schema")
				replaced("field_api_name", from, to)(exchange.Inside(schema, from, "field"))
				move(schema)
				exchange.EachObject(params["records"], move)
			})
		}
		return next(o)
	}
}

// deprecatedSyncViolations change high-water marks, advanced configuration and
// what is deprecated (spec 9).
func deprecatedSyncViolations() []violation {
	const mark, percent = "high_water_mark_attribute", "failed_record_notifications_threshold_percent"
	return []violation{
		misshown("SYN-033", "the high-water mark is shown in its deprecated form alone", readSync, func(m map[string]any) { m[mark] = nil }),
		misshown("SYN-034", "the deprecated form of the high-water mark is not shown", readSync, func(m map[string]any) { m["high_water_mark_attributes"] = nil }),
		kept("SYN-035", "a high-water mark is stored and not read", mark, never),
		misshown("SYN-036", "the threshold of failed records is shown as 50 by default", readSync, replaced(percent, json.Number("75"), 50)),
		misshown("SYN-036.2", "failed_run_notifications_enabled is null by default", readSync, replaced("failed_run_notifications_enabled", true, nil)),
		misshown("SYN-036.3", "failed_record_notifications_enabled is false by default", readSync, replaced("failed_record_notifications_enabled", true, false)),
		misread("SYN-038", "a threshold above 100 is taken for 100", createSync, replaced(percent, json.Number("101"), 100)),
		misread("SYN-038.2", "a threshold below 0 is taken for 0", createSync, replaced(percent, json.Number("-1"), 0)),
		misread("SYN-039", "deprecated fields fill empty alerts", createSync, func(m map[string]any) {
			if alerts, ok := m["alert_attributes"].([]any); ok && len(alerts) == 0 && m["failed_run_notifications_enabled"] == true {
				delete(m, "alert_attributes")
			}
		}),
		misread("SYN-039.2", "the deprecated threshold wins over that of the alert", createSync, func(m map[string]any) {
			alerts, _ := m["alert_attributes"].([]any)
			for _, one := range alerts {
				alert, _ := one.(map[string]any)
				if options := exchange.Inside(alert, "options"); options["threshold"] != nil && m[percent] != nil {
					options["threshold"] = m[percent]
				}
			}
		}),
		misshown("SYN-040", "integers of the advanced configuration are strings", readSync, func(m map[string]any) {
			for name, value := range exchange.Inside(m, "advanced_configuration") {
				if n, ok := value.(json.Number); ok {
					exchange.Inside(m, "advanced_configuration")[name] = n.String()
				}
			}
		}),
		misshown("SYN-040.2", "the advanced configuration is not shown", readSync, func(m map[string]any) { m["advanced_configuration"] = map[string]any{} }),
	}
}
