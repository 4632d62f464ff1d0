package rest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/faults"
	"github.com/destkit/destkit/server/internal/journal"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/statelock"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/clock"
)

// Answerer serves the operations of the API.
type Answerer struct {
	Shared  *call.Shared
	Log     *slog.Logger
	Clock   *clock.Clock
	Lock    *statelock.Lock
	Faults  *faults.Faults
	Journal *journal.Journal
	Metrics *Metrics
	Verify  bool // a reply that the document does not promise becomes an error

	callers call.Callers
}

// Answer serves one operation: who calls, which faults are due, is the request well formed,
// what the handler answers, and whether that conforms to the document.
func (a *Answerer) Answer(w http.ResponseWriter, r *http.Request, op *call.Operation) {
	c := &call.Call{Shared: a.Shared, Ctx: r.Context(), R: r, Op: op, Began: a.Clock.Now()}
	// A client may send and read as slowly as it likes. The lock of the state is held only
	// in between.
	call.Patiently(w, r, c.Receive)
	defer journal.Called(w, c)
	code, body, release := a.settle(w.Header(), c)
	defer release()
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

// settle executes a call, fills in the headers of its answer and records it in
// the journal. The body is good until release.
func (a *Answerer) settle(header http.Header, c *call.Call) (code int, body []byte, release func()) {
	recorder := a.Record(c)
	defer a.Recorded(c, recorder)
	got, err := a.resolve(c)
	release = func() {
		if got != nil && got.Release != nil {
			got.Release()
		}
	}
	if err == nil {
		err = a.Faults.After(c)
	}
	var dropped *faults.DroppedConnection
	if errors.As(err, &dropped) {
		release()
		panic(http.ErrAbortHandler) // the recorder keeps the status 0
	}
	for _, warning := range c.Warnings {
		header.Add("Warning", `299 - `+strconv.QuoteToASCII(warning))
	}
	if err == nil {
		code, body = got.Code, got.Raw
		if body == nil {
			body, err = rawjson.Encode(got.Body)
		}
		a.markDeprecated(header, c, got)
	}
	if err != nil {
		code, body = a.fail(header, c, err)
	}
	header.Set("Content-Type", "application/json; charset=utf-8")
	header.Set("X-Request-Id", recorder.ID())
	if a.Verify {
		code, body = a.verify(c, code, header, body)
	}
	recorder.Code, recorder.Body = code, body
	header.Set("Content-Length", strconv.Itoa(len(body)))
	return code, body, release
}

// resolve is handle for a state that changes meanwhile: where something is gone, it looks
// whether the caller is.
func (a *Answerer) resolve(c *call.Call) (*call.Reply, error) {
	got, err := a.handle(c)
	if errors.Is(err, store.ErrGone) {
		err = cmp.Or(a.callers.Authenticate(c), err)
	}
	return got, c.Hold.Failure(err)
}

// handle does everything up to the handler's answer.
func (a *Answerer) handle(c *call.Call) (got *call.Reply, err error) {
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			got, err = nil, fmt.Errorf("panic in %s: %v\n%s", c.Op.ID, p, debug.Stack())
		}
	}()
	// Who calls comes first: a stranger learns nothing of faults, and nothing
	// of errors in the body.
	if err := a.callers.Authenticate(c); err != nil {
		return nil, err
	}
	if err := a.Faults.Before(c); err != nil {
		return nil, err
	}
	if err := c.Read(); err != nil {
		return nil, err
	}
	return c.Op.Handle(c)
}

// fail writes the headers of a failure and gives its status and body.
func (a *Answerer) fail(header http.Header, c *call.Call, err error) (int, []byte) {
	f := problem.Of(err)
	// Without a cause the answer is sufficient, such as that a worker serves no
	// API. A destination that is down is logged at the call.
	if f.Code >= http.StatusInternalServerError && f.Code != http.StatusBadGateway && f.Cause != nil {
		level := slog.LevelError
		if c.R.Context().Err() != nil { // the caller has left
			level = slog.LevelDebug
		}
		a.Log.Log(context.Background(), level, "call failed", "operation", c.Op.ID, "status", f.Code, "error", a.Journal.Clean(c, fmt.Sprint(f.Cause)))
	}
	if f.Allow != "" {
		header.Set("Allow", f.Allow)
	}
	if f.Retry != "" {
		header.Set("Retry-After", f.Retry)
	}
	if f.Code == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", `Bearer realm="destkit"`)
	}
	body, err := rawjson.Encode(a.Shared.Dialect.Failure(f))
	if err != nil {
		return http.StatusInternalServerError, []byte(`{"status":"error","message":"the service failed","errors":[]}`)
	}
	return f.Code, body
}

// Refuse answers a call that belongs to no operation.
func (a *Answerer) Refuse(w http.ResponseWriter, r *http.Request, f *problem.Failure) {
	c := &call.Call{Shared: a.Shared, Ctx: r.Context(), R: r, Op: &call.Operation{Operation: &openapi.Operation{}}, Began: a.Clock.Now()}
	recorder := a.Record(c)
	code, body := a.fail(w.Header(), c, f)
	recorder.Code, recorder.Body = code, body
	a.Recorded(c, recorder)
	journal.Called(w, c)
	w.Header().Set("X-Request-Id", recorder.ID())
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

// verify is development mode: a reply that the document does not promise is a
// mistake of the service, and must not look like a good one.
func (a *Answerer) verify(c *call.Call, code int, header http.Header, body []byte) (int, []byte) {
	err := c.Op.CheckResponse(code, header, body)
	if err == nil {
		return code, body
	}
	a.Log.Error("reply breaks the OpenAPI document", "operation", c.Op.ID, "error", err)
	text, _ := rawjson.Encode(a.Shared.Dialect.Failure(problem.Refuse(http.StatusInternalServerError, "the reply breaks the OpenAPI document: %v", err)))
	return http.StatusInternalServerError, text
}

// organizationDeprecated is when the published pages deprecated users and
// invitations.
var organizationDeprecated = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)

// syncFieldsDeprecated is the date that the document gives for the deprecated
// fields of a sync (spec 9).
var syncFieldsDeprecated = time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC)

// markDeprecated sets the header of RFC 9745 where the operation or a field
// that the client sent is deprecated (spec 9).
func (a *Answerer) markDeprecated(header http.Header, c *call.Call, got *call.Reply) {
	// The strongest reason first: the operation itself, a field that was sent,
	// the dialect.
	since := c.Op.DeprecatedSince
	if since.IsZero() && got.Deprecated {
		since = syncFieldsDeprecated
	}
	if since.IsZero() && a.Shared.Dialect.OrganizationDeprecated && slices.Contains([]string{"listUsers", "listInvitations", "createInvitation", "fetchInvitation", "updateInvitation", "deleteInvitation"}, c.Op.ID) {
		since = organizationDeprecated
	}
	if since.IsZero() {
		return
	}
	header.Set("Deprecation", "@"+strconv.FormatInt(since.Unix(), 10))
	header.Set("Link", `</openapi.yaml>; rel="deprecation"; type="application/yaml"`)
}

// Record begins the entry of a call in the journal; until Recorded the call holds the
// lock of the state.
func (a *Answerer) Record(c *call.Call) *journal.Recorder {
	c.Hold = a.Lock.Enter(c.Ctx)
	c.Ctx = c.Hold.Ctx
	return a.Journal.Begin(c)
}

// Recorded ends the entry and counts the call.
func (a *Answerer) Recorded(c *call.Call, r *journal.Recorder) {
	defer c.Hold.Leave()
	a.Metrics.Request(c.Op.ID, r.Code, r.End(a.Faults.Taken(c)))
}
