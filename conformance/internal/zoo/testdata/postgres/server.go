// Package postgres is a set of custom destinations on PostgreSQL, as a newcomer to
// the language writes them: a pool of connections, a transaction for each batch, and
// columns of the types that the fields have.
package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// server serves every endpoint at its path: /m/NAME/rpc is the endpoint with the
// mistake or habit NAME, /m/none/rpc has none. The same path has /m/NAME/readback and
// /m/NAME/close, for the tests alone.
type server struct {
	token, dsn string
	mu         sync.Mutex
	endpoints  map[string]*endpoint
	made       int
}

// Start serves the endpoints on a free port until the caller closes it; dsn is that of
// the database.
func Start(token, dsn string) *httptest.Server {
	return httptest.NewServer(&server{token: token, dsn: dsn, endpoints: map[string]*endpoint{}})
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i := strings.LastIndex(r.URL.Path, "/")
	at, what := strings.TrimPrefix(r.URL.Path[:i], "/m/"), r.URL.Path[i+1:]
	e, err := s.endpoint(at, what == "close")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller has gone
	}
	switch {
	case what == "close":
		e.pool.close()
		e.look.close()
	case what == "readback":
		shown, err := e.readback(r.Context(), body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(shown)
	case r.Method != http.MethodPost:
		http.Error(w, "use POST", http.StatusMethodNotAllowed)
	default:
		status, reply := e.answer(r, body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(reply)
	}
}

func (s *server) endpoint(at string, forget bool) (*endpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.endpoints[at]; e != nil {
		if forget {
			delete(s.endpoints, at)
		}
		return e, nil
	}
	names, _, _ := strings.Cut(at, "/")
	s.made++
	e, err := newEndpoint(s.token, s.dsn, fmt.Sprintf("m%d", s.made), strings.Split(names, "+"))
	if err == nil {
		s.endpoints[at] = e
	}
	return e, err
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Message }

func badParams(format string, args ...any) error {
	return &rpcError{-32602, fmt.Sprintf(format, args...)}
}

// answer gives the status and the reply to one call.
func (e *endpoint) answer(r *http.Request, body []byte) (int, any) {
	reply := map[string]any{"jsonrpc": "2.0", "id": nil}
	fail := func(status, code int, message string) (int, any) {
		reply["error"] = &rpcError{code, message}
		return status, reply
	}
	if !json.Valid(body) {
		return fail(http.StatusOK, -32700, "parse error")
	}
	var call struct {
		Version any `json:"jsonrpc"`
		Method  any
		Params  json.RawMessage
		ID      json.RawMessage
	}
	_ = json.Unmarshal(body, &call)
	method, isText := call.Method.(string)
	if len(call.ID) > 0 {
		reply["id"] = call.ID
	}
	if call.Version != "2.0" || !isText {
		return fail(http.StatusOK, -32600, "invalid request")
	}
	if r.Header.Get("Authorization") != "Bearer "+e.token {
		return fail(http.StatusUnauthorized, -32000, "wrong token")
	}
	handle := e.methods()[method]
	if handle == nil {
		return fail(http.StatusOK, -32601, "method not found")
	}
	result, err := handle(r.Context(), call.Params)
	var asked *rpcError
	switch {
	case errors.As(err, &asked):
		return fail(http.StatusOK, asked.Code, asked.Message)
	case err != nil:
		return fail(http.StatusOK, -32000, err.Error())
	}
	reply["result"] = result
	return http.StatusOK, reply
}

func (e *endpoint) methods() map[string]func(context.Context, json.RawMessage) (any, error) {
	ofTable := func(say func(*table) any) func(context.Context, json.RawMessage) (any, error) {
		return func(_ context.Context, params json.RawMessage) (any, error) {
			t, err := e.table(params)
			if err != nil {
				return nil, err
			}
			return say(t), nil
		}
	}
	return map[string]func(context.Context, json.RawMessage) (any, error){
		"test_connection": func(context.Context, json.RawMessage) (any, error) { return map[string]bool{"success": true}, nil },
		"list_objects": func(context.Context, json.RawMessage) (any, error) {
			var objects []map[string]string
			for _, t := range e.tables {
				objects = append(objects, map[string]string{"object_api_name": t.name, "label": t.name})
			}
			return map[string]any{"objects": objects}, nil
		},
		"list_fields":          ofTable(func(t *table) any { return map[string]any{"fields": t.fields} }),
		"supported_operations": ofTable(func(t *table) any { return map[string]any{"operations": t.operations} }),
		"get_sync_speed":       func(context.Context, json.RawMessage) (any, error) { return e.speed, nil },
		"sync_batch":           e.syncBatch,
	}
}
