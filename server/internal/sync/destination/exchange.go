package destination

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/internal/sync/pace"
)

// Outcomes of a call.
const (
	OutcomeOK        = "ok"
	OutcomeRPCError  = "rpc_error"       // an error object (spec 7.2.2)
	OutcomeRefused   = "unauthorized"    // HTTP 401 or 403
	OutcomeStatus    = "http_status"     // another HTTP status than 200 without an error object
	OutcomeMalformed = "malformed_reply" // not the right keys (spec 7.2.1)
	OutcomeTooLarge  = "reply_too_large"
	OutcomeDNS       = "dns"
	OutcomeTLS       = "tls"
	OutcomeConnect   = "unreachable" // no connection: nothing listens, or no way there
	OutcomeNetwork   = "network"     // the connection broke
	OutcomeTimeout   = "timeout"
	OutcomeCanceled  = "canceled" // by the caller
	OutcomeURL       = "url"      // the URL itself may not be called
	OutcomeSecret    = "secret"   // not made: an emulated application refuses the credentials
	OutcomeLimit     = "limit"    // not sent: the limit of the connection leaves no room in time
)

// Exchange is one finished call as a journal may keep it: nothing secret.
type Exchange struct {
	Destination int64         `json:"destination_id"` // 0: not stored yet
	Type        string        `json:"type"`
	SyncID      int64         `json:"sync_id"`     // 0: no run has made it
	SyncRunID   int64         `json:"sync_run_id"` // 0: no run has made it
	Method      string        `json:"method"`      // of the protocol
	Endpoint    string        `json:"endpoint"`
	RequestID   string        `json:"request_id"`
	Started     time.Time     `json:"started_at"`
	Duration    time.Duration `json:"duration"`
	Status      int           `json:"http_status"` // 0: no reply
	Sent        int64         `json:"bytes_sent"`
	Received    int64         `json:"bytes_received"` // as received, before decoding
	Outcome     string        `json:"outcome"`
	Error       string        `json:"error"` // "" after OutcomeOK
	// Header holds X-RateLimit-Limit (spec 8), Retry-After, Content-Type and
	// Content-Encoding where the reply had them.
	Header http.Header `json:"headers"`

	large          bool   // it has a place among the large replies
	params, result []byte // as they were, for Bodies; nil when they are too large
	clean          *redactor
}

// MaxBodies is the length in bytes up to which params and result of a call are
// kept: those of large batches would fill the memory.
const MaxBodies = 16 << 10

// Bodies are params and result of the call without secrets, as JSON; nil where
// there were none or they were too large to keep.
func (x *Exchange) Bodies() (params, result json.RawMessage) {
	return x.cleaned(x.params), x.cleaned(x.result)
}

func (x *Exchange) cleaned(text []byte) json.RawMessage {
	if len(text) == 0 || x.clean == nil {
		return nil
	}
	// An endpoint may echo its input.
	if clean := []byte(x.clean.String(string(text))); json.Valid(clean) {
		return clean
	}
	return nil
}

// Mentions reports whether the bodies as they are shown have a text.
func (x *Exchange) Mentions(text *foreign.Search) bool {
	if !text.InBytes(x.params) && !text.InBytes(x.result) { // to take the secrets out costs more
		return false
	}
	params, result := x.Bodies()
	return text.InBytes(params) || text.InBytes(result)
}

// BodyBytes is how much memory the bodies take.
func (x *Exchange) BodyBytes() int { return len(x.params) + len(x.result) }

// keep records request and answer. The params are a buffer that is used
// again, the result is the caller's alone.
func (x *Exchange) keep(params any, result []byte, clean *redactor) {
	x.clean = clean
	if text, ok := params.(json.RawMessage); ok && len(text) <= MaxBodies {
		x.params = bytes.Clone(text)
	}
	if len(result) <= MaxBodies {
		x.result = bytes.Clone(result) // else it would keep all of the body
	}
}

// WithoutBodies forgets what Bodies gives.
func (x Exchange) WithoutBodies() Exchange {
	x.params, x.result, x.clean = nil, nil, nil
	return x
}

// keptHeaders of a reply; the third is a misspelling in published text.
var keptHeaders = []string{"X-Ratelimit-Limit", "Retry-After", "X-Ratelimit_limit", "Content-Type", "Content-Encoding"}

type exchangeKey struct{}

// observer records the traffic of a call in the Exchange of the context.
type observer struct{ next http.RoundTripper }

// RoundTrip notes status, kept headers and sizes. The context carries the
// Exchange, since one transport serves all connections of a destination.
func (o observer) RoundTrip(r *http.Request) (*http.Response, error) {
	x, _ := r.Context().Value(exchangeKey{}).(*Exchange)
	if x == nil {
		return o.next.RoundTrip(r)
	}
	x.Sent = r.ContentLength
	resp, err := o.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	x.Status = resp.StatusCode
	for _, name := range keptHeaders {
		if values := resp.Header[name]; len(values) > 0 {
			x.Header[name] = values
		}
	}
	resp.Body = &counted{resp.Body, x}
	return resp, nil
}

// counted counts the bytes of a reply.
type counted struct {
	io.ReadCloser
	x *Exchange
}

// Read counts bytes as they come from the wire, before they are decoded.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.x.Received += int64(n)
	return n, err
}

// caller makes the calls of one connection.
type caller struct {
	gate     *Gate
	limiter  *pace.Limiter
	id       int64
	typ      string
	endpoint string // scheme://host
	host     string // host:port as in the URL
	problem  string // why the URL must not be called
	refused  string // why an emulated destination answers nothing but that
	clean    *redactor
	client   rpc.Client
}

// exchange makes one call and passes it to the observer.
func (c *caller) exchange(ctx context.Context, method string, params any) (json.RawMessage, *Exchange, *CallError) {
	return c.checked(ctx, method, params, nil)
}

// checked is exchange with a result that must be of a shape: where check names a
// problem the call has failed (spec 7.2.1), for the observer too.
func (c *caller) checked(
	ctx context.Context, method string, params any, check func(json.RawMessage) (problem string),
) (json.RawMessage, *Exchange, *CallError) {
	x := c.newExchange(ctx, method)
	if c.problem != "" {
		return nil, x, &CallError{Method: method, Outcome: OutcomeURL, Message: c.problem}
	}
	if c.refused != "" {
		return nil, x, &CallError{Method: method, Outcome: OutcomeSecret, Message: c.refused}
	}
	attempts, ok := ctx.Value(attemptsKey{}).(Attempts)
	if !ok {
		attempts = one{}
		written, failed := c.pass(ctx, method)
		if failed != nil {
			return nil, x, failed
		}
		defer written()
		if ctx.Value(pacedKey{}) == nil {
			ctx = AtFirstByte(ctx, written)
		}
	}
	return c.repeated(ctx, attempts, method, params, check)
}

// runOf is the run for which calls are made.
type runOf struct{ sync, run int64 }

type runKey struct{}

// ForRun is the context of the calls of a run: their exchanges name it.
func ForRun(ctx context.Context, sync, run int64) context.Context {
	return context.WithValue(ctx, runKey{}, runOf{sync, run})
}

// newExchange begins the notes about one request.
func (c *caller) newExchange(ctx context.Context, method string) *Exchange {
	run, _ := ctx.Value(runKey{}).(runOf)
	return &Exchange{
		Destination: c.id, SyncID: run.sync, SyncRunID: run.run, Type: c.typ, Method: method, Endpoint: c.endpoint,
		Started: c.gate.options.Now(), Outcome: OutcomeOK, Header: http.Header{},
	}
}

// finish decides how a request has ended, and notifies the limiter and the
// observer. ctx is that of the caller, without the timeout of the call.
func (c *caller) finish(
	ctx context.Context, x *Exchange, params any, raw json.RawMessage, err error, check func(json.RawMessage) (problem string),
) (failed *CallError) {
	for name, values := range x.Header {
		clean := make([]string, len(values))
		for i, value := range values {
			clean[i] = c.clean.Foreign(value)
		}
		x.Header[name] = clean
	}
	if err != nil {
		failed = c.explain(ctx, x, err)
	} else if check != nil {
		if problem := check(raw); problem != "" {
			failed = &CallError{
				Method: x.Method, Outcome: OutcomeMalformed, Status: x.Status, Message: unknownError + c.clean.Foreign(problem),
				RetryAfter: x.Header.Get("Retry-After"), RateLimit: rateLimit(x), Call: x.RequestID,
			}
		}
	}
	if failed != nil {
		x.leave()
		x.Outcome, x.Error = failed.Outcome, failed.Message
	}
	c.heed(ctx, x)
	if c.gate.options.Observe != nil {
		x.keep(params, raw, c.clean)
		seen := *x
		seen.large = false
		c.gate.options.Observe(seen)
	}
	return failed
}

// timeout bounds one call of a method.
func (g *Gate) timeout(method string) time.Duration {
	if method == rpc.MethodSyncBatch {
		return g.options.BatchTimeout
	}
	return g.options.CallTimeout
}
