// package endpoint is what a judged service calls: one server for the destinations of all
// scenarios. Each endpoint records its calls, and answers them as its simulated destination does,
// or as twists define. It decides nothing.
package endpoint

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
)

// Server is the one handler that the service calls, with a destination for each first segment of the path.
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
	Owner *Server
	name  string // its segment of the path
	sim   http.Handler

	mu     sync.Mutex
	calls  []*Call
	twists []Twist
}

// Twist changes how one call is answered; r begins as what the simulator answers by itself.
type Twist func(c *Call, r *Reply)

// Reply is how a call is answered. The zero value is an empty body with status 200.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
	Before <-chan struct{} // waits until it is closed, or the caller goes away
	Stalls <-chan struct{} // waits in the same way in the middle of the body
	Store  bool            // lets the simulator carry the call out, and loses its answer
	// Cut ends the connection: without any byte when body is empty, else after it in the middle of what was announced.
	Cut  bool
	Edit func(body []byte, header http.Header) []byte // changes the simulator's own answer in place of body
}

// AddHeader adds a header to the answer, and keeps other lines of its name.
func (r *Reply) AddHeader(name, value string) {
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header[name] = append(r.Header[name], value) // verbatim: the wire keeps its case
}

// Fail answers with a status, and a body that names it.
func (r *Reply) Fail(status int) {
	r.Status, r.Edit, r.Store = status, nil, false
	r.Body = jsonvalue.Encode(map[string]any{"message": http.StatusText(status)})
}

// Add adds an endpoint and gives its path.
func (s *Server) Add(name string, sim http.Handler) *Endpoint {
	p := &Endpoint{Owner: s, name: name, sim: sim}
	locked(&s.mu, func() { s.byName[name] = p })
	return p
}

// Drop forgets a destination whose scenario is over.
func (s *Server) Drop(p *Endpoint) { locked(&s.mu, func() { delete(s.byName, p.name) }) }

// locked does something while it holds a lock.
func locked(mu *sync.Mutex, do func()) {
	mu.Lock()
	defer mu.Unlock()
	do()
}

// ServeHTTP hands a call to the destination that it is for.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	var p *Endpoint
	locked(&s.mu, func() { p = s.byName[name] })
	if p == nil {
		http.Error(w, "there is no destination at this URL", http.StatusGone)
		return
	}
	p.serve(w, r)
}

func (p *Endpoint) serve(w http.ResponseWriter, r *http.Request) {
	const maxBody = 64 << 20 // of one request
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	c := &Call{Came: time.Now(), HTTP: r, body: body, endpoint: p}
	if err == nil {
		c.read()
	}
	p.mu.Lock()
	p.calls = append(p.calls, c)
	c.Number = len(p.calls)
	twists := p.twists
	p.mu.Unlock()
	by := &Reply{Edit: func(body []byte, _ http.Header) []byte { return body }}
	for _, twist := range twists {
		twist(c, by)
	}
	defer locked(&p.mu, func() { c.Ended, c.Done = time.Now(), true })
	p.answer(w, c, by)
}

func (p *Endpoint) answer(w http.ResponseWriter, c *Call, by *Reply) {
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
			status = cmp.Or(status, rec.Code)
			body = by.Edit(rec.Body.Bytes(), header)
		}
	}
	status = cmp.Or(status, http.StatusOK)
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	maps.Copy(header, by.Header)
	locked(&p.mu, func() { c.Status, c.header, c.Answer = status, header, body })
	if by.Cut && len(body) == 0 {
		c.abort()
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
		c.abort()
	}
}

// waitFor holds a call until a channel is closed, and ends it when the caller goes away.
func (c *Call) waitFor(until <-chan struct{}) {
	if until == nil {
		return
	}
	select {
	case <-until:
	case <-c.HTTP.Context().Done():
		c.abort()
	}
}

// abort ends the call and its connection.
func (c *Call) abort() {
	locked(&c.endpoint.mu, func() { c.Aborted = true })
	panic(http.ErrAbortHandler)
}

// Behave adds a twist to those that the endpoint has already.
func (p *Endpoint) Behave(twist Twist) { locked(&p.mu, func() { p.twists = append(p.twists, twist) }) }

// BehaveWell lets the endpoint answer as its simulator does.
func (p *Endpoint) BehaveWell() { locked(&p.mu, func() { p.twists = nil }) }

// CarryOut hands a call to the simulator past everything that is recorded.
func (p *Endpoint) CarryOut(body []byte) []byte {
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest("POST", "/", bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	p.sim.ServeHTTP(recorder, request)
	return recorder.Body.Bytes()
}

// Show makes the endpoint one that has got these calls and no other.
func (p *Endpoint) Show(calls ...*Call) { locked(&p.mu, func() { p.calls = calls }) }

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
