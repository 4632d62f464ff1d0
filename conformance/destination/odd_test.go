package destination_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim/rpc"
)

// odd is an endpoint of whose kind there is no violation of the simulator: it is right in
// an unusual way, decides nothing, or is wrong in another way than the violations are.
type odd struct {
	name, check string
	status      conformance.Status
	says        string // part of a finding, the reason or a note
	blind       bool   // there is no read-back hook
	// alters changes what the simulator has answered.
	alters func(c *oddCall)
}

// oddCall is a call of the judge with the reply of the simulator.
type oddCall struct {
	*http.Request
	method, id string
	body       string
	records    []json.RawMessage
	turn       int  // how many such calls of the same object came before
	again      bool // the same records were sent before
	reply      *httptest.ResponseRecorder
}

// says replaces the body of the reply.
func (c *oddCall) says(text string) {
	c.reply.Body.Reset()
	c.reply.Body.WriteString(text)
}

// alter replaces parts of the body.
func (c *oddCall) alter(pairs ...string) {
	c.says(strings.NewReplacer(pairs...).Replace(c.reply.Body.String()))
}

// fails gives errors of a method that does not exist another message.
func fails(message string) func(c *oddCall) {
	return func(c *oddCall) {
		if c.method != "" && !slices.Contains(rpc.Methods(), c.method) {
			c.says(`{"jsonrpc":"2.0","id":` + c.id + `,"error":{"code":-32601,"message":` + message + `}}`)
		}
	}
}

// of alters the replies to one method.
func of(method string, do func(c *oddCall)) func(c *oddCall) {
	return func(c *oddCall) {
		if c.method == method {
			do(c)
		}
	}
}

// swaps alters the replies to one method by replacing parts of their bodies.
func swaps(method string, pairs ...string) func(c *oddCall) {
	return of(method, func(c *oddCall) { c.alter(pairs...) })
}

// everySecond alters every second reply to one method.
func everySecond(method string, pairs ...string) func(c *oddCall) {
	return of(method, func(c *oddCall) {
		if c.turn%2 == 1 {
			c.alter(pairs...)
		}
	})
}

// ofCheck alters the replies to batches of one check.
func ofCheck(id string, do func(c *oddCall)) func(c *oddCall) {
	return of(rpc.MethodSyncBatch, func(c *oddCall) {
		if strings.Contains(c.body, id) {
			do(c)
		}
	})
}

var failedRecord = regexp.MustCompile(`"success":false,"error_message":"(?:[^"\\]|\\.)*"`)

// acknowledges reports success for every record.
func acknowledges(c *oddCall) {
	c.says(failedRecord.ReplaceAllString(c.reply.Body.String(), `"success":true`))
}

const brokenDown = `"success":false` // of test_connection while the hook breaks the backend

var odds = []odd{
	{"a token in a header", "AUTH-007", conformance.Warn, "header Www-Authenticate", false, func(c *oddCall) {
		if c.reply.Code == http.StatusUnauthorized {
			c.reply.Header().Set("WWW-Authenticate", "Bearer got="+c.Header.Get("Authorization"))
		}
	}},
	{"the new token is refused, too", "AUTH-009", conformance.Warn, "an answer for the new token", false, func(c *oddCall) {
		if token := c.Header.Get("Authorization"); c.method != "" && token != "Bearer "+simToken {
			c.reply.Code = http.StatusUnauthorized
			c.says(`{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Unauthorized"}}`)
		}
	}},
	{"a fault without a message", "CON-002", conformance.Warn, "no error_message", false, of(rpc.MethodTestConnection, func(c *oddCall) {
		if text := c.reply.Body.String(); strings.Contains(text, brokenDown) {
			c.says(regexp.MustCompile(`"error_message":"[^"]*"`).ReplaceAllString(text, `"error_message":""`))
		}
	})},
	{"no answer about a fault", "CON-002", conformance.Inconclusive, "was not answered", false, of(rpc.MethodTestConnection, func(c *oddCall) {
		if strings.Contains(c.reply.Body.String(), brokenDown) {
			panic(http.ErrAbortHandler)
		}
	})},
	{"the second batch is not answered", "DUP-001", conformance.Inconclusive, "was not answered within", false, ofCheck("DUP-001", func(c *oddCall) {
		if c.again {
			<-c.Context().Done()
		}
	})},
	{"a statement in an error", "ERR-003", conformance.Warn, "a database statement", false, fails(`"no rows: SELECT name FROM columns"`)},
	{"a path in an error", "ERR-003", conformance.Warn, "a path of the server", false, fails(`"not found in /srv/app/main.py"`)},
	{"a secret beside an error", "ERR-003", conformance.Warn, "a secret", false, fails(`"no","data":{"dsn":"password=hunter2"}`)},
	{"control characters", "ERR-004", conformance.Warn, "control characters", false, fails(`"no\u0007"`)},
	{"HTML in an error", "ERR-004", conformance.Warn, "holds HTML", false, fails(`"<html><body><h1>404</h1></body></html>"`)},
	{"an error without a word", "ERR-004", conformance.Warn, "no word", false, fails(`"-32601"`)},
	{"a field without a name", "FLD-002", conformance.Fail, "empty name", false, swaps(rpc.MethodListFields, `"field_api_name":"status"`, `"field_api_name":""`)},
	{"types that change", "FLD-010", conformance.Fail, "has other types or flags", false, everySecond(rpc.MethodListFields, `"decimal"`, `"float"`)},
	{"another host", "HTTP-004", conformance.Warn, "status 308 to https://other.example/", false, of(rpc.MethodGetSyncSpeed, func(c *oddCall) {
		c.reply.Code = http.StatusPermanentRedirect
		c.reply.Header().Set("Location", "https://other.example/")
	})},
	{"a close that is announced", "HTTP-008", conformance.Pass, "announces that it closes", false, of(rpc.MethodListObjects, func(c *oddCall) {
		c.reply.Header().Set("Connection", "close")
	})},
	{"a cache", "HTTP-011", conformance.Warn, "X-Cache: HIT", false, of(rpc.MethodListObjects, func(c *oddCall) {
		c.reply.Header().Set("X-Cache", "HIT from edge")
	})},
	{"objects in another order", "OBJ-004", conformance.Pass, "the order of the objects changes", false,
		everySecond(rpc.MethodListObjects, `"contact"`, `"order"`, `"Contact"`, `"Order"`, `"order"`, `"contact"`, `"Order"`, `"Contact"`)},
	{"an operation of batches", "OPS-001", conformance.Pass, `lists "delete"`, false, swaps(rpc.MethodSupportedOperations, `"upsert"`, `"upsert","delete"`)},
	{"some records are refused", "OPS-007", conformance.Pass, "of new records: 1 of 2 were refused", false, ofCheck("OPS-007", func(c *oddCall) {
		if text := c.reply.Body.String(); len(c.records) == 2 && strings.Contains(c.body, `"insert"`) {
			c.says(strings.Replace(text, `"success":true`, `"success":false,"error_message":"no such text"`, 1))
		}
	})},
	{"null beside a success", "RES-007", conformance.Pass, "a success carries error_message null", false,
		swaps(rpc.MethodSyncBatch, `"success":true`, `"success":true,"error_message":null`)},
	{"refused alone, acknowledged among others", "RES-009", conformance.Fail, "which is refused when it comes alone", false, ofCheck("RES-009", func(c *oddCall) {
		if len(c.records) > 1 {
			acknowledges(c)
		}
	})},
	{"a bad record that nobody can look for", "RES-009", conformance.Inconclusive, "only a read-back shows", true, ofCheck("RES-009", acknowledges)},
	{"one change of the rate", "RL-003", conformance.Pass, "changed once, from 2000 to 1000", false, func(c *oddCall) {
		if strings.Contains(c.reply.Body.String(), `"error"`) {
			c.reply.Header().Del("X-RateLimit-Limit") // results and errors would not share it
		} else if c.turn > 1 || c.turn == 1 && c.method != rpc.MethodTestConnection || c.method == rpc.MethodSyncBatch {
			c.reply.Header().Set("X-RateLimit-Limit", "1000") // from the second call of the check on
		}
	}},
	{"an error of another call", "RPC-008", conformance.Fail, "with the id of the request", false, func(c *oddCall) {
		if c.method != "" && !slices.Contains(rpc.Methods(), c.method) {
			c.says(`{"jsonrpc":"2.0","id":"7","error":{"code":-32601,"message":"no"}}`)
		}
	}},
	{"an id of what is no JSON", "RPC-010", conformance.Warn, `"id":null`, false, func(c *oddCall) { c.alter(`"id":null`, `"id":"7"`) }},
	{"updates that always succeed", "SEM-001", conformance.Inconclusive, "the results do not show it", true, of(rpc.MethodSyncBatch, acknowledges)},
	{"more batches than are sent at once", "SPD-001", conformance.Pass, "at most 50 batches at once", false,
		swaps(rpc.MethodGetSyncSpeed, `"maximum_parallel_batches":16`, `"maximum_parallel_batches":80`)},
}

// serve lets the simulator answer, and alters its reply.
func (o odd) serve(sim http.Handler) http.Handler {
	var mu sync.Mutex
	turns, sent := map[string]int{}, map[string]bool{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		var call struct {
			Method string
			ID     json.RawMessage
			Params struct {
				Object, Records json.RawMessage
			}
		}
		c := &oddCall{Request: r, body: string(body), reply: httptest.NewRecorder()}
		if json.Unmarshal(body, &call) == nil && !strings.HasPrefix(r.URL.Path, "/_control/") {
			c.method, c.id = call.Method, string(call.ID)
			_ = json.Unmarshal(call.Params.Records, &c.records) // odd params have none
			mu.Lock()
			key, records := call.Method+string(call.Params.Object), string(call.Params.Records)
			c.turn, c.again = turns[key], sent[records]
			turns[key]++
			sent[records] = true
			mu.Unlock()
		}
		sim.ServeHTTP(c.reply, r)
		o.alters(c)
		header := w.Header()
		for name, values := range c.reply.Header() {
			header[name] = values
		}
		header.Del("Content-Length")
		w.WriteHeader(c.reply.Code)
		_, _ = w.Write(c.reply.Body.Bytes())
	})
}

// TestOddEndpoints: a check reports correctly what no violation shows.
func TestOddEndpoints(t *testing.T) {
	cat, err := conformance.LoadCatalogue(conformance.SuiteDestination)
	require.NoError(t, err)
	for _, o := range odds {
		t.Run(o.check+" "+o.name, func(t *testing.T) {
			t.Parallel()
			r := judgeOn(t, nil, memory(func(t *testing.T) *bench {
				b := inMemory(t, simConfig())
				b.target.Handler = o.serve(b.sim)
				only(b, cat, o.check)
				b.opts.Objects = []string{"contact"}
				if o.blind {
					b.opts.Readback = conformance.HookSpec{}
				}
				return b
			}))
			at := slices.IndexFunc(r.Checks, func(c conformance.CheckResult) bool { return c.ID == o.check })
			require.GreaterOrEqual(t, at, 0, "%v", r.Problems)
			got := r.Checks[at]
			require.Equal(t, o.status, got.Status, "%s %v\n%s", got.Reason, r.Problems, explain(r, []string{o.check}))
			said := got.Reason + strings.Join(got.Notes, "\n")
			for _, f := range got.Findings {
				said += "\n" + f.Expected + "\n" + f.Actual
			}
			require.Contains(t, said, o.says)
		})
	}
}
