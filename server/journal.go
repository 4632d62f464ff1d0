package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/destination"
)

// journal keeps the last requests of the API and the last calls of destinations
// and webhooks, without any secret: they are taken out before an entry is kept.
type journal struct {
	s        *Server
	process  string // of several; "" where one is alone
	ids      requestIDs
	bodies   atomic.Bool
	requests book[RequestEntry]
	calls    book[CallEntry]
	webhooks book[WebhookEntry]
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
	j := &journal{s: s, ids: requestIDs{s: s}}
	j.bodies.Store(true)
	j.requests = newBook("requests", journalBytes, requestPace, func(e *RequestEntry) int {
		return 256 + len(e.Path) + len(e.Query) + len(e.Request) + len(e.Response)
	})
	j.requests.key = func(e *RequestEntry) string { return e.ID }
	j.requests.sign = func(e *RequestEntry, number int64) { e.Number = number }
	j.calls = newBook("calls", callBytes, callPace, func(e *CallEntry) int {
		return 512 + len(e.Error) + e.BodyBytes()
	})
	j.calls.key = func(e *CallEntry) string { return e.RequestID }
	j.calls.sign = func(e *CallEntry, number int64) { e.Number, e.ID = number, fmt.Sprintf("call_%012d", number) }
	j.calls.show = (*CallEntry).show
	j.webhooks = newBook("webhooks", journalBytes, requestPace, func(e *WebhookEntry) int {
		return 512 + len(e.Error) + len(e.Body)
	})
	j.webhooks.key = func(e *WebhookEntry) string { return fmt.Sprintf("%d/%d", e.DeliveryID, e.Attempt) }
	j.webhooks.sign = func(e *WebhookEntry, number int64) { e.Number, e.ID = number, fmt.Sprintf("webhook_%012d", number) }
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
	// Process has answered; "" where one process is alone.
	Process string `json:"process,omitempty"`
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
	// Process has called; "" where one process is alone.
	Process string `json:"process,omitempty"`
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
	return &recorder{j: j, c: c, seq: j.ids.next(), began: time.Now()}
}

// id is known before the call ends, for the header of its reply.
func (r *recorder) id() string { return requestID(r.seq) }

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
		Status: r.code, RequestBytes: len(c.arrived()), ResponseBytes: len(r.body),
		Faults: j.s.faults.taken(c), Process: j.process,
	}
	if j.bodies.Load() {
		entry.Request = secrets.body(c.arrived(), true)
		switch {
		case len(r.body) > maxKeptBody: // too large to keep
		case showsSecrets(c.op.Path) || r.code >= http.StatusBadRequest || secrets.holds(r.body):
			entry.Response = secrets.body(r.body, false)
		default:
			entry.Response = bytes.Clone(bytes.TrimSpace(r.body))
		}
	}
	j.requests.add(entry)
}

// showsSecrets reports whether the replies of a path can hold keys of secrets. The
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
	j.calls.add(CallEntry{DurationMS: float64(x.Duration.Microseconds()) / 1000, Exchange: x, Process: j.process})
}

// gather lets all processes write down what they have; find sees it then.
func (j *journal) gather(ctx context.Context) error {
	if j.calls.to == nil {
		return nil
	}
	return j.calls.to.gather(ctx)
}

// follow takes over whether bodies are kept, and writes down what there is.
func (j *journal) follow(ctx context.Context, state []byte) error {
	kept := keptBodies{Bodies: true}
	if len(state) > 0 {
		if err := json.Unmarshal(state, &kept); err != nil {
			return fmt.Errorf("read setting %s: %w", settingJournal, err)
		}
	}
	j.bodies.Store(kept.Bodies)
	return j.calls.to.write(ctx)
}

// clean takes the secrets of a call out of a text: its token, and every value
// of its body that the journal would replace.
func (j *journal) clean(c *call, text string) string {
	return secretsOf(c).text(text)
}

// forget empties all journals. Numbers and ids count on.
func (j *journal) forget(ctx context.Context) error {
	return errors.Join(j.requests.clear(ctx), j.calls.clear(ctx), j.webhooks.clear(ctx))
}

// secretsOf gathers what must not be kept of a call.
func secretsOf(c *call) *masks {
	m := &masks{}
	if token, err := bearer(c.r); err == nil {
		m.know(token)
	}
	if body := c.arrived(); len(body) > 0 {
		m.learn(body)
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
