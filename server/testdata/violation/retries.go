package violation

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// answersOf is a violation in which the answers to batches are read in another way.
func answersOf(id, changes string, change func(o *exchange.Call, results []any) []any, also ...Also) violation {
	return carrying(id, changes, func(*Service) exchange.Carry {
		return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
			if o.Method != rpc.MethodSyncBatch {
				return next(o)
			}
			resp, err := next(o)
			return exchange.RewriteResults(resp, err, func(results []any) []any { return change(o, results) })
		}
	}, also...)
}

// identifiersOf are the identifiers of a batch, by its plan, in their order.
func identifiersOf(o *exchange.Call) []any {
	var field string
	schema, _ := o.Param("sync_plan", "schema").(map[string]any)
	for name, of := range schema {
		if of.(map[string]any)["active_identifier"] == true {
			field = name
		}
	}
	var out []any
	records, _ := o.Param("records").([]any)
	for _, r := range records {
		out = append(out, r.(map[string]any)[field])
	}
	return out
}

// byIdentifier are results by the text of their identifiers.
func byIdentifier(results []any) map[any][]map[string]any {
	out := map[any][]map[string]any{}
	for _, r := range results {
		if result, ok := r.(map[string]any); ok {
			out[result["identifier"]] = append(out[result["identifier"]], result)
		}
	}
	return out
}

func taken(identifier any) map[string]any {
	return map[string]any{"identifier": identifier, "success": true}
}

// completed adds a success for each record without a result.
func completed(o *exchange.Call, results []any) []any {
	known := byIdentifier(results)
	for _, id := range identifiersOf(o) {
		if known[id] == nil {
			results = append(results, taken(id))
		}
	}
	return results
}

// inOrder takes the results for those of the records in their order, where they
// are as many and of the same records.
func inOrder(o *exchange.Call, results []any) []any {
	ids, known := identifiersOf(o), byIdentifier(results)
	if len(ids) != len(results) {
		return results
	}
	for _, id := range ids {
		if len(known[id]) != 1 {
			return results
		}
	}
	for i, r := range results {
		r.(map[string]any)["identifier"] = ids[i]
	}
	return results
}

// several changes the results of records that have more than one.
func several(change func(of []map[string]any) []map[string]any) func(*exchange.Call, []any) []any {
	return func(o *exchange.Call, results []any) []any {
		known, out := byIdentifier(results), []any{}
		for _, id := range identifiersOf(o) {
			of := known[id]
			if len(of) > 1 {
				of = change(of)
			}
			for _, result := range of {
				out = append(out, result)
			}
		}
		return out
	}
}

// retriesViolations break the rules of RTRY: what is sent again (spec 7.2).
func retriesViolations() []violation {
	return append([]violation{
		engineBreaks("RTRY-001", "a refused record is not sent again in the same run", func(d *executor.Deviations) { d.OneRound = true }),
		engineBreaks("RTRY-002", "a refused record is not sent again by later runs", func(d *executor.Deviations) { d.ForgetsRefused = true },
			Also{"RTRY-015", "the run that follows one that has failed is a later run"}),
		engineBreaks("RTRY-003", "all records of a batch are sent again in the run for one that was refused", func(d *executor.Deviations) { d.RetriesNeighbours = true }),
		answersOf("RTRY-004", "where some records have results, those without count as accepted", func(o *exchange.Call, results []any) []any {
			if len(results) == 0 || len(results) >= len(identifiersOf(o)) {
				return results
			}
			return completed(o, results)
		}),
		answersOf("RTRY-007", "results are taken for the records in their order", inOrder),
		answersOf("RTRY-008", "a success wins over a failure of the same record", several(func(of []map[string]any) []map[string]any {
			for _, result := range of {
				if result["success"] == true {
					return []map[string]any{result}
				}
			}
			return of
		})),
		engineBreaks("RTRY-011", "a batch that brought another status than 200 is not sent again in the same run", func(d *executor.Deviations) { d.BatchesOnce = true }),
		engineBreaks("RTRY-012", "a batch that keeps failing is not split", func(d *executor.Deviations) { d.NoSplit = true }),
		carrying("RTRY-014", "a batch whose connection ended without an answer counts as accepted", silenceIsConsent),
		engineBreaks("RTRY-015", "no run follows one that has failed", func(d *executor.Deviations) { d.NoAnotherRun = true }),
		engineBreaks("RTRY-016", "all waits before tries are one second long", func(d *executor.Deviations) { d.SteadyBackoff = true }),
	}, fullViolations()...)
}

// fullViolations are about full syncs and the history of runs.
func fullViolations() []violation {
	history := func(change func(record map[string]any)) seams {
		return seams{tell: func(a *exchange.Answer) {
			if a.Is("GET /sync_runs/*/records") {
				a.Data(change)
			}
		}}
	}
	return []violation{
		breaks("RTRY-017", "force_full_sync in the query of a trigger is not read", seams{ask: func(q *exchange.Request) {
			if q.Is("POST /syncs/*/trigger") {
				q.Query(func(values map[string][]string) { delete(values, "force_full_sync") })
			}
		}}),
		engineBreaks("RTRY-019", "another URL of the destination changes nothing for its syncs", func(d *executor.Deviations) { d.KeepsURL = true }),
		engineBreaks("RTRY-021", "a run that sends everything for another mapping is not called a full sync", func(d *executor.Deviations) { d.KeepsMapping = true }),
		breaks("RTRY-022", "every run is called a full sync", seams{tell: func(a *exchange.Answer) {
			if a.Is("GET /sync_runs/*") {
				a.Data(func(run map[string]any) { run["full_sync"] = true })
			}
		}}),
		breaks("RTRY-023", "the history shows no messages of records that a result has refused", history(func(record map[string]any) {
			if message, ok := record["status_message"].(string); ok && !strings.HasPrefix(message, "rpc error") {
				record["status_message"] = nil
			}
		})),
		breaks("RTRY-024", "the history cannot be asked for one status", seams{ask: func(q *exchange.Request) {
			if q.Is("GET /sync_runs/*/records") {
				q.Query(func(values map[string][]string) { delete(values, "status") })
			}
		}}),
		engineBreaks("RTRY-026", "get_sync_speed is not called again when it fails", func(d *executor.Deviations) { d.SpeedOnce = true }),
		engineBreaks("RTRY-027", "a refused delete is not sent again by later runs", func(d *executor.Deviations) { d.ForgetsDeletes = true }),
	}
}

// silenceIsConsent makes up an answer where none came.
func silenceIsConsent(*Service) exchange.Carry {
	return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		resp, err := next(o)
		if err == nil || o.Method != rpc.MethodSyncBatch {
			return resp, err
		}
		var body struct{ ID json.RawMessage }
		if json.Unmarshal(o.Body, &body) != nil {
			return resp, err
		}
		results, err := json.Marshal(completed(o, []any{}))
		if err != nil {
			return nil, err
		}
		text := `{"jsonrpc":"2.0","id":` + string(body.ID) + `,"result":{"record_results":` + string(results) + `}}`
		return answered(o.HTTP, text), nil
	}
}

// answered is an answer to a call that was never given.
func answered(r *http.Request, text string) *http.Response {
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Content-Type", "application/json")
	_, _ = recorder.WriteString(text)
	resp := recorder.Result()
	resp.Request = r
	return resp
}
