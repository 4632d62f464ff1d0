package violation

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
)

// carriesOut is a violation on the way to destinations.
func carriesOut(id, changes string, c carryFunc, also ...Also) violation {
	return violation{Violation{ID: id, Changes: changes, Also: also}, func(*Service) seams { return seams{carry: c} }}
}

// editsCalls changes the calls of one method.
func editsCalls(method string, change func(*sentCall)) carryFunc {
	return func(o *sentCall, next func(*sentCall) (*http.Response, error)) (*http.Response, error) {
		if o.method == method {
			change(o)
		}
		return next(o)
	}
}

// triesFirst sends a changed call first, and the right one where the destination
// refuses that: so the run goes on.
func triesFirst(method string, change func(*sentCall)) carryFunc {
	return func(o *sentCall, next func(*sentCall) (*http.Response, error)) (*http.Response, error) {
		if o.method != method {
			return next(o)
		}
		changed := *o
		changed.r = o.r.Clone(o.ctx)
		var own json.RawMessage
		changed.envelope(func(e *envelope) { own, e.ID = e.ID, json.RawMessage(`"f`+string(e.ID[1:])) })
		change(&changed)
		resp, err := next(&changed)
		refused := true // until the reply tells another thing
		resp, err = rewrite(resp, err, func(m map[string]any) {
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
	results, _ := memberObject(reply, "result")["record_results"].([]any)
	return slices.ContainsFunc(results, func(r any) bool { return memberObject(r)["success"] != true })
}

// envelope is a request with its members in the published order.
type envelope struct {
	JSONRPC json.RawMessage `json:"jsonrpc,omitempty"`
	Method  json.RawMessage `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	ID      json.RawMessage `json:"id,omitempty"`
	Version json.RawMessage `json:"api_version,omitempty"` // is not in the protocol
}

// envelope changes the request and keeps the order of its members, which edit
// does not.
func (o *sentCall) envelope(change func(*envelope)) {
	var e envelope
	if json.Unmarshal(o.body, &e) != nil {
		return
	}
	change(&e)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(e) == nil {
		o.body = bytes.TrimSpace(out.Bytes())
	}
}

// params changes the parameters of the request.
func (o *sentCall) params(change func(map[string]any)) {
	o.envelope(func(e *envelope) { e.Params = editJSON(e.Params, change) })
}

// memberObject goes down in a decoded object; nil where there is none.
func memberObject(in any, path ...string) map[string]any {
	for _, name := range path {
		m, _ := in.(map[string]any)
		in = m[name]
	}
	m, _ := in.(map[string]any)
	return m
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
			triesFirst(rpc.MethodGetSyncSpeed, func(o *sentCall) { o.envelope(func(e *envelope) { e.JSONRPC = nil }) }), members),
		carriesOut("CALL-001.2", "get_sync_speed is first sent with params null",
			triesFirst(rpc.MethodGetSyncSpeed, func(o *sentCall) { o.envelope(func(e *envelope) { e.Params = raw("null") }) }),
			Also{"CALL-006", "null is no empty object"}),
		carriesOut("CALL-001.3", "get_sync_speed is first sent as a batch of JSON-RPC",
			triesFirst(rpc.MethodGetSyncSpeed, func(o *sentCall) { o.body = slices.Concat([]byte{'['}, o.body, []byte{']'}) })),
		carriesOut("CALL-001.4", "get_sync_speed is first sent as a notification",
			triesFirst(rpc.MethodGetSyncSpeed, func(o *sentCall) { o.envelope(func(e *envelope) { e.ID = nil }) }), members),
		carriesOut("CALL-001.5", "list_objects is first tried with PUT",
			triesFirst(rpc.MethodListObjects, func(o *sentCall) { o.r.Method = http.MethodPut })),
		{Violation{ID: "CALL-002", Changes: "all batches are sent with the id of the first, and the answer gets back its own"}, func(*Service) seams {
			return seams{carry: sameID}
		}},
		carriesOut("CALL-003", "list_fields goes to a path of its own below the URL",
			editsCalls(rpc.MethodListFields, func(o *sentCall) { o.r.URL = o.r.URL.JoinPath(rpc.MethodListFields) })),
		carriesOut("CALL-004", "list_objects is sent with the member api_version",
			editsCalls(rpc.MethodListObjects, func(o *sentCall) { o.envelope(func(e *envelope) { e.Version = raw("1") }) })),
		carriesOut("CALL-005", "the members of list_objects are sorted by their names",
			editsCalls(rpc.MethodListObjects, func(o *sentCall) { o.edit(func(map[string]any) {}) })),
		carriesOut("CALL-018", "the method ping is called before list_objects", pings),
	}
}

// sameID sends every batch with one id; the caller does not notice.
func sameID(o *sentCall, next func(*sentCall) (*http.Response, error)) (*http.Response, error) {
	if o.method != rpc.MethodSyncBatch {
		return next(o)
	}
	var own json.RawMessage
	o.envelope(func(e *envelope) { own, e.ID = e.ID, json.RawMessage(`"1"`) })
	resp, err := next(o)
	return rewrite(resp, err, func(m map[string]any) { m["id"] = own })
}

func pings(o *sentCall, next func(*sentCall) (*http.Response, error)) (*http.Response, error) {
	if o.method == rpc.MethodListObjects {
		ping := *o
		ping.envelope(func(e *envelope) {
			e.Method, e.ID = json.RawMessage(`"ping"`), json.RawMessage(`"f`+string(e.ID[1:]))
		})
		if resp, err := next(&ping); err == nil {
			_ = resp.Body.Close()
		}
	}
	return next(o)
}

func paramsViolations() []violation {
	plan := func(change func(map[string]any)) func(*sentCall) {
		return func(o *sentCall) { o.params(func(params map[string]any) { change(memberObject(params, "sync_plan")) }) }
	}
	params := func(change func(map[string]any)) func(*sentCall) {
		return func(o *sentCall) { o.params(change) }
	}
	schema := func(change func(name string, field map[string]any)) func(*sentCall) {
		return plan(func(plan map[string]any) {
			for name, field := range memberObject(plan, "schema") {
				change(name, memberObject(field))
			}
		})
	}
	return []violation{
		carriesOut("CALL-006", "get_sync_speed is first sent with a sync plan",
			triesFirst(rpc.MethodGetSyncSpeed, params(func(m map[string]any) { m["sync_plan"] = map[string]any{"operation": "upsert"} }))),
		carriesOut("CALL-006.2", "test_connection is sent with the version of the protocol",
			triesFirst(rpc.MethodTestConnection, params(func(m map[string]any) { m["api_version"] = 1 }))),
		carriesOut("CALL-007", "list_fields names the object without its label",
			triesFirst(rpc.MethodListFields, params(func(m map[string]any) { delete(memberObject(m, "object"), "label") }))),
		carriesOut("CALL-007.2", "supported_operations names the object by a string",
			triesFirst(rpc.MethodSupportedOperations, params(func(m map[string]any) { m["object"] = memberObject(m, "object")["object_api_name"] }))),
		carriesOut("CALL-008", "batches have the member batch_size beside plan and records",
			triesFirst(rpc.MethodSyncBatch, params(func(m map[string]any) { m["batch_size"] = 3 }))),
		carriesOut("CALL-009", "plans have the member label",
			triesFirst(rpc.MethodSyncBatch, plan(func(m map[string]any) { m["label"] = "" }))),
		carriesOut("CALL-009.2", "the object of a plan has no label",
			triesFirst(rpc.MethodSyncBatch, plan(func(m map[string]any) { delete(memberObject(m, "object"), "label") }))),
		carriesOut("CALL-010", "sync_id of batches of less than ten records is sent as a string",
			triesFirst(rpc.MethodSyncBatch, fewRecords(func(m map[string]any) {
				plan := memberObject(m, "sync_plan")
				plan["sync_id"] = jsonText(plan["sync_id"])
			}))),
		carriesOut("CALL-010.2", "sync_run_id is the number of a queue",
			triesFirst(rpc.MethodSyncBatch, plan(func(m map[string]any) { m["sync_run_id"] = 1_000_000_007 }))),
		carriesOut("CALL-011", "the schema has a field that is not mapped",
			triesFirst(rpc.MethodSyncBatch, plan(func(m map[string]any) {
				field := rpc.Field{APIName: "synced_at", Label: "Synced at", Type: rpc.TypeDateTime, Createable: true}
				memberObject(m, "schema")["synced_at"] = map[string]any{"active_identifier": false, "field": field}
			}))),
		carriesOut("CALL-011.2", "fields of the schema have the member position",
			triesFirst(rpc.MethodSyncBatch, schema(func(_ string, f map[string]any) { f["position"] = 1 }))),
		carriesOut("CALL-012", "fields of the schema lose updateable",
			triesFirst(rpc.MethodSyncBatch, schema(func(_ string, f map[string]any) { delete(memberObject(f, "field"), "updateable") }))),
		carriesOut("CALL-012.2", "the type of text fields is called text in the schema",
			triesFirst(rpc.MethodSyncBatch, schema(func(_ string, f map[string]any) { memberObject(f, "field")["type"] = "text" }))),
		carriesOut("CALL-013", "every field of the schema of batches of less than ten records is an active identifier",
			triesFirst(rpc.MethodSyncBatch, fewRecords(func(m map[string]any) {
				for _, f := range memberObject(m, "sync_plan", "schema") {
					memberObject(f)["active_identifier"] = true
				}
			}))),
		carriesOut("CALL-013.2", "fields that are no identifier have no active_identifier",
			triesFirst(rpc.MethodSyncBatch, schema(func(name string, f map[string]any) {
				if f["active_identifier"] != true {
					delete(f, "active_identifier")
				}
			})), Also{"CALL-011", "a field of the schema has one member of two"}),
	}
}

// jsonText is a value as JSON.
func jsonText(v any) string {
	text, _ := json.Marshal(v) // it came out of JSON
	return string(text)
}

// fewRecords changes the parameters of a batch of less than ten records: what the
// destination refuses is sent twice, which larger batches need not show as well.
func fewRecords(change func(map[string]any)) func(*sentCall) {
	return func(o *sentCall) {
		o.params(func(m map[string]any) {
			if list, _ := m["records"].([]any); len(list) < 10 {
				change(m)
			}
		})
	}
}

func batchViolations() []violation {
	records := func(change func([]any) []any) carryFunc {
		return editsCalls(rpc.MethodSyncBatch, func(o *sentCall) {
			o.params(func(m map[string]any) {
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
		carriesOut("CALL-015", "records of batches of less than ten carry the number of their row", triesFirst(rpc.MethodSyncBatch, fewRecords(func(m map[string]any) {
			for i, r := range m["records"].([]any) {
				memberObject(r)["_row"] = i
			}
		}))),
		carriesOut("CALL-016", "batches of inserts have the operation upsert", editsCalls(rpc.MethodSyncBatch, func(o *sentCall) {
			o.params(func(m map[string]any) {
				if plan := memberObject(m, "sync_plan"); plan["operation"] == rpc.OperationInsert {
					plan["operation"] = rpc.OperationUpsert
				}
			})
		})),
		{Violation{ID: "CALL-017", Changes: "only the first batch of a run has the label of the object"}, func(*Service) seams {
			var known sync.Map
			return seams{carry: editsCalls(rpc.MethodSyncBatch, func(o *sentCall) {
				if _, again := known.LoadOrStore(jsonText(o.param("sync_plan", "sync_run_id")), true); again {
					o.params(func(m map[string]any) { memberObject(m, "sync_plan", "object")["label"] = "" })
				}
			})}
		}},
	}
}

func transportViolations() []violation {
	header := func(name, value string) func(*sentCall) {
		return func(o *sentCall) { o.r.Header.Set(name, value) }
	}
	return []violation{
		carriesOut("CALL-019", "batches are first sent as a form",
			triesFirst(rpc.MethodSyncBatch, header("Content-Type", "application/x-www-form-urlencoded"))),
		carriesOut("CALL-020", "batches are sent in chunks", editsCalls(rpc.MethodSyncBatch, func(o *sentCall) { o.chunked = true })),
		carriesOut("CALL-021", "get_sync_speed is first sent compressed",
			triesFirst(rpc.MethodGetSyncSpeed, func(o *sentCall) {
				o.r.Header.Set("Content-Encoding", "gzip")
				o.body = gzipped(o.body)
			}), Also{"CALL-001", "a compressed body is no JSON"}),
		carriesOut("CALL-022", "batches are sent without a User-Agent", editsCalls(rpc.MethodSyncBatch, header("User-Agent", ""))),
		carriesOut("CALL-023", "list_fields does not ask for compressed replies",
			editsCalls(rpc.MethodListFields, func(o *sentCall) { o.r.Header.Del("Accept-Encoding") })),
		carriesOut("CALL-024", "a reply in gzip is not decoded", undecoded("gzip")),
		carriesOut("CALL-025", "a reply in deflate is not decoded", undecoded("deflate")),
		carriesOut("CALL-026", "every call has a connection of its own", func(o *sentCall, next func(*sentCall) (*http.Response, error)) (*http.Response, error) {
			o.r.Close = true
			return next(o)
		}),
		carriesOut("CALL-027", "get_sync_speed is sent without the headers of the connection",
			editsCalls(rpc.MethodGetSyncSpeed, func(o *sentCall) {
				for name := range o.r.Header {
					if !slices.Contains(ownHeaders, name) {
						o.r.Header.Del(name)
					}
				}
			})),
		{Violation{ID: "CALL-028", Changes: "cookies of a destination are kept and sent back"}, func(*Service) seams {
			return seams{carry: cookies()}
		}},
		carriesOut("CALL-029", "a redirect is followed", followed),
	}
}

// ownHeaders are those that every call has.
var ownHeaders = []string{
	"User-Agent", "Content-Type", "Accept-Encoding", "Accept", "Connection", "Keep-Alive", "Authorization",
}

func gzipped(body []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(body) // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

// undecoded hides from the client that a reply is compressed.
func undecoded(encoding string) carryFunc {
	return func(o *sentCall, next func(*sentCall) (*http.Response, error)) (*http.Response, error) {
		resp, err := next(o)
		if err == nil && resp.Header.Get("Content-Encoding") == encoding {
			resp.Header.Del("Content-Encoding")
		}
		return resp, err
	}
}

// cookies keeps the latest cookies of every URL.
func cookies() carryFunc {
	var jar sync.Map
	return func(o *sentCall, next func(*sentCall) (*http.Response, error)) (*http.Response, error) {
		place := o.r.URL.String()
		if kept, ok := jar.Load(place); ok {
			for _, c := range kept.([]*http.Cookie) {
				o.r.AddCookie(c)
			}
		}
		resp, err := next(o)
		if err == nil && len(resp.Cookies()) > 0 {
			jar.Store(place, resp.Cookies())
		}
		return resp, err
	}
}

func followed(o *sentCall, next func(*sentCall) (*http.Response, error)) (*http.Response, error) {
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
	o.r.URL, o.r.Host = to, to.Host
	return next(o)
}
