package golang

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// endpoint is one destination with its own store.
type endpoint struct {
	names  []string
	token  string
	tables []*table
	speed  map[string]int
	store  *store

	busy     sync.Mutex
	bufferMu sync.Mutex
	buffer   []result

	// Habits replace these.
	refuse func(to target, f field, v any) error
	finish func([]result) any
	header http.Header
}

func newEndpoint(token string, names []string) *endpoint {
	e := &endpoint{
		names: names, token: token, tables: tables(), header: http.Header{},
		speed:  map[string]int{"maximum_batch_size": 200, "maximum_parallel_batches": 8, "maximum_records_per_second": 20_000},
		refuse: func(target, field, any) error { return nil },
		finish: func(results []result) any { return results },
	}
	e.store = newStore(e)
	for _, name := range names {
		if habit := habits[name]; habit != nil {
			habit(e)
		}
	}
	if e.wrong("zero-means-unlimited") {
		e.speed["maximum_records_per_second"] = 0
	}
	return e
}

func (e *endpoint) wrong(name string) bool { return slices.Contains(e.names, name) }

func (e *endpoint) table(name string) *table {
	for _, t := range e.tables {
		if t.Name == name {
			return t
		}
	}
	return nil
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Message }

func badParams(format string, args ...any) error {
	return &rpcError{-32602, fmt.Sprintf(format, args...)}
}

type call struct {
	Version string          `json:"jsonrpc"`
	Method  *string         `json:"method"`
	Params  json.RawMessage `json:"params"`
	ID      json.RawMessage `json:"id"`
}

func (e *endpoint) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "use POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller has gone
	}
	reply := map[string]any{"jsonrpc": "2.0", "id": nil}
	fail := func(status, code int, message string) {
		if e.wrong("errors-as-plain-text") && code != -32700 {
			http.Error(w, message, http.StatusInternalServerError)
			return
		}
		reply["error"] = &rpcError{code, message}
		if e.wrong("errors-without-id") {
			reply["id"] = nil
		}
		if e.wrong("token-in-messages") && status == http.StatusUnauthorized {
			reply["error"] = &rpcError{code, fmt.Sprintf("bad credentials: %v", r.Header)}
		}
		e.respond(w, status, reply)
	}
	var c call
	if err := e.decode(body, &c); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) || !json.Valid(body) {
			fail(http.StatusOK, -32700, "parse error")
			return
		}
		c.Method = nil
	}
	if len(c.ID) > 0 {
		reply["id"] = c.ID
	}
	if e.wrong("id-is-an-int") {
		var number int
		if json.Unmarshal(c.ID, &number) != nil {
			number = 0
		}
		reply["id"] = number
	}
	if c.Method != nil && e.wrong("methods-by-fold") {
		*c.Method = strings.ToLower(strings.TrimSpace(*c.Method))
	}
	if c.Version != "2.0" || c.Method == nil {
		fail(http.StatusOK, -32600, "invalid request")
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+e.token {
		fail(http.StatusUnauthorized, -32000, "the token is not valid")
		return
	}
	result, err := e.call(r.Context(), *c.Method, c.Params)
	if err != nil {
		var known *rpcError
		if !errors.As(err, &known) {
			known = &rpcError{-32603, err.Error()}
		}
		fail(http.StatusOK, known.Code, known.Message)
		if !e.wrong("return-forgotten") {
			return
		}
		delete(reply, "error")
	}
	reply["result"] = result
	e.respond(w, http.StatusOK, reply)
}

func (e *endpoint) decode(body []byte, c *call) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	if e.wrong("unknown-members-refused") {
		decoder.DisallowUnknownFields()
	}
	return decoder.Decode(c)
}

func (e *endpoint) respond(w http.ResponseWriter, status int, reply map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	for name, values := range e.header {
		w.Header()[name] = values
	}
	if !e.wrong("return-forgotten") {
		w.WriteHeader(status)
	}
	_ = json.NewEncoder(w).Encode(reply)
}

func (e *endpoint) call(ctx context.Context, method string, params json.RawMessage) (any, error) {
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	if !strings.HasPrefix(string(params), "{") {
		return nil, badParams("params must be an object")
	}
	switch method {
	case "test_connection":
		return map[string]any{"success": true}, nil
	case "list_objects":
		type object struct {
			Name  string `json:"object_api_name"`
			Label string `json:"label"`
		}
		var objects []object
		for _, t := range e.tables {
			objects = append(objects, object{t.Name, t.Label})
		}
		return map[string]any{"objects": objects}, nil
	case "get_sync_speed":
		return e.speed, nil
	case "sync_batch":
		return e.syncBatch(ctx, params)
	case "list_fields", "supported_operations":
		var p plan
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, badParams("object is needed")
		}
		t := e.table(p.Object.Name)
		if t == nil && !e.wrong("nil-pointer") {
			return nil, badParams("there is no object %q", p.Object.Name)
		}
		if method == "list_fields" {
			return map[string]any{"fields": t.Fields}, nil
		}
		return map[string]any{"operations": t.Operations}, nil
	}
	return nil, &rpcError{-32601, "method not found"}
}
