package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/destination"
)

// journal keeps the last requests of the API and the last calls of destinations
// and webhooks, without any secret: they are taken out before an entry is kept.
type journal struct {
	s        *Server
	counter  atomic.Int64 // of requests: their ids follow from it
	bodies   atomic.Bool
	requests ring[RequestEntry]
	calls    ring[CallEntry]
	webhooks ring[WebhookEntry]
}

// The bounds of each of the journals; a body above maxKeptBody is kept as
// its length only.
const (
	journalEntries = 10_000
	journalBytes   = 64 << 20
	callBytes      = 24 << 20
	maxKeptBody    = 64 << 10
)

// newJournal keeps bodies until told otherwise: a failed test wants them.
func newJournal(s *Server) *journal {
	j := &journal{s: s}
	j.bodies.Store(true)
	j.requests = newRing(journalEntries, journalBytes, func(e *RequestEntry) int {
		return 256 + len(e.Path) + len(e.Query) + len(e.Request) + len(e.Response)
	})
	j.calls = newRing(journalEntries, callBytes, func(e *CallEntry) int {
		return 512 + len(e.Error) + e.BodyBytes()
	})
	j.webhooks = newRing(journalEntries, journalBytes, func(e *WebhookEntry) int {
		return 512 + len(e.Error) + len(e.Body)
	})
	return j
}

// RequestEntry is one request of the API. Bodies are JSON with every secret
// replaced, or null where there was none, where it was no JSON, where it was
// too large to keep, or where bodies are switched off.
type RequestEntry struct {
	Number         int64           `json:"number"` // in the order in which requests ended
	ID             string          `json:"id"`     // X-Request-Id of the reply
	At             api.Time        `json:"at"`     // on the service's clock
	DurationMS     float64         `json:"duration_ms"`
	OrganizationID int64           `json:"organization_id"` // 0: nobody was recognised
	WorkspaceID    int64           `json:"workspace_id"`    // 0: none
	Operation      string          `json:"operation"`       // "": no operation has this path
	Method         string          `json:"method"`
	Path           string          `json:"path"`
	Query          string          `json:"query"`
	Status         int             `json:"status"` // 0: the connection was dropped
	RequestBytes   int             `json:"request_bytes"`
	ResponseBytes  int             `json:"response_bytes"`
	Request        json.RawMessage `json:"request"`
	Response       json.RawMessage `json:"response"`
	Faults         []string        `json:"faults"` // ids of the faults that struck
}

// CallEntry is one call to a destination.
type CallEntry struct {
	Number     int64   `json:"number"`
	ID         string  `json:"id"`
	DurationMS float64 `json:"duration_ms"`
	destination.Exchange
	// Params and result without secrets, null where there was none, above
	// destination.MaxBodies, or where bodies are switched off.
	Request  json.RawMessage `json:"request"`
	Response json.RawMessage `json:"response"`
}

// recorder follows one request to its end. code 0 is a dropped connection.
type recorder struct {
	j     *journal
	c     *call
	seq   int64
	began time.Time
	code  int
	body  []byte
}

// begin takes the next id. Ids count, so the same calls get the same ids.
func (j *journal) begin(c *call) *recorder {
	j.s.world.RLock()
	c.ctx = holding(c.ctx)
	// Durations are real time: the service's clock may stand still or jump.
	return &recorder{j: j, c: c, seq: j.counter.Add(1), began: time.Now()}
}

// id is known before the call ends, for the header of its reply.
func (r *recorder) id() string { return requestID(r.seq) }

// requestID has a fixed width, so that ids sort as they were given.
func requestID(seq int64) string { return fmt.Sprintf("req_%012d", seq) }

// end keeps the request and counts it.
func (r *recorder) end() {
	c, j := r.c, r.j
	defer j.s.world.RUnlock()
	took := time.Since(r.began)
	j.s.figures.request(c.op.ID, r.code, took)
	secrets := secretsOf(c)
	entry := RequestEntry{
		ID: r.id(), At: api.Time{Time: c.began}, DurationMS: float64(took.Microseconds()) / 1000,
		OrganizationID: c.who.OrganizationID, WorkspaceID: c.who.WorkspaceID,
		Operation: c.op.ID, Method: c.r.Method, Path: secrets.path(c.r.URL), Query: secrets.query(c.r.URL),
		Status: r.code, RequestBytes: len(c.body), ResponseBytes: len(r.body),
		Faults: j.s.faults.taken(c),
	}
	if j.bodies.Load() {
		entry.Request = secrets.body(c.body, true)
		switch {
		case len(r.body) > maxKeptBody: // too large to keep
		case showsSecrets(c.op.Path) || r.code >= http.StatusBadRequest || secrets.holds(r.body):
			entry.Response = secrets.body(r.body, false)
		default:
			entry.Response = bytes.Clone(bytes.TrimSpace(r.body))
		}
	}
	j.requests.add(entry, func(e *RequestEntry, number int64) { e.Number = number })
}

// showsSecrets tells whether the replies of a path can hold keys of secrets. The
// others, which are those that clients ask for most, are not searched for them.
func showsSecrets(path string) bool {
	return !strings.HasPrefix(path, "/sync") && !strings.HasPrefix(path, "/users") && !strings.HasPrefix(path, "/source_types")
}

// observe keeps an outgoing call; it is called from many goroutines.
func (j *journal) observe(x destination.Exchange) {
	j.s.figures.call(x.Method, x.Outcome)
	if !j.bodies.Load() {
		x = x.WithoutBodies()
	}
	entry := CallEntry{DurationMS: float64(x.Duration.Microseconds()) / 1000, Exchange: x}
	j.calls.add(entry, func(e *CallEntry, number int64) {
		e.Number, e.ID = number, fmt.Sprintf("call_%012d", number)
	})
}

// exchange finds an outgoing call by the id of its request, with its bodies; nil
// when it is forgotten.
func (j *journal) exchange(id string) *CallEntry {
	list, _, _, _ := j.calls.page(0, 1, func(e *CallEntry) bool { return e.RequestID == id })
	if len(list) == 0 {
		return nil
	}
	list[0].show()
	return &list[0]
}

// clean takes the secrets of a call out of a text: its token, and every value
// of its body that the journal would replace.
func (j *journal) clean(c *call, text string) string {
	return secretsOf(c).text(text)
}

// forget empties all journals. Numbers and ids count on.
func (j *journal) forget() {
	j.requests.clear()
	j.calls.clear()
	j.webhooks.clear()
}

// secretsOf gathers what must not be kept of a call.
func secretsOf(c *call) *masks {
	m := &masks{}
	if token, err := bearer(c.r); err == nil {
		m.know(token)
	}
	if len(c.body) > 0 {
		m.learn(c.body)
	}
	return m
}

// path is the path as it may be kept.
func (m *masks) path(u *url.URL) string {
	const longest = 500
	path := u.EscapedPath()
	if len(path) > longest {
		path = path[:longest] + "…"
	}
	return m.text(path)
}

// shownParameters are the parameters whose values are kept; clients write
// anything into others.
var shownParameters = []string{
	"page", "per_page", "order", "refresh_key", "type", "force_full_sync",
	"table_name", "table_schema", "table_catalog",
}

// query is the query as it may be kept.
func (m *masks) query(u *url.URL) string {
	if u.RawQuery == "" {
		return ""
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return hidden
	}
	for name, list := range values {
		if !slices.Contains(shownParameters, name) {
			for i := range list {
				list[i] = hidden
			}
		}
	}
	return strings.ReplaceAll(m.text(values.Encode()), url.QueryEscape(hidden), hidden)
}
