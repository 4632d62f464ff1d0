package service

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
)

// endpoints is where the service meets the destinations of all scenarios: one
// handler, a destination for each first segment of the path.
type endpoints struct {
	secrets   *wire.Redactor
	mu        sync.Mutex
	byName    map[string]*endpoint
	unmatched []string // calls that no destination was meant by
}

func newEndpoints(secrets *wire.Redactor) *endpoints {
	return &endpoints{secrets: secrets, byName: map[string]*endpoint{}}
}

// endpoint is one destination of a scenario.
type endpoint struct {
	name  string // its segment of the path
	sim   Simulator
	owner *endpoints

	mu     sync.Mutex
	calls  []*call
	inside int // calls under way
	script func(*call) *reply
}

// call is one request that came in. Fields above the gap are set before script
// is asked; what it was answered is known once done.
type call struct {
	number   int // from 1, in the order of arrival
	came     time.Time
	http     *http.Request // its body is read
	body     []byte
	json     *wire.Node // nil when the body is no JSON
	method   string     // the JSON-RPC method
	id       string
	beside   int // calls under way at its arrival, itself included
	endpoint *endpoint

	status  int
	header  http.Header
	answer  []byte
	ended   time.Time
	aborted bool // no answer, or half of one
	done    bool
}

// param goes down into the params of the call.
func (c *call) param(path ...string) *wire.Node {
	return c.json.Get(append([]string{"params"}, path...)...)
}

// records are those of a sync_batch.
func (c *call) records() []*wire.Node {
	n := c.param("records")
	if n == nil {
		return nil
	}
	return n.Items
}

// reply is what a script answers in place of the simulator. The zero value is an
// empty body with status 200.
type reply struct {
	status int
	header http.Header
	body   []byte
	// before waits until it is closed, or the caller goes away.
	before <-chan struct{}
	// stalls waits in the same way in the middle of the body.
	stalls <-chan struct{}
	// store lets the simulator carry the call out, and loses its answer.
	store bool
	// cut ends the connection: without any byte when body is empty, else after it
	// in the middle of what was announced.
	cut bool
	// edit changes the simulator's own answer in place of body.
	edit func(body []byte, header http.Header) []byte
}

// add adds an endpoint and gives its path.
func (s *endpoints) add(name string, sim Simulator) *endpoint {
	p := &endpoint{name: name, sim: sim, owner: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byName[name] = p
	return p
}

// drop forgets a destination whose scenario is over.
func (s *endpoints) drop(p *endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byName, p.name)
}

// ServeHTTP hands a call to the destination that it is for.
func (s *endpoints) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	s.mu.Lock()
	p := s.byName[name]
	if p == nil {
		s.unmatched = append(s.unmatched, r.Method+" "+r.URL.Path)
	}
	s.mu.Unlock()
	if p == nil {
		http.Error(w, "no destination stands here", http.StatusGone)
		return
	}
	p.serve(w, r)
}

// maxBody bounds what a service may send in one request.
const maxBody = 64 << 20

func (p *endpoint) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	c := &call{came: time.Now(), http: r, body: body, endpoint: p}
	if err == nil {
		c.json, _ = wire.Parse(body)
	}
	c.method, c.id = jsonvalue.Text(c.json.Get("method")), jsonvalue.Text(c.json.Get("id"))
	p.mu.Lock()
	p.inside++
	p.calls = append(p.calls, c)
	c.number, c.beside = len(p.calls), p.inside
	script := p.script
	p.mu.Unlock()
	var by *reply
	if script != nil {
		by = script(c)
	}
	defer p.finish(c)
	p.answer(w, c, by)
}

func (p *endpoint) finish(c *call) {
	failure := recover()
	p.mu.Lock()
	p.inside--
	c.ended, c.done = time.Now(), true
	c.aborted = c.aborted || failure != nil
	p.mu.Unlock()
	if failure != nil {
		panic(failure)
	}
}

func (p *endpoint) answer(w http.ResponseWriter, c *call, by *reply) {
	if by == nil {
		by = &reply{edit: func(body []byte, _ http.Header) []byte { return body }}
	}
	c.waits(by.before)
	status, header, body := by.status, http.Header{}, by.body
	if by.store || by.edit != nil {
		r := c.http.Clone(c.http.Context())
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(c.body)), int64(len(c.body))
		r.Header.Del("Accept-Encoding")
		rec := httptest.NewRecorder()
		p.sim.ServeHTTP(rec, r)
		if by.edit != nil {
			header = rec.Header().Clone()
			header.Del("Content-Length")
			if status == 0 {
				status = rec.Code
			}
			body = by.edit(rec.Body.Bytes(), header)
		}
	}
	if status == 0 {
		status = http.StatusOK
	}
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	for name, values := range by.header {
		header[name] = values
	}
	p.mu.Lock()
	c.status, c.header, c.answer = status, header, body
	p.mu.Unlock()
	if by.cut && len(body) == 0 {
		panic(http.ErrAbortHandler)
	}
	for name, values := range header {
		w.Header()[name] = values
	}
	w.WriteHeader(status)
	if by.stalls != nil {
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		c.waits(by.stalls)
		body = body[len(body)/2:]
	}
	_, _ = w.Write(body)
	if by.cut {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// waits holds a call until a channel is closed. It ends the call when the caller
// goes away.
func (c *call) waits(until <-chan struct{}) {
	if until == nil {
		return
	}
	select {
	case <-until:
	case <-c.http.Context().Done():
		c.endpoint.mu.Lock()
		c.aborted = true
		c.endpoint.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
}

// setScript sets what answers in place of the simulator; nil gives it back. The
// script answers nil for what the simulator is to answer.
func (p *endpoint) setScript(script func(*call) *reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script = script
}

// seen are the calls so far, of a method or, with "", of all.
func (p *endpoint) seen(method string) []*call {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*call
	for _, c := range p.calls {
		if method == "" || c.method == method {
			copied := *c
			out = append(out, &copied)
		}
	}
	return out
}

// batches are the sync_batch calls so far.
func (p *endpoint) batches() []*call { return p.seen(rpc.MethodSyncBatch) }

// exchange is a call as it stands in a report.
func (c *call) exchange(check string, number int) conformance.Exchange {
	secrets := c.endpoint.owner.secrets
	x := conformance.Exchange{
		ID: number, Check: check, RPC: secrets.String(c.method), RPCID: secrets.String(c.id), Started: c.came.UTC(), Incoming: true,
		DurationMS: float64(c.ended.Sub(c.came).Microseconds()) / 1000,
		Request: wire.Message{
			Method: c.http.Method, URL: secrets.String(c.http.URL.RequestURI()), Header: headerLines(c.http.Header, secrets),
			Body: wire.RequestBody(secrets, c.body),
		},
	}
	switch {
	case c.aborted || !c.done:
		x.Kind, x.Error = string(wire.KindCut), "the destination gave no answer"
	default:
		x.Response = &wire.Response{Proto: c.http.Proto, Status: c.status, Header: headerLines(c.header, secrets), Body: wire.ResponseBody(secrets, c.answer)}
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
