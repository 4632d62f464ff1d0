package violation

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// carriesOut is a violation on the way to destinations.
func carriesOut(id, changes string, c exchange.Carry, also ...Also) violation {
	return breaks(id, changes, seams{carry: c}, also...)
}

// editsCalls changes the calls of one method.
func editsCalls(method string, change func(*exchange.Call)) exchange.Carry {
	return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		if o.Method == method {
			change(o)
		}
		return next(o)
	}
}

// triesFirst sends a changed call first, and the right one where the destination
// refuses that: so the run goes on.
func triesFirst(method string, change func(*exchange.Call)) exchange.Carry {
	return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		if o.Method != method {
			return next(o)
		}
		changed := *o
		changed.HTTP = o.HTTP.Clone(o.Context)
		var own json.RawMessage
		changed.Envelope(func(e *exchange.Envelope) { own, e.ID = e.ID, json.RawMessage(`"f`+string(e.ID[1:])) })
		change(&changed)
		resp, err := next(&changed)
		refused := true // until the reply tells another thing
		resp, err = exchange.Rewrite(resp, err, func(m map[string]any) {
			refused, m["id"] = m["error"] != nil || someRefused(m), own
		})
		if err == nil && !refused {
			return resp, nil
		}
		if resp != nil {
			_ = resp.Body.Close()
		}
		return next(o)
	}
}

// someRefused reports whether a reply to a batch refuses a record.
func someRefused(reply map[string]any) bool {
	results, _ := exchange.Object(reply, "result")["record_results"].([]any)
	return slices.ContainsFunc(results, func(r any) bool { return exchange.Object(r)["success"] != true })
}

// requestViolations break the envelope of calls to destinations and their HTTP
// (spec 4.2).
func requestViolations() []violation {
	return slices.Concat(envelopeViolations(), paramsViolations(), batchViolations(), transportViolations())
}

func envelopeViolations() []violation {
	raw := func(text string) json.RawMessage { return json.RawMessage(text) }
	members := Also{"CALL-004", "the request has not its four members"}
	return []violation{
		carriesOut("CALL-001", "get_sync_speed is first sent without jsonrpc",
			triesFirst(rpc.MethodGetSyncSpeed, func(o *exchange.Call) { o.Envelope(func(e *exchange.Envelope) { e.JSONRPC = nil }) }), members),
		carriesOut("CALL-001.2", "get_sync_speed is first sent with params null",
			triesFirst(rpc.MethodGetSyncSpeed, func(o *exchange.Call) { o.Envelope(func(e *exchange.Envelope) { e.Params = raw("null") }) }),
			Also{"CALL-006", "null is no empty object"}),
		carriesOut("CALL-001.3", "get_sync_speed is first sent as a batch of JSON-RPC",
			triesFirst(rpc.MethodGetSyncSpeed, func(o *exchange.Call) { o.Body = slices.Concat([]byte{'['}, o.Body, []byte{']'}) })),
		carriesOut("CALL-001.4", "get_sync_speed is first sent as a notification",
			triesFirst(rpc.MethodGetSyncSpeed, func(o *exchange.Call) { o.Envelope(func(e *exchange.Envelope) { e.ID = nil }) }), members),
		carriesOut("CALL-001.5", "list_objects is first tried with PUT",
			triesFirst(rpc.MethodListObjects, func(o *exchange.Call) { o.HTTP.Method = http.MethodPut })),
		{Violation{ID: "CALL-002", Changes: "all batches are sent with the id of the first, and the answer gets back its own"}, func(*Service) seams {
			return seams{carry: sameID}
		}},
		carriesOut("CALL-003", "list_fields goes to a path of its own below the URL",
			editsCalls(rpc.MethodListFields, func(o *exchange.Call) { o.HTTP.URL = o.HTTP.URL.JoinPath(rpc.MethodListFields) })),
		carriesOut("CALL-004", "list_objects is sent with the member api_version",
			editsCalls(rpc.MethodListObjects, func(o *exchange.Call) { o.Envelope(func(e *exchange.Envelope) { e.Version = raw("1") }) })),
		carriesOut("CALL-005", "the members of list_objects are sorted by their names",
			editsCalls(rpc.MethodListObjects, func(o *exchange.Call) { o.Edit(func(map[string]any) {}) })),
		carriesOut("CALL-018", "the method ping is called before list_objects", pings),
	}
}

// sameID sends every batch with one id; the caller does not notice.
func sameID(o *exchange.Call, next exchange.Next) (*http.Response, error) {
	if o.Method != rpc.MethodSyncBatch {
		return next(o)
	}
	var own json.RawMessage
	o.Envelope(func(e *exchange.Envelope) { own, e.ID = e.ID, json.RawMessage(`"1"`) })
	resp, err := next(o)
	return exchange.Rewrite(resp, err, func(m map[string]any) { m["id"] = own })
}

func pings(o *exchange.Call, next exchange.Next) (*http.Response, error) {
	if o.Method == rpc.MethodListObjects {
		ping := *o
		ping.Envelope(func(e *exchange.Envelope) {
			e.Method, e.ID = json.RawMessage(`"ping"`), json.RawMessage(`"f`+string(e.ID[1:]))
		})
		if resp, err := next(&ping); err == nil {
			_ = resp.Body.Close()
		}
	}
	return next(o)
}

func paramsViolations() []violation {
	plan := func(change func(map[string]any)) func(*exchange.Call) {
		return func(o *exchange.Call) {
			o.Params(func(params map[string]any) { change(exchange.Object(params, "sync_plan")) })
		}
	}
	params := func(change func(map[string]any)) func(*exchange.Call) {
		return func(o *exchange.Call) { o.Params(change) }
	}
	schema := func(change func(name string, field map[string]any)) func(*exchange.Call) {
		return plan(func(plan map[string]any) {
			for name, field := range exchange.Object(plan, "schema") {
				change(name, exchange.Object(field))
			}
		})
	}
	return []violation{
		carriesOut("CALL-006", "get_sync_speed is first sent with a sync plan",
			triesFirst(rpc.MethodGetSyncSpeed, params(func(m map[string]any) { m["sync_plan"] = map[string]any{"operation": "upsert"} }))),
		carriesOut("CALL-006.2", "test_connection is sent with the version of the protocol",
			triesFirst(rpc.MethodTestConnection, params(func(m map[string]any) { m["api_version"] = 1 }))),
		carriesOut("CALL-007", "list_fields names the object without its label",
			triesFirst(rpc.MethodListFields, params(func(m map[string]any) { delete(exchange.Object(m, "object"), "label") }))),
		carriesOut("CALL-007.2", "supported_operations names the object by a string",
			triesFirst(rpc.MethodSupportedOperations, params(func(m map[string]any) { m["object"] = exchange.Object(m, "object")["object_api_name"] }))),
		carriesOut("CALL-008", "batches have the member batch_size beside plan and records",
			triesFirst(rpc.MethodSyncBatch, params(func(m map[string]any) { m["batch_size"] = 3 }))),
		carriesOut("CALL-010", "sync_id of batches of less than ten records is sent as a string",
			triesFirst(rpc.MethodSyncBatch, fewRecords(func(m map[string]any) {
				plan := exchange.Object(m, "sync_plan")
				plan["sync_id"] = exchange.JSON(plan["sync_id"])
			}))),
		carriesOut("CALL-010.2", "sync_run_id is the number of a queue",
			triesFirst(rpc.MethodSyncBatch, plan(func(m map[string]any) { m["sync_run_id"] = 1_000_000_007 }))),
		carriesOut("CALL-012", "fields of the schema lose updateable",
			triesFirst(rpc.MethodSyncBatch, schema(func(_ string, f map[string]any) { delete(exchange.Object(f, "field"), "updateable") }))),
		carriesOut("CALL-012.2", "the type of text fields is called text in the schema",
			triesFirst(rpc.MethodSyncBatch, schema(func(_ string, f map[string]any) { exchange.Object(f, "field")["type"] = "text" }))),
		carriesOut("CALL-013", "every field of the schema of batches of less than ten records is an active identifier",
			triesFirst(rpc.MethodSyncBatch, fewRecords(func(m map[string]any) {
				for _, f := range exchange.Object(m, "sync_plan", "schema") {
					exchange.Object(f)["active_identifier"] = true
				}
			}))),
		carriesOut("CALL-013.2", "fields that are no identifier have no active_identifier",
			triesFirst(rpc.MethodSyncBatch, schema(func(name string, f map[string]any) {
				if f["active_identifier"] != true {
					delete(f, "active_identifier")
				}
			}))),
	}
}

// fewRecords changes the parameters of a batch of less than ten records: what the
// destination refuses is sent twice, which larger batches need not show as well.
func fewRecords(change func(map[string]any)) func(*exchange.Call) {
	return func(o *exchange.Call) {
		o.Params(func(m map[string]any) {
			if list, _ := m["records"].([]any); len(list) < 10 {
				change(m)
			}
		})
	}
}

func batchViolations() []violation {
	records := func(change func([]any) []any) exchange.Carry {
		return editsCalls(rpc.MethodSyncBatch, func(o *exchange.Call) {
			o.Params(func(m map[string]any) {
				list, _ := m["records"].([]any)
				m["records"] = change(list)
			})
		})
	}
	return []violation{
		carriesOut("CALL-014", "the first record of a batch of more than 50 stands in it twice", records(func(list []any) []any {
			if len(list) > 50 {
				return append(list, list[0])
			}
			return list
		})),
		carriesOut("CALL-016", "batches of inserts have the operation upsert", editsCalls(rpc.MethodSyncBatch, func(o *exchange.Call) {
			o.Params(func(m map[string]any) {
				if plan := exchange.Object(m, "sync_plan"); plan["operation"] == rpc.OperationInsert {
					plan["operation"] = rpc.OperationUpsert
				}
			})
		})),
	}
}

func transportViolations() []violation {
	header := func(name, value string) func(*exchange.Call) {
		return func(o *exchange.Call) { o.HTTP.Header.Set(name, value) }
	}
	return []violation{
		carriesOut("CALL-019", "batches are first sent as a form",
			triesFirst(rpc.MethodSyncBatch, header("Content-Type", "application/x-www-form-urlencoded"))),
		carriesOut("CALL-022", "batches are sent without a User-Agent", editsCalls(rpc.MethodSyncBatch, header("User-Agent", ""))),
		carriesOut("CALL-024", "a reply in gzip is not decoded", undecoded("gzip")),
		carriesOut("CALL-026", "every call has a connection of its own", func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
			o.HTTP.Close = true
			return next(o)
		}),
		carriesOut("CALL-027", "get_sync_speed is sent without the headers of the connection",
			editsCalls(rpc.MethodGetSyncSpeed, func(o *exchange.Call) {
				for name := range o.HTTP.Header {
					if !slices.Contains(ownHeaders, name) {
						o.HTTP.Header.Del(name)
					}
				}
			})),
		carriesOut("CALL-029", "a redirect is followed", followed),
	}
}

// ownHeaders are those that every call has.
var ownHeaders = []string{
	"User-Agent", "Content-Type", "Accept-Encoding", "Accept", "Connection", "Keep-Alive", "Authorization",
}

// undecoded hides from the client that a reply is compressed.
func undecoded(encoding string) exchange.Carry {
	return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		resp, err := next(o)
		if err == nil && resp.Header.Get("Content-Encoding") == encoding {
			resp.Header.Del("Content-Encoding")
		}
		return resp, err
	}
}

func followed(o *exchange.Call, next exchange.Next) (*http.Response, error) {
	resp, err := next(o)
	if err != nil || resp.StatusCode < 300 || resp.StatusCode > 399 {
		return resp, err
	}
	to, err := resp.Location()
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	o.HTTP.URL, o.HTTP.Host = to, to.Host
	return next(o)
}
