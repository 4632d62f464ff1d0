// Package journal owns the records of the last requests of the API and of the last
// calls of destinations and webhooks, without any secret, and the routes of the control
// API that read it.
package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/controlapi"
	"github.com/destkit/destkit/server/internal/sync/destination"
)

// Journal keeps the last requests of the API and the last calls of destinations
// and webhooks, without any secret: they are taken out before an entry is kept.
type Journal struct {
	owned    func(ctx context.Context, organizationID int64) (map[int64]bool, error) // the ids of its destinations
	IDs      requestIDs
	bodies   atomic.Bool
	Requests book[controlapi.RequestEntry]
	Calls    book[CallEntry]
	webhooks book[WebhookEntry]
}

// The bounds of each of the journals; a body above maxKeptBody is kept as
// its length only.
const (
	mostOnPage   = 10_000
	mostEntries  = 100_000
	journalBytes = 64 << 20
	callBytes    = 24 << 20
	maxKeptBody  = 64 << 10
)

// New keeps bodies by default: a failed test wants them. owned
// gives the ids of the destinations of an organization.
func New(owned func(ctx context.Context, organizationID int64) (map[int64]bool, error)) *Journal {
	j := &Journal{owned: owned}
	j.bodies.Store(true)
	j.Requests = newBook(journalBytes, func(e *controlapi.RequestEntry) int {
		return 256 + len(e.Path) + len(e.Query) + len(e.Request) + len(e.Response)
	})
	j.Requests.number = func(e *controlapi.RequestEntry) int64 { return e.Number }
	j.Requests.key = func(e *controlapi.RequestEntry) string { return e.ID }
	j.Requests.sign = func(e *controlapi.RequestEntry, number int64) { e.Number = number }
	j.Calls = newBook(callBytes, func(e *CallEntry) int {
		return 512 + len(e.Error) + e.BodyBytes()
	})
	j.Calls.number = func(e *CallEntry) int64 { return e.Number }
	j.Calls.key = func(e *CallEntry) string { return e.RequestID }
	j.Calls.sign = func(e *CallEntry, number int64) { e.Number, e.ID = number, fmt.Sprintf("call_%012d", number) }
	j.Calls.show = (*CallEntry).show
	j.webhooks = newBook(journalBytes, func(e *WebhookEntry) int {
		return 512 + len(e.Error) + len(e.Body)
	})
	j.webhooks.number = func(e *WebhookEntry) int64 { return e.Number }
	j.webhooks.key = func(e *WebhookEntry) string { return fmt.Sprintf("%d/%d", e.DeliveryID, e.Attempt) }
	j.webhooks.sign = func(e *WebhookEntry, number int64) { e.Number, e.ID = number, fmt.Sprintf("webhook_%012d", number) }
	return j
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

// Recorder follows one request to its end. code 0 is a dropped connection.
type Recorder struct {
	j     *Journal
	c     *call.Call
	seq   int64
	began time.Time
	Code  int
	Body  []byte
}

// Begin takes the next id. Ids count, so the same calls get the same ids.
func (j *Journal) Begin(c *call.Call) *Recorder {
	// Durations are real time: the service's clock may be stopped or jump.
	return &Recorder{j: j, c: c, seq: j.IDs.Next(), began: time.Now()}
}

// ID is known before the call ends, for the header of its reply.
func (r *Recorder) ID() string { return requestID(r.seq) }

// End keeps the request with the ids of the faults that struck it, and gives how long
// it took.
func (r *Recorder) End(faults []string) (took time.Duration) {
	c, j := r.c, r.j
	took = time.Since(r.began)
	secrets := SecretsOf(c)
	entry := controlapi.RequestEntry{
		ID: r.ID(), At: api.Time{Time: c.Began}, DurationMS: float64(took.Microseconds()) / 1000,
		OrganizationID: c.Who.OrganizationID, WorkspaceID: c.Who.WorkspaceID,
		Operation: c.Op.ID, Method: c.R.Method, Path: secrets.Path(c.R.URL), Query: secrets.Query(c.R.URL),
		Status: r.Code, RequestBytes: len(c.Arrived()), ResponseBytes: len(r.Body),
		Faults: faults,
	}
	if j.bodies.Load() {
		entry.Request = secrets.body(c.Arrived(), true)
		switch {
		case len(r.Body) > maxKeptBody: // too large to keep
		case showsSecrets(c.Op.Path) || r.Code >= http.StatusBadRequest || secrets.holds(r.Body):
			entry.Response = secrets.body(r.Body, false)
		default:
			entry.Response = bytes.Clone(bytes.TrimSpace(r.Body))
		}
	}
	j.Requests.add(entry)
	return took
}

// showsSecrets reports whether the replies of a path can hold keys of secrets. The
// others, which are those that clients ask for most, are not searched for them.
func showsSecrets(path string) bool {
	return !strings.HasPrefix(path, "/sync") && !strings.HasPrefix(path, "/users") && !strings.HasPrefix(path, "/source_types")
}

// Observe keeps an outgoing call; it is called from many goroutines.
func (j *Journal) Observe(x destination.Exchange) {
	if !j.bodies.Load() {
		x = x.WithoutBodies()
	}
	j.Calls.add(CallEntry{DurationMS: float64(x.Duration.Microseconds()) / 1000, Exchange: x})
}

// Clean takes the secrets of a call out of a text: its token, and every value
// of its body that the journal would replace.
func (j *Journal) Clean(c *call.Call, text string) string {
	return SecretsOf(c).Text(text)
}

// Forget empties all journals. Numbers and ids count on.
func (j *Journal) Forget() {
	j.Requests.clear()
	j.Calls.clear()
	j.webhooks.clear()
}

// SecretsOf gathers the secrets of a call.
func SecretsOf(c *call.Call) *Masks {
	m := &Masks{}
	if token, err := call.Bearer(c.R); err == nil {
		m.Know(token)
	}
	if body := c.Arrived(); len(body) > 0 {
		m.learn(body)
	}
	return m
}

// Path is the path as it may be kept.
func (m *Masks) Path(u *url.URL) string {
	const longest = 500
	path := u.EscapedPath()
	if len(path) > longest {
		path = path[:longest] + "…"
	}
	return m.Text(path)
}

// shownParameters are the parameters whose values are kept; clients write
// anything into others.
var shownParameters = []string{
	"page", "per_page", "order", "refresh_key", "type", "force_full_sync",
	"table_name", "table_schema", "table_catalog",
}

// Query is the query as it may be kept.
func (m *Masks) Query(u *url.URL) string {
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
	return strings.ReplaceAll(m.Text(values.Encode()), url.QueryEscape(hidden), hidden)
}

// Stamp changes with every entry.
func (j *Journal) Stamp() string {
	return fmt.Sprint(j.Requests.ring.stamp(), j.Calls.ring.stamp(), j.webhooks.ring.stamp())
}
