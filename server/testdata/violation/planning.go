package violation

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// planningViolations break the rules of PLAN: planning and caching (spec 4.2).
func planningViolations() []violation {
	told := func(method string, change func(result map[string]any)) exchange.Carry {
		return editsReplies(method, func(m map[string]any) { change(exchange.Object(m, "result")) })
	}
	fields := func(change func(f map[string]any)) exchange.Carry {
		return told(rpc.MethodListFields, func(result map[string]any) {
			list, _ := result["fields"].([]any)
			for _, f := range list {
				change(exchange.Object(f))
			}
		})
	}
	again := Also{"PLAN-014", "nothing that is new comes through"}
	return []violation{
		{Violation{ID: "PLAN-001", Changes: "the first test_connection is made after list_objects"}, func(*Service) seams {
			return seams{carry: afterObjects()}
		}},
		carriesOut("PLAN-002", "a connection test that reports a failure has passed",
			told(rpc.MethodTestConnection, func(result map[string]any) { result["success"] = true })),
		carriesOut("PLAN-002.2", "the message of a failed connection test is lost",
			told(rpc.MethodTestConnection, func(result map[string]any) { delete(result, "error_message") })),
		carriesOut("PLAN-004", "the names of objects stand for their labels", told(rpc.MethodListObjects, func(result map[string]any) {
			list, _ := result["objects"].([]any)
			for _, o := range list {
				exchange.Object(o)["label"] = exchange.Object(o)["object_api_name"]
			}
		})),
		carriesOut("PLAN-004.2", "the last of several objects is lost", told(rpc.MethodListObjects, func(result map[string]any) {
			if list, _ := result["objects"].([]any); len(list) > 1 {
				result["objects"] = list[:len(list)-1]
			}
		}), Also{"PLAN-005", "a lost object has no fields"}, Also{"PLAN-006", "a lost object has no operations"},
			Also{"PLAN-008", "a sync into a lost object is refused"}),
		carriesOut("PLAN-005", "fields that are arrays become single values", fields(func(f map[string]any) { f["array"] = false })),
		carriesOut("PLAN-005.2", "the labels of fields are lost", fields(func(f map[string]any) { f["label"] = f["field_api_name"] })),
		carriesOut("PLAN-006", "an object that allows insert alone allows mirror as well", allowsMore(told, rpc.OperationInsert, rpc.OperationMirror, 1)),
		carriesOut("PLAN-007", "an object that allows update and another operation allows insert as well",
			allowsMore(told, rpc.OperationUpdate, rpc.OperationInsert, 2), Also{"PLAN-006", "the API shows insert as well"}),
		carriesOut("PLAN-008", "required fields need not be mapped", fields(func(f map[string]any) {
			if f["identifier"] != true {
				f["required"] = false
			}
		}), Also{"PLAN-005", "the flag is shown as false"}),
		carriesOut("PLAN-009", "every text field may be an identifier", told(rpc.MethodListFields, marksIdentifiers(1))),
		carriesOut("PLAN-010", "every text field may be an identifier where none is declared", told(rpc.MethodListFields, marksIdentifiers(0))),
		carriesOut("PLAN-011", "get_sync_speed is called with the planning calls", func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
			if o.Method == rpc.MethodListObjects {
				callAhead(o, next, rpc.MethodGetSyncSpeed)
			}
			return next(o)
		}),
		carriesOut("PLAN-013", "list_objects is called before every run", func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
			if o.Method == rpc.MethodGetSyncSpeed {
				callAhead(o, next, rpc.MethodListObjects)
			}
			return next(o)
		}),
		{Violation{ID: "PLAN-014", Changes: "what the planning calls have brought is kept for ever"}, func(s *Service) seams {
			*s.CacheTTL = 100 * 365 * 24 * time.Hour
			return seams{}
		}},
		{Violation{ID: "PLAN-015", Changes: "what list_fields was answered once is not asked again", Also: []Also{again}}, func(*Service) seams {
			return seams{carry: remembersReplies(rpc.MethodListFields)}
		}},
	}
}

// editsReplies changes the replies to one method.
func editsReplies(method string, change func(reply map[string]any)) exchange.Carry {
	return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		resp, err := next(o)
		if o.Method != method {
			return resp, err
		}
		return exchange.Rewrite(resp, err, change)
	}
}

// callAhead makes a call of another method without parameters and forgets its reply.
func callAhead(o *exchange.Call, next exchange.Next, method string) {
	other := *o
	other.Method = method
	other.Envelope(func(e *exchange.Envelope) {
		e.Method, e.Params, e.ID = []byte(`"`+method+`"`), []byte("{}"), []byte(`"f`+string(e.ID[1:]))
	})
	if resp, err := next(&other); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}

// afterObjects asks for the objects before it tests a connection for the first
// time.
func afterObjects() exchange.Carry {
	var known sync.Map
	return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		if o.Method == rpc.MethodTestConnection {
			if _, again := known.LoadOrStore(o.HTTP.URL.String(), true); !again {
				callAhead(o, next, rpc.MethodListObjects)
			}
		}
		return next(o)
	}
}

// allowsMore adds an operation where there are so many, one of them given.
func allowsMore(told func(string, func(map[string]any)) exchange.Carry, given, more string, count int) exchange.Carry {
	return told(rpc.MethodSupportedOperations, func(result map[string]any) {
		if list, _ := result["operations"].([]any); len(list) == count && slices.Contains(list, any(given)) {
			result["operations"] = append(list, more)
		}
	})
}

// remembersReplies answers a method out of memory from its second call of a URL on,
// with the parameters taken into account.
func remembersReplies(method string) exchange.Carry {
	var known sync.Map
	return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		if o.Method != method {
			return next(o)
		}
		place := o.HTTP.URL.String() + " " + exchange.JSON(o.Param())
		if result, ok := known.Load(place); ok {
			return exchange.Reply(o, map[string]any{"result": result}), nil
		}
		resp, err := next(o)
		return exchange.Rewrite(resp, err, func(m map[string]any) {
			if m["result"] != nil {
				known.Store(place, m["result"])
			}
		})
	}
}

// marksIdentifiers marks the text fields as identifiers where at least so many are
// marked, and at most one more.
func marksIdentifiers(already int) func(result map[string]any) {
	return func(result map[string]any) {
		list, _ := result["fields"].([]any)
		marked := 0
		for _, f := range list {
			if exchange.Object(f)["identifier"] == true {
				marked++
			}
		}
		if marked != already {
			return
		}
		for _, f := range list {
			if f := exchange.Object(f); f["type"] == rpc.TypeString && f["array"] == false {
				f["identifier"] = true
			}
		}
	}
}
