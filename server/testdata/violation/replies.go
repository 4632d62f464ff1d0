package violation

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// seenReply is a reply of a destination as a violation sees it, before the
// service does.
type seenReply struct {
	err    error // no reply, or a part of one
	status int   // 0: no reply
	kind   string
	body   []byte
	json   map[string]any // nil unless the body is one JSON object
	own    bool           // the id is that of the request
}

// has reports whether a member is there, even as null.
func (h *seenReply) has(name string) bool { _, there := h.json[name]; return there }

// well tells that a reply came whole and is an object with jsonrpc 2.0.
func (h *seenReply) well() bool {
	return h.err == nil && h.status == http.StatusOK && h.json["jsonrpc"] == rpc.Version
}

// bare tells that a reply has no error and a result that is an object.
func (h *seenReply) bare() bool { return !h.has("error") && exchange.Object(h.json, "result") != nil }

// onReply lets a violation look at every reply to one method, or to all with "";
// the response that it gives stands for the reply, nil leaves it.
func onReply(method string, look func(o *exchange.Call, h *seenReply) *http.Response) exchange.Carry {
	return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		resp, err := next(o)
		if method != "" && o.Method != method {
			return resp, err
		}
		h := &seenReply{err: err}
		if err == nil {
			h.status, h.kind = resp.StatusCode, resp.Header.Get("Content-Type")
			h.body, h.err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
		}
		d := json.NewDecoder(bytes.NewReader(h.body))
		d.UseNumber()
		if d.Decode(&h.json) != nil || d.More() {
			h.json = nil
		}
		o.Envelope(func(e *exchange.Envelope) { h.own = h.json["id"] != nil && exchange.JSON(h.json["id"]) == string(e.ID) })
		if other := look(o, h); other != nil {
			return other, nil
		}
		if err == nil {
			resp.Body = &replayed{bytes.NewReader(h.body), h.err}
		}
		return resp, err
	}
}

// replayed is a body once more, with the end that it had.
type replayed struct {
	*bytes.Reader
	end error
}

func (r *replayed) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err == io.EOF && r.end != nil {
		err = r.end
	}
	return n, err
}

func (r *replayed) Close() error { return nil }

// swallows counts wrong replies to a method as successes.
func swallows(method string, wrong func(*seenReply) bool) exchange.Carry {
	return onReply(method, func(o *exchange.Call, h *seenReply) *http.Response {
		if !wrong(h) {
			return nil
		}
		result := map[string]any{"success": true}
		if method == rpc.MethodSyncBatch {
			result = map[string]any{"record_results": allStored(o)}
		}
		return exchange.Reply(o, map[string]any{"result": result})
	})
}

// allStored are results that report success for every record of a batch.
func allStored(o *exchange.Call) []any {
	schema, _ := o.Param("sync_plan", "schema").(map[string]any)
	records, _ := o.Param("records").([]any)
	var out []any
	for name, field := range schema {
		if exchange.Object(field)["active_identifier"] != true {
			continue
		}
		for _, r := range records {
			out = append(out, map[string]any{"identifier": exchange.Object(r)[name], "success": true})
		}
	}
	return out
}

// The ways in which a reply is wrong that some client or other does not notice.
func neitherOfBoth(h *seenReply) bool { return h.well() && !h.has("result") && !h.has("error") }
func otherID(h *seenReply) bool       { return h.well() && !h.own && h.bare() }
func otherVersion(h *seenReply) bool {
	return h.err == nil && h.status == http.StatusOK && h.own && h.json["jsonrpc"] != rpc.Version && h.bare()
}
func noObject(h *seenReply) bool {
	return h.well() && h.has("result") && exchange.Object(h.json, "result") == nil
}
func resultAndError(h *seenReply) bool {
	return h.well() && h.has("error") && exchange.Object(h.json, "result") != nil
}
func noJSON(h *seenReply) bool {
	return h.err == nil && h.status == http.StatusOK && h.json == nil && !bytes.HasPrefix(h.body, []byte("["))
}
func badError(h *seenReply) bool {
	_, number := exchange.Object(h.json, "error")["code"].(json.Number)
	return h.well() && h.has("error") && !h.has("result") && !number
}

// repliesViolations break the rules of RPLY: replies that break the protocol (spec 7.2).
func repliesViolations() []violation {
	test, batch := rpc.MethodTestConnection, rpc.MethodSyncBatch
	return slices.Concat([]violation{
		carriesOut("RPLY-001", "a connection test without result and error has passed", swallows(test, neitherOfBoth)),
		carriesOut("RPLY-003", "the id of the reply to a connection test is not compared", swallows(test, otherID)),
		carriesOut("RPLY-004", "jsonrpc of the reply to a connection test is not looked at", swallows(test, otherVersion)),
		carriesOut("RPLY-005", "any result of a connection test is a success", swallows(test, noObject)),
		carriesOut("RPLY-006", "a connection test with result and error has passed", swallows(test, resultAndError)),
		carriesOut("RPLY-007", "a connection test has passed whatever the body says", swallows(test, noJSON)),
		carriesOut("RPLY-007.2", "a connection test is a success within an array", swallows(test, func(h *seenReply) bool {
			return h.err == nil && bytes.HasPrefix(h.body, []byte("["))
		})),
		carriesOut("RPLY-009", "a connection test has passed when no reply comes", swallows(test, func(h *seenReply) bool { return h.err != nil && h.status == 0 })),
		carriesOut("RPLY-013", "a malformed error of a connection test is dropped", swallows(test, badError)),
		carriesOut("RPLY-014", "a connection test has passed unless it says success: false", swallows(test, func(h *seenReply) bool {
			return h.well() && h.own && h.bare() && exchange.Object(h.json, "result")["success"] != false
		})),
		carriesOut("RPLY-021", "a batch is stored when its status is 200 and its reply no JSON", swallows(batch, noJSON)),
		carriesOut("RPLY-021.2", "a batch is stored when its reply has no error", swallows(batch, neitherOfBoth)),
		carriesOut("RPLY-021.3", "the id of the reply to a batch is not compared", swallows(batch, otherID)),
		carriesOut("RPLY-021.4", "jsonrpc of the reply to a batch is not looked at", swallows(batch, otherVersion)),
		carriesOut("RPLY-021.5", "any result of a batch is a success", swallows(batch, noObject)),
		carriesOut("RPLY-021.6", "the error beside the result of a batch is not looked at", swallows(batch, resultAndError)),
		carriesOut("RPLY-021.7", "a batch is stored when its result has no record_results", swallows(batch, func(h *seenReply) bool {
			_, list := exchange.Object(h.json, "result")["record_results"].([]any)
			return h.well() && h.bare() && !list
		})),
	}, shownViolations(), assumingViolations())
}

// shownViolations are about what a user hears of an error.
func shownViolations() []violation {
	// loses changes the error object of replies with status 200 and an id.
	loses := func(method string, change func(e map[string]any)) exchange.Carry {
		return onReply(method, func(o *exchange.Call, h *seenReply) *http.Response {
			e := exchange.Object(h.json, "error")
			if e == nil || !h.well() || !h.own {
				return nil
			}
			change(e)
			return exchange.Reply(o, map[string]any{"error": e})
		})
	}
	unreadable := func(o *exchange.Call) *http.Response {
		return exchange.Reply(o, map[string]any{"jsonrpc": "?"})
	}
	return []violation{
		carriesOut("RPLY-012", "the id of an error is compared", onReply("", func(o *exchange.Call, h *seenReply) *http.Response {
			if h.has("error") && !h.own {
				return unreadable(o)
			}
			return nil
		})),
		carriesOut("RPLY-016", "a reply with a member that is not known is refused", onReply("", func(o *exchange.Call, h *seenReply) *http.Response {
			for name := range h.json {
				if !slices.Contains([]string{"jsonrpc", "id", "result", "error"}, name) {
					return unreadable(o)
				}
			}
			return nil
		})),
		carriesOut("RPLY-018", "the status of a reply is not looked at", onReply("", func(o *exchange.Call, h *seenReply) *http.Response {
			if h.status >= 500 && h.bare() {
				return exchange.Reply(o, h.json)
			}
			return nil
		})),
		carriesOut("RPLY-022", "the error of get_sync_speed loses its message", loses(rpc.MethodGetSyncSpeed, func(e map[string]any) { e["message"] = "" })),
		carriesOut("RPLY-022.2", "the error of get_sync_speed loses its code", loses(rpc.MethodGetSyncSpeed, func(e map[string]any) { e["code"] = 0 })),
	}
}

// assumingViolations replace what is missing by what the service makes up, and
// what may yet come by what has come.
func assumingViolations() []violation {
	list := func(method, key string, made ...any) exchange.Carry {
		return editsReplies(method, func(m map[string]any) {
			result := exchange.Object(m, "result")
			if _, there := result[key].([]any); result != nil && !there {
				result[key] = made
			}
		})
	}
	field := func(name string, identifier bool) any {
		return rpc.Field{APIName: name, Label: name, Type: rpc.TypeString, Createable: true, Updateable: true, Identifier: identifier, Required: identifier}
	}
	return []violation{
		carriesOut("RPLY-015", "an object without fields has the fields id and name",
			list(rpc.MethodListFields, "fields", field("id", true), field("name", false))),
		carriesOut("RPLY-015.2", "an object without operations allows upsert", list(rpc.MethodSupportedOperations, "operations", rpc.OperationUpsert)),
	}
}
