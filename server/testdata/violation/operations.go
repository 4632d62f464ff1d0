package violation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// engineBreaks is a violation of how runs work.
func engineBreaks(id, changes string, engine func(*executor.Deviations), also ...Also) violation {
	return breaks(id, changes, seams{engine: engine}, also...)
}

// carrying is a violation on the way of calls to destinations, whose seam is made
// for each service.
func carrying(id, changes string, carry func(s *Service) exchange.Carry, also ...Also) violation {
	return violation{Violation{ID: id, Changes: changes, Also: also}, func(s *Service) seams { return seams{carry: carry(s)} }}
}

// batchEdit changes every batch on its way.
func batchEdit(change func(s *Service, o *exchange.Call)) func(s *Service) exchange.Carry {
	return func(s *Service) exchange.Carry {
		return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
			if o.Method == rpc.MethodSyncBatch {
				change(s, o)
			}
			return next(o)
		}
	}
}

// syncBehind is the sync that a batch belongs to.
func (s *Service) syncBehind(o *exchange.Call) *api.SyncConfig {
	number, _ := o.Param("sync_plan", "sync_id").(json.Number)
	id, _ := number.Int64()
	config := &api.SyncConfig{}
	_ = s.View(o.Context, func(tx *store.Tx) error {
		found, err := tx.EverySync(id-1, 1)
		if err == nil && len(found) == 1 && found[0].ID == id {
			config = &found[0].Config
		}
		return err
	})
	return config
}

// eachRecord changes the records of a batch.
func eachRecord(o *exchange.Call, change func(record map[string]any)) {
	exchange.InParams(o, func(params map[string]any) { exchange.EachObject(params["records"], change) })
}

// sentAs rewrites the operation of batches.
func sentAs(from, to string) func(s *Service) exchange.Carry {
	return batchEdit(func(_ *Service, o *exchange.Call) {
		if o.Param("sync_plan", "operation") == from {
			exchange.InPlan(o, func(plan map[string]any) { plan["operation"] = to })
		}
	})
}

// withoutNulls takes members that are null out of the records of a kind of sync.
func withoutNulls(operation string) func(s *Service) exchange.Carry {
	return batchEdit(func(s *Service, o *exchange.Call) {
		if s.syncBehind(o).Operation != operation {
			return
		}
		eachRecord(o, func(record map[string]any) {
			for name, value := range record {
				if value == nil {
					delete(record, name)
				}
			}
		})
	})
}

// operationsViolations break the rules of OPER: operations and strategies (spec 2.6, 4.2).
func operationsViolations() []violation {
	return []violation{
		engineBreaks("OPER-001", "an upsert sync never sends changes of a record that was taken", func(d *executor.Deviations) { d.UpsertsOnlyNew = true },
			Also{"OPER-014", "a difference is what it does not send"}, Also{"OPER-016", "a value that becomes NULL is a change"}),
		carrying("OPER-002", "an insert sync sends its batches with operation upsert", sentAs(rpc.OperationInsert, rpc.OperationUpsert),
			Also{"OPER-005", "an upsert does not skip what is there"}),
		carrying("OPER-004", "an update sync sends its batches with operation upsert", sentAs(rpc.OperationUpdate, rpc.OperationUpsert)),
		engineBreaks("OPER-005", "the first record that is refused ends the run", func(d *executor.Deviations) { d.EndsOnRefusal = true }),
		engineBreaks("OPER-006", "a mirror that updates and deletes sends no deletes in a run that has sent upserts", func(d *executor.Deviations) { d.KeepsGone = true }),
		carrying("OPER-008", "the first batch of a mirror comes after a delete of the same records", clearsFirst),
		engineBreaks("OPER-009", "a mirror that updates and sets to null sends deletes", func(d *executor.Deviations) { d.NullsDelete = true }),
		carrying("OPER-009.2", "a mirror leaves out what is NULL", withoutNulls(api.OperationMirror)),
		engineBreaks("OPER-010", "upload_and_swap sends the differences only", func(d *executor.Deviations) { d.SwapsDifferences = true }),
		breaks("OPER-011", "a mirror without a strategy gets the one that sets to null", seams{ask: func(q *exchange.Request) {
			if q.Is("POST /syncs") {
				q.Edit(func(body map[string]any) {
					if body["operation"] == api.OperationMirror && body["mirror_strategy"] == nil {
						body["mirror_strategy"] = api.MirrorNulls
					}
				})
			}
		}}),
		engineBreaks("OPER-014", "an upsert sync sends every row in every run", func(d *executor.Deviations) { d.SendsUnchanged = true }),
		carrying("OPER-015", "a field that is no longer mapped is sent as null", nullsForLost),
		carrying("OPER-016", "an upsert sync leaves out what is NULL", withoutNulls(api.OperationUpsert)),
		engineBreaks("OPER-017", "a row without an identifier is sent", func(d *executor.Deviations) { d.SendsNull = true }),
		engineBreaks("OPER-018", "an identifier that stands twice in the source is sent twice", func(d *executor.Deviations) { d.SendsCopies = true }),
		engineBreaks("OPER-019", "a mirror deletes a record whose identifier now stands twice in the source", func(d *executor.Deviations) { d.DeletesInvalid = true }),
		carrying("OPER-021", "what a mirror has deleted is never sent again, and counts as sent", neverBack),
		breaks("OPER-022", "append is taken as insert", seams{ask: func(q *exchange.Request) {
			if q.Is("POST /syncs") {
				q.Edit(func(body map[string]any) {
					if body["operation"] == api.OperationAppend {
						body["operation"] = api.OperationInsert
					}
				})
			}
		}}),
	}
}

// nullsForLost keeps the fields that a sync has ever sent in its batches.
func nullsForLost(*Service) exchange.Carry {
	var mu sync.Mutex
	schemas := map[any]map[string]any{}
	return batchEdit(func(_ *Service, o *exchange.Call) {
		schema, _ := o.Param("sync_plan", "schema").(map[string]any)
		id := o.Param("sync_plan", "sync_id")
		mu.Lock()
		before := schemas[id]
		if before == nil {
			schemas[id] = schema
		}
		mu.Unlock()
		for name, field := range before {
			if schema[name] != nil || o.Param("sync_plan", "operation") == rpc.OperationDelete {
				continue
			}
			exchange.InPlan(o, func(plan map[string]any) { plan["schema"].(map[string]any)[name] = field })
			eachRecord(o, func(record map[string]any) { record[name] = nil })
		}
	})(nil)
}

// neverBack drops records that were deleted before, and makes up their results.
func neverBack(*Service) exchange.Carry {
	var mu sync.Mutex
	gone := map[string]bool{}
	return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		if o.Method != rpc.MethodSyncBatch {
			return next(o)
		}
		made := []any{}
		exchange.InParams(o, func(params map[string]any) {
			kept := []any{}
			deletes := o.Param("sync_plan", "operation") == rpc.OperationDelete
			for _, r := range params["records"].([]any) {
				id := r.(map[string]any)["id"]
				key := fmt.Sprint(o.Param("sync_plan", "sync_id"), id)
				mu.Lock()
				gone[key] = gone[key] || deletes
				dropped := gone[key] && !deletes
				mu.Unlock()
				if dropped {
					made = append(made, map[string]any{"identifier": id, "success": true})
				} else {
					kept = append(kept, r)
				}
			}
			params["records"] = kept
		})
		resp, err := next(o)
		return exchange.RewriteResults(resp, err, func(results []any) []any { return append(results, made...) })
	}
}

// clearsFirst deletes what the first batch of a mirror is about to write.
func clearsFirst(s *Service) exchange.Carry {
	var mu sync.Mutex
	begun := map[any]bool{}
	return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		if o.Method != rpc.MethodSyncBatch || s.syncBehind(o).Operation != api.OperationMirror {
			return next(o)
		}
		mu.Lock()
		first := !begun[o.Param("sync_plan", "sync_id")]
		begun[o.Param("sync_plan", "sync_id")] = true
		mu.Unlock()
		if first {
			cleared := *o
			exchange.InPlan(&cleared, func(plan map[string]any) { plan["operation"] = rpc.OperationDelete })
			cleared.Edit(func(body map[string]any) { body["id"] = body["id"].(string) + "c" })
			if resp, err := next(&cleared); err == nil {
				_ = resp.Body.Close()
			}
		}
		return next(o)
	}
}
