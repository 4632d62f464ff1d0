package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/controlapi"
)

// perPage is how many rows a list has.
const perPage = "50"

// entries is a page of a journal.
type entries[T any] struct {
	Entries []T    `json:"entries"`
	Total   int64  `json:"total"`
	Dropped int64  `json:"dropped"`
	Next    *int64 `json:"next"`
}

// requestEntry is a request of the API as a page shows it.
type requestEntry struct{ controlapi.RequestEntry }

// callEntry is one of GET /_control/journal/calls.
type callEntry struct {
	Number      int64               `json:"number"`
	ID          string              `json:"id"`
	DurationMS  float64             `json:"duration_ms"`
	Destination int64               `json:"destination_id"`
	SyncID      int64               `json:"sync_id"`
	RunID       int64               `json:"sync_run_id"`
	Type        string              `json:"type"`
	Method      string              `json:"method"`
	Endpoint    string              `json:"endpoint"`
	RequestID   string              `json:"request_id"`
	Started     time.Time           `json:"started_at"`
	Status      int                 `json:"http_status"`
	Sent        int64               `json:"bytes_sent"`
	Received    int64               `json:"bytes_received"`
	Outcome     string              `json:"outcome"`
	Error       string              `json:"error"`
	Header      map[string][]string `json:"headers"`
	Request     json.RawMessage     `json:"request"`
	Response    json.RawMessage     `json:"response"`
}

// traffic is a page with a list of exchanges and its filter.
type traffic struct {
	Calls     bool // of destinations; otherwise requests of the API
	Exchanges console.Exchanges
	Methods   []string
}

// filters are the parameters of a list that go to the journal as they are.
func filters(r *console.Request, names ...string) url.Values {
	query := url.Values{"newest": {"true"}, "limit": {perPage}}
	for _, name := range names {
		if value := r.Query(name); value != "" {
			query.Set(name, value)
		}
	}
	return query
}

func (e *requestEntry) exchange() console.Exchange {
	x := console.Exchange{
		Link: "/requests/" + e.ID, ID: e.ID, At: e.At.Time, Method: e.Method, Target: target(e.Path, e.Query), Status: e.Status,
		DurationMS: e.DurationMS, Sent: int64(e.RequestBytes), Received: int64(e.ResponseBytes),
	}
	x.Tags = append(x.Tags, e.Faults...)
	return x
}

func target(path, query string) string {
	if query != "" {
		path += "?" + query
	}
	return path
}

func (e *callEntry) exchange() console.Exchange {
	x := console.Exchange{
		Link: "/calls/" + e.ID, ID: e.ID, At: e.Started, Method: e.Method, Target: e.Endpoint, Status: e.Status, Outcome: e.Outcome,
		DurationMS: e.DurationMS, Sent: e.Sent, Received: e.Received,
	}
	if e.SyncID != 0 {
		x.Tags = append(x.Tags, fmt.Sprintf("sync %d", e.SyncID), fmt.Sprintf("run %d", e.RunID))
	}
	return x
}

func exchanges[T any](got entries[T], r *console.Request, show func(*T) console.Exchange, empty string) console.Exchanges {
	l := console.Exchanges{Total: got.Total, Dropped: got.Dropped, Newest: r.Query("before") == "", Empty: empty}
	for i := range got.Entries {
		l.Items = append(l.Items, show(&got.Entries[i]))
	}
	if got.Next != nil {
		l.Older = *got.Next
	}
	return l
}

// requests lists what the API received.
func (s *site) requests(r *console.Request) (any, error) {
	got, err := get[entries[requestEntry]](r.Context(), s, "/journal/requests", filters(r, "method", "path", "status", "text", "workspace", "operation", "fault", "before"))
	if err != nil {
		return nil, err
	}
	return traffic{
		Exchanges: exchanges(got, r, (*requestEntry).exchange, "No request of the API fits. What clients send to /api/v1 shows here as it comes; what this console does itself is left out."),
		Methods:   []string{"GET", "POST", "PATCH", "PUT", "DELETE"},
	}, nil
}

// calls lists the calls to destinations.
func (s *site) calls(r *console.Request) (any, error) {
	got, err := get[entries[callEntry]](r.Context(), s, "/journal/calls", filters(r, "method", "status", "text", "sync", "sync_run", "destination", "outcome", "before"))
	if err != nil {
		return nil, err
	}
	return traffic{
		Calls:     true,
		Exchanges: exchanges(got, r, (*callEntry).exchange, "No call of a destination fits. Runs, connection tests and planning make calls; emulated types are called within the process and show here, too."),
		Methods:   []string{"test_connection", "list_objects", "list_fields", "supported_operations", "get_sync_speed", "sync_batch"},
	}, nil
}

// numbered finds the entry of a journal with an id, such as call_000000000012. Its
// number is the last part of calls; ids of requests count apart.
func entryOf[T any](ctx context.Context, s *site, path string, query url.Values, fits func(*T) bool, what, id string) (*T, error) {
	got, err := get[entries[T]](ctx, s, path, query)
	if err != nil {
		return nil, err
	}
	for i := range got.Entries {
		if fits(&got.Entries[i]) {
			return &got.Entries[i], nil
		}
	}
	return nil, console.Refuse(http.StatusNotFound, "the journal has no %s %.40s; it keeps the newest only", what, id)
}

// exchangePage is one exchange in full, and what can be done with it.
type exchangePage struct {
	console.Full
	Calls     bool
	Workspace int64
	Replay    string // the address of the form
}

// request is one request of the API in full.
func (s *site) request(r *console.Request) (any, error) {
	id := r.Value("id")
	e, err := entryOf(r.Context(), s, "/journal/requests", url.Values{"id": {id}}, func(e *requestEntry) bool { return e.ID == id }, "request", id)
	if err != nil {
		return nil, err
	}
	p := exchangePage{Full: console.Full{Exchange: e.exchange(), Rules: "the OpenAPI document"}, Workspace: e.WorkspaceID}
	p.Request = console.Message{Body: e.Request, Bytes: int64(e.RequestBytes), Missing: missing(int64(e.RequestBytes))}
	p.Response = console.Message{Body: e.Response, Bytes: int64(e.ResponseBytes), Missing: missing(int64(e.ResponseBytes))}
	p.Broken, p.Checked = rulesOfRequest(e)
	p.Snippets = console.Snippets(console.HTTPRequest{
		Method: e.Method, URL: origin(r) + target(e.Path, e.Query), Secret: s.SecretEnv, Body: e.Request, Status: e.Status,
	})
	p.Facts = []console.Fact{{Name: "Request", Value: e.ID}, {Name: "Operation", Value: orDash(e.Operation)}}
	if e.WorkspaceID != 0 {
		p.Facts = append(p.Facts, console.Fact{Name: "Workspace", Value: fmt.Sprint(e.WorkspaceID), Link: fmt.Sprintf("/workspaces/%d", e.WorkspaceID)})
	}
	for _, fault := range e.Faults {
		p.Facts = append(p.Facts, console.Fact{Name: "Struck by", Value: fault, Link: "/faults"})
	}
	query := url.Values{"method": {e.Method}, "target": {target(e.Path, e.Query)}, "workspace": {fmt.Sprint(e.WorkspaceID)}}
	if len(e.Request) > 0 && string(e.Request) != "null" {
		query.Set("from", e.ID)
	}
	p.Replay = "/send?" + query.Encode()
	return p, nil
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

func missing(bytes int64) string {
	if bytes == 0 {
		return "No body."
	}
	return fmt.Sprintf("A body of %d bytes, which was not kept: it is no JSON, it is too large, or bodies are switched off.", bytes)
}

// origin is the address under which the browser sees the program.
func origin(r *console.Request) string {
	scheme := "http"
	if r.HTTP.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.HTTP.Host
}

// rulesOfRequest holds a request and its response against the OpenAPI document. The
// journal has hidden secrets in bodies, which are texts as they were.
func rulesOfRequest(e *requestEntry) (broken []string, checked bool) {
	var op *openapi.Operation
	for _, one := range openapi.Operations() {
		if one.ID == e.Operation {
			op = one
		}
	}
	if op == nil {
		return []string{"no operation has " + e.Method + " " + e.Path}, true
	}
	at, err := url.Parse("http://service" + target(e.Path, e.Query))
	if err != nil {
		return nil, false
	}
	r := &http.Request{Method: e.Method, URL: at, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(e.RequestBytes)}
	body := []byte(e.Request)
	if string(body) == "null" {
		body = nil
	}
	if e.RequestBytes == 0 || body != nil {
		checked = true
		for _, p := range op.CheckRequest(r, pathValues(op.Path, strings.TrimPrefix(e.Path, api.BasePath)), body) {
			broken = append(broken, "request: "+p.String())
		}
	}
	if response := []byte(e.Response); len(response) > 0 && string(response) != "null" {
		header := http.Header{"Content-Type": {"application/json; charset=utf-8"}, "X-Request-Id": {e.ID}}
		if err := op.CheckResponse(e.Status, header, response); err != nil {
			broken = append(broken, "response: "+err.Error())
		}
		checked = true
	}
	return broken, checked
}

// pathValues takes the values of a path out of it.
func pathValues(pattern, path string) map[string]string {
	values := map[string]string{}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, piece := range strings.Split(strings.Trim(pattern, "/"), "/") {
		if name, ok := strings.CutPrefix(piece, "{"); ok && i < len(parts) {
			value, err := url.PathUnescape(parts[i])
			if err != nil {
				value = parts[i]
			}
			values[strings.TrimSuffix(name, "}")] = value
		}
	}
	return values
}

// call is one call of a destination in full.
func (s *site) call(r *console.Request) (any, error) {
	id := r.Value("id")
	e, err := entryOf(r.Context(), s, "/journal/calls", url.Values{"id": {id}}, func(e *callEntry) bool { return e.ID == id || e.RequestID == id }, "call", id)
	if err != nil {
		return nil, err
	}
	p := exchangePage{Full: console.Full{Exchange: e.exchange(), Rules: "the OpenRPC document"}, Calls: true}
	p.Request = console.Message{Body: e.Request, Bytes: e.Sent, Missing: missing(e.Sent)}
	p.Response = console.Message{Body: e.Response, Bytes: e.Received, Missing: missing(e.Received)}
	for name, values := range e.Header {
		for _, value := range values {
			p.Response.Headers = append(p.Response.Headers, name+": "+value)
		}
	}
	p.Broken, p.Checked = rulesOfCall(e)
	p.Facts = []console.Fact{{Name: "Call", Value: e.ID}, {Name: "Destination", Value: fmt.Sprintf("%d (%s)", e.Destination, e.Type)}, {Name: "JSON-RPC id", Value: e.RequestID}}
	if e.SyncID != 0 {
		p.Facts = append(p.Facts, console.Fact{Name: "Run", Value: fmt.Sprintf("%d of sync %d", e.RunID, e.SyncID), Link: fmt.Sprintf("/runs/%d", e.RunID)})
	}
	if e.Error != "" {
		p.Facts = append(p.Facts, console.Fact{Name: "Error", Value: e.Error})
	}
	if body := e.rpcRequest(); body != nil && strings.HasPrefix(e.Endpoint, "http") {
		p.Snippets = console.Snippets(console.HTTPRequest{Method: http.MethodPost, URL: e.Endpoint, Secret: "DESTINATION_TOKEN", Body: body, Status: e.Status})
	}
	return p, nil
}

// rpcRequest is the call as it went over the wire.
func (e *callEntry) rpcRequest() json.RawMessage {
	if len(e.Request) == 0 || string(e.Request) == "null" {
		return nil
	}
	text, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
		ID      string          `json:"id"`
	}{"2.0", e.Method, e.Request, e.RequestID})
	if err != nil {
		return nil
	}
	return text
}

// rulesOfCall holds params and result against the OpenRPC document.
func rulesOfCall(e *callEntry) (broken []string, checked bool) {
	known := func(body json.RawMessage) bool { return len(body) > 0 && string(body) != "null" }
	if known(e.Request) {
		checked = true
		if err := openapi.ValidateParams(e.Method, e.Request); err != nil {
			broken = append(broken, "params: "+err.Error())
		}
	}
	if known(e.Response) {
		checked = true
		if err := openapi.ValidateResult(e.Method, e.Response); err != nil {
			broken = append(broken, "result: "+err.Error())
		}
	}
	return broken, checked
}
