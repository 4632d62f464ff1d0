// package endpoint is what a judged service calls: one server for the destinations
// of all scenarios. Each endpoint records its calls, and answers them by a script or
// by a simulated destination. It decides nothing.
package endpoint

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
)

// Server is where the service meets the destinations of all scenarios: one
// handler, a destination for each first segment of the path.
type Server struct {
	secrets *wire.Redactor
	mu      sync.Mutex
	byName  map[string]*Endpoint
}

// NewServer makes a server without endpoints; secrets are kept out of exchanges.
func NewServer(secrets *wire.Redactor) *Server {
	return &Server{secrets: secrets, byName: map[string]*Endpoint{}}
}

// Endpoint is one destination of a scenario.
type Endpoint struct {
	Name  string // its segment of the path
	sim   http.Handler
	Owner *Server

	mu     sync.Mutex
	calls  []*Call
	script func(*Call) *Reply
}

// Call is one request that came in. Fields above the gap are set before script
// is asked; what it was answered is known once done.
type Call struct {
	Number   int // from 1, in the order of arrival
	Came     time.Time
	HTTP     *http.Request // its body is read
	body     []byte
	endpoint *Endpoint
	content
	origin

	Status  int
	header  http.Header
	Answer  []byte
	Ended   time.Time
	Aborted bool // no answer, or half of one
	Done    bool
}

// content is what the body of a call says.
type content struct {
	JSON       *wire.Node // nil when the body is no JSON
	Method, ID string     // of JSON-RPC
	records    int        // of a lean call
}

// origin is what is known of the connection of a recorded call.
type origin struct {
	opened  time.Time    // when it was there
	ended   *atomic.Bool // wire.Sight.Ended
	Reused  bool         // it had carried another call
	closing bool         // the response said so
	given   bool         // the request said so
	Left    bool         // the caller did not wait for the response
}

// Recorded is a call that another party has seen; its response is known by its status
// and its header.
func (p *Endpoint) Recorded(x *wire.Sight, status int, answer http.Header) *Call {
	target := wire.HideQuery(x.Target)
	c := &Call{
		Number: x.Number, Came: x.Started, Ended: x.Started.Add(x.Total), body: x.RequestBody, Status: status, header: answer,
		Done: true, Aborted: status == 0, endpoint: p, origin: origin{opened: x.Opened, ended: x.Ended, closing: closes(x, answer), Reused: x.Reused},
		HTTP: &http.Request{Method: x.Method, RequestURI: target, URL: &url.URL{Path: target}, Proto: "HTTP/1.1", RemoteAddr: x.Peer, Header: http.Header{}},
	}
	if path, query, found := strings.Cut(target, "?"); found {
		c.HTTP.URL = &url.URL{Path: path, RawQuery: query}
	}
	if x.CallerLeft > 0 {
		c.Left, c.Ended = true, x.Started.Add(x.CallerLeft)
	}
	if c.opened.IsZero() || c.Reused {
		c.opened = c.Came
	}
	for _, h := range x.RequestHeader {
		c.HTTP.Header.Add(h.Name, h.Value)
	}
	c.given = x.Ended != nil && strings.Contains(connectionOf(c.HTTP.Header), "close")
	c.JSON, _ = wire.Parse(x.RequestBody)
	c.Method, c.ID = jsonvalue.Text(c.JSON.Get("method")), jsonvalue.Text(c.JSON.Get("id"))
	return c
}

// Kept reports whether the caller of a recorded call could have kept its connection: the
// endpoint has not ended it, or has because the caller asked for that. False where it is
// not known, and where the caller left: only a closed connection ends a call early.
func (c *Call) Kept() bool {
	return !c.Left && (c.given || c.ended != nil && !c.ended.Load() && !c.closing)
}

// connectionOf is what a header says about the connection.
func connectionOf(h http.Header) string {
	return strings.ToLower(strings.Join(h.Values("Connection"), ","))
}

// closes reports whether a response says that its connection ends with it.
func closes(x *wire.Sight, answer http.Header) bool {
	says := connectionOf(answer)
	if x.Proto == "HTTP/1.0" || bytes.HasPrefix(x.Raw, []byte("HTTP/1.0")) {
		return !strings.Contains(says, "keep-alive")
	}
	return strings.Contains(says, "close")
}

// Header is a header of the answer.
func (c *Call) Header(name string) string { return c.header.Get(name) }

// Lean is the call without its body, which only its number of records is left of.
func (c *Call) Lean() *Call {
	lean := *c
	lean.records, lean.JSON, lean.body, lean.Answer = len(c.Records()), nil, nil, nil
	return &lean
}

// Show makes the endpoint one that has got these calls and no other.
func (p *Endpoint) Show(calls ...*Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = calls
}

// Param goes down into the params of the call.
func (c *Call) Param(path ...string) *wire.Node {
	return c.JSON.Get(append([]string{"params"}, path...)...)
}

// Records are those of a sync_batch.
func (c *Call) Records() []*wire.Node { return jsonvalue.Items(c.Param("records")) }

// Reply is what a script answers in place of the simulator. The zero value is an
// empty body with status 200.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
	// Before waits until it is closed, or the caller goes away.
	Before <-chan struct{}
	// Stalls waits in the same way in the middle of the body.
	Stalls <-chan struct{}
	// Store lets the simulator carry the call out, and loses its answer.
	Store bool
	// Cut ends the connection: without any byte when body is empty, else after it
	// in the middle of what was announced.
	Cut bool
	// Edit changes the simulator's own answer in place of body.
	Edit func(body []byte, header http.Header) []byte
}

// Add adds an endpoint and gives its path.
func (s *Server) Add(name string, sim http.Handler) *Endpoint {
	p := &Endpoint{Name: name, sim: sim, Owner: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byName[name] = p
	return p
}

// Drop forgets a destination whose scenario is over.
func (s *Server) Drop(p *Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byName, p.Name)
}

// ServeHTTP hands a call to the destination that it is for.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	s.mu.Lock()
	p := s.byName[name]
	s.mu.Unlock()
	if p == nil {
		http.Error(w, "no destination stands here", http.StatusGone)
		return
	}
	p.serve(w, r)
}

// maxBody bounds what a service may send in one request.
const maxBody = 64 << 20

func (p *Endpoint) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	c := &Call{Came: time.Now(), HTTP: r, body: body, endpoint: p}
	if err == nil {
		c.JSON, _ = wire.Parse(body)
	}
	c.Method, c.ID = jsonvalue.Text(c.JSON.Get("method")), jsonvalue.Text(c.JSON.Get("id"))
	p.mu.Lock()
	p.calls = append(p.calls, c)
	c.Number = len(p.calls)
	script := p.script
	p.mu.Unlock()
	var by *Reply
	if script != nil {
		by = script(c)
	}
	defer p.finish(c)
	p.answer(w, c, by)
}

func (p *Endpoint) finish(c *Call) {
	failure := recover()
	p.mu.Lock()
	c.Ended, c.Done = time.Now(), true
	c.Aborted = c.Aborted || failure != nil
	p.mu.Unlock()
	if failure != nil {
		panic(failure)
	}
}

func (p *Endpoint) answer(w http.ResponseWriter, c *Call, by *Reply) {
	if by == nil {
		by = AsIs()
	}
	c.waitFor(by.Before)
	status, header, body := by.Status, http.Header{}, by.Body
	if by.Store || by.Edit != nil {
		r := c.HTTP.Clone(c.HTTP.Context())
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(c.body)), int64(len(c.body))
		r.Header.Del("Accept-Encoding")
		rec := httptest.NewRecorder()
		p.sim.ServeHTTP(rec, r)
		if by.Edit != nil {
			header = rec.Header().Clone()
			header.Del("Content-Length")
			if status == 0 {
				status = rec.Code
			}
			body = by.Edit(rec.Body.Bytes(), header)
		}
	}
	if status == 0 {
		status = http.StatusOK
	}
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	maps.Copy(header, by.Header)
	p.mu.Lock()
	c.Status, c.header, c.Answer = status, header, body
	p.mu.Unlock()
	if by.Cut && len(body) == 0 {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), header)
	w.WriteHeader(status)
	if by.Stalls != nil {
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		c.waitFor(by.Stalls)
		body = body[len(body)/2:]
	}
	_, _ = w.Write(body)
	if by.Cut {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// waitFor holds a call until a channel is closed. It ends the call when the caller
// goes away.
func (c *Call) waitFor(until <-chan struct{}) {
	if until == nil {
		return
	}
	select {
	case <-until:
	case <-c.HTTP.Context().Done():
		c.endpoint.mu.Lock()
		c.Aborted = true
		c.endpoint.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
}

// SetScript sets what answers in place of the simulator; nil gives it back. The
// script answers nil for what the simulator is to answer.
func (p *Endpoint) SetScript(script func(*Call) *Reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script = script
}

// Seen are the calls so far, of a method or, with "", of all.
func (p *Endpoint) Seen(method string) []*Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*Call
	for _, c := range p.calls {
		if method == "" || c.Method == method {
			copied := *c
			out = append(out, &copied)
		}
	}
	return out
}

// Batches are the sync_batch calls so far.
func (p *Endpoint) Batches() []*Call { return p.Seen(rpc.MethodSyncBatch) }

// Exchange is a call as it stands in a report.
func (c *Call) Exchange(check string, number int) conformance.Exchange {
	secrets := c.endpoint.Owner.secrets
	x := conformance.Exchange{
		ID: number, Check: check, RPC: secrets.String(c.Method), RPCID: secrets.String(c.ID), Started: c.Came.UTC(), Incoming: true,
		DurationMS: float64(c.Ended.Sub(c.Came).Microseconds()) / 1000,
		Request: wire.Message{
			Method: c.HTTP.Method, URL: wire.HideQuery(secrets.String(c.HTTP.URL.RequestURI())), Header: headerLines(c.HTTP.Header, secrets),
			Body: wire.RequestBody(secrets, c.body),
		},
	}
	switch {
	case c.Aborted || !c.Done:
		x.Kind, x.Error = string(wire.KindCut), "the destination gave no answer"
	default:
		x.Response = &wire.Response{Proto: c.HTTP.Proto, Status: c.Status, Header: headerLines(c.header, secrets), Body: wire.ResponseBody(secrets, c.Answer)}
	}
	return x
}

// headerLines are headers by name; the order of the wire is not known.
func headerLines(h http.Header, secrets *wire.Redactor) []wire.Header {
	out := []wire.Header{}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			out = append(out, wire.Header{Name: name, Value: secrets.Header(value)})
		}
	}
	return out
}
