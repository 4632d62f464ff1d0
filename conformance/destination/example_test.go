package destination_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
)

// notes is a small destination: one object whose records have a text each. The
// text is kept as raw JSON: decoded by Go, half a surrogate pair would be lost.
type notes struct {
	mu    sync.Mutex
	texts map[string]json.RawMessage
}

// noteField describes a field of the object; the first one is the identifier.
func noteField(name string, identifier bool) map[string]any {
	return map[string]any{
		"field_api_name": name, "label": name, "type": "string", "array": false,
		"identifier": identifier, "required": identifier, "createable": true, "updateable": true,
	}
}

func (n *notes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var call struct {
		JSONRPC, Method string
		ID              json.RawMessage
		Params          json.RawMessage
	}
	reply := map[string]any{"jsonrpc": "2.0", "id": nil}
	var wrongType *json.UnmarshalTypeError
	switch err := json.NewDecoder(r.Body).Decode(&call); {
	case errors.As(err, &wrongType):
		reply["error"] = map[string]any{"code": -32600, "message": "Invalid Request"}
	case r.Method != http.MethodPost, err != nil:
		reply["error"] = map[string]any{"code": -32700, "message": "Parse error"}
	default:
		if len(call.ID) > 0 {
			reply["id"] = call.ID
		}
		result, code, message := n.call(call.JSONRPC, call.Method, call.Params)
		if message != "" {
			reply["error"] = map[string]any{"code": code, "message": message}
		} else {
			reply["result"] = result
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(reply) // the caller may be gone
}

func (n *notes) call(version, method string, raw json.RawMessage) (result any, code int, message string) {
	var params struct {
		Object struct {
			Name string `json:"object_api_name"`
		}
		Plan struct {
			Object struct {
				Name string `json:"object_api_name"`
			}
			Operation string
			Schema    map[string]struct {
				Active bool `json:"active_identifier"`
			}
		} `json:"sync_plan"`
		Records []map[string]json.RawMessage
	}
	switch {
	case version != "2.0" || method == "":
		return nil, -32600, "Invalid Request"
	case json.Unmarshal(raw, &params) != nil:
		return nil, -32602, "Invalid params"
	}
	switch method {
	case "test_connection":
		return map[string]any{"success": true}, 0, ""
	case "list_objects":
		return map[string]any{"objects": []any{map[string]any{"object_api_name": "note", "label": "Note"}}}, 0, ""
	case "get_sync_speed":
		return map[string]any{"maximum_batch_size": 100, "maximum_parallel_batches": 4, "maximum_records_per_second": 1000}, 0, ""
	case "list_fields", "supported_operations":
		if params.Object.Name != "note" {
			return nil, -32602, "no such object"
		}
		if method == "list_fields" {
			return map[string]any{"fields": []any{noteField("slug", true), noteField("text", false)}}, 0, ""
		}
		return map[string]any{"operations": []string{"upsert", "mirror"}}, 0, ""
	case "sync_batch":
		known := params.Plan.Operation == "upsert" || params.Plan.Operation == "delete"
		if params.Plan.Object.Name != "note" || !known || !params.Plan.Schema["slug"].Active {
			return nil, -32602, "no such plan"
		}
		return map[string]any{"record_results": n.write(params.Plan.Operation, params.Records)}, 0, ""
	}
	return nil, -32601, "Method not found"
}

func (n *notes) write(operation string, records []map[string]json.RawMessage) []any {
	n.mu.Lock()
	defer n.mu.Unlock()
	results := []any{}
	for _, r := range records {
		var slug *string
		switch {
		case json.Unmarshal(orNull(r["slug"]), &slug) != nil || slug == nil:
			results = append(results, map[string]any{"identifier": nil, "success": false, "error_message": "slug is missing"})
			continue
		case operation == "delete":
			delete(n.texts, *slug)
		default:
			if text, mapped := r["text"]; mapped || n.texts[*slug] == nil {
				n.texts[*slug] = orNull(text)
			}
		}
		results = append(results, map[string]any{"identifier": slug, "success": true})
	}
	return results
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// readback shows the judge what is stored: without it, no one can tell from
// outside whether an upsert was written.
func (n *notes) readback(_ context.Context, q conformance.ReadbackRequest) (conformance.ReadbackReply, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	reply := conformance.ReadbackReply{Complete: true}
	for _, id := range q.Identifiers {
		var slug string
		if err := json.Unmarshal(id, &slug); err != nil {
			return reply, err
		}
		text, ok := n.texts[slug]
		if !ok {
			continue
		}
		reply.Records = append(reply.Records, conformance.ReadbackRecord{
			Identifier: id, Count: 1, Fields: map[string]json.RawMessage{"slug": id, "text": text},
		})
	}
	return reply, nil
}

// Run judges any http.Handler, here with permission to write and a read-back
// hook in Go. The report says what failed, with the exchange and the fix.
func ExampleRun() {
	n := &notes{texts: map[string]json.RawMessage{}}
	r, err := destination.Run(context.Background(), destination.Target{Handler: n}, conformance.Options{
		Write: true, Objects: []string{"note"}, ReadbackFunc: n.readback,
	})
	if err != nil {
		fmt.Println("could not judge:", err)
		return
	}
	for _, c := range r.Checks {
		for _, f := range c.Findings {
			fmt.Printf("%s %s: %s\n  expected %s\n  actual   %s\n  fix      %s\n", c.Status, c.ID, c.Title, f.Expected, f.Actual, f.Fix)
		}
	}
	fmt.Println(r.Verdict, r.Tier, len(r.Failed))
	// Output: conformant in part semantics 0
}

// Without permission to write, only what reading shows is judged.
func ExampleRun_readOnly() {
	r, err := destination.Run(context.Background(), destination.Target{Handler: &notes{}}, conformance.Options{
		Select: []string{"RPC-*", "OBJ-*", "FLD-*"},
	})
	if err != nil {
		fmt.Println("could not judge:", err)
		return
	}
	fmt.Println(r.Tier, r.Failed, r.Records)
	// Output: protocol [] 0
}

// Test makes each check a subtest; put it into the tests of your endpoint.
func ExampleTest() {
	_ = func(t *testing.T) { // func TestConformance(t *testing.T)
		n := &notes{texts: map[string]json.RawMessage{}}
		destination.Test(t, destination.Target{Handler: n}, conformance.Options{
			Write: true, Objects: []string{"note"}, ReadbackFunc: n.readback,
		})
	}
}
