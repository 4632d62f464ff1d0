package server

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/faults"
	"github.com/destkit/destkit/server/internal/journal"
	"github.com/destkit/destkit/server/internal/latch"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/strictjson"
)

// answer serves one operation: who calls, which faults are due, is the request
// well formed, what does the handler say, is that what the document promises.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, op *call.Operation) {
	c := &call.Call{Shared: s.shared, Ctx: r.Context(), R: r, Op: op, Began: s.clock.Now()}
	// A client may send and read as slowly as it likes. The world is held only in
	// between: a snapshot that waits for it makes all other calls wait.
	call.Patiently(w, r, c.Receive)
	defer journal.Called(w, c)
	code, body, release := s.settle(w.Header(), c)
	defer release()
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

// settle does what a call asks for, fills in the headers of its answer and keeps
// it in the journal. The body is good until release.
func (s *Server) settle(header http.Header, c *call.Call) (code int, body []byte, release func()) {
	recorder := s.record(c)
	defer s.recorded(c, recorder)
	got, err := s.resolve(c)
	release = func() {
		if got != nil && got.Release != nil {
			got.Release()
		}
	}
	if err == nil {
		err = s.faults.After(c)
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
			body, err = strictjson.Encode(got.Body)
		}
		s.markDeprecated(header, c, got)
	}
	if err != nil {
		code, body = s.fail(header, c, err)
	}
	header.Set("Content-Type", "application/json; charset=utf-8")
	header.Set("X-Request-Id", recorder.ID())
	if s.config.Development {
		code, body = s.verify(c, code, header, body)
	}
	recorder.Code, recorder.Body = code, body
	header.Set("Content-Length", strconv.Itoa(len(body)))
	return code, body, release
}

// resolve is judge for a world that does not stay as it was. A call that waited while
// the world was replaced begins anew, as if it had come after that; so does one that
// refers to what is gone, to find out whether its caller is.
func (s *Server) resolve(c *call.Call) (*call.Reply, error) {
	for {
		got, err := s.judge(c)
		switch {
		case errors.Is(err, latch.ErrReplaced):
			if gone := c.Ctx.Err(); gone != nil {
				return nil, gone // its caller has left
			}
			c.Again()
		case errors.Is(err, store.ErrGone):
			return nil, cmp.Or(s.callers.Authenticate(c), err)
		default:
			return got, err
		}
	}
}

// judge does everything up to the handler's answer.
func (s *Server) judge(c *call.Call) (got *call.Reply, err error) {
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			got, err = nil, fmt.Errorf("panic in %s: %v\n%s", c.Op.ID, p, debug.Stack())
		}
	}()
	// Who calls comes first: a stranger learns nothing of faults, and nothing
	// of what is wrong with the body.
	if err := s.callers.Authenticate(c); err != nil {
		return nil, err
	}
	if err := s.faults.Before(c); err != nil {
		return nil, err
	}
	if err := c.Read(); err != nil {
		return nil, err
	}
	return c.Op.Handle(c)
}

// fail writes the headers of a failure and gives its status and body.
func (s *Server) fail(header http.Header, c *call.Call, err error) (int, []byte) {
	f := problem.Of(err)
	// Without a cause the answer says it all, such as that a worker serves no API.
	// A destination that is down is logged where it was asked.
	if f.Code >= http.StatusInternalServerError && f.Code != http.StatusBadGateway && f.Cause != nil {
		s.log.Error("call failed", "operation", c.Op.ID, "status", f.Code, "error", s.journal.Clean(c, fmt.Sprint(f.Cause)))
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
	body, err := strictjson.Encode(s.dialect.Failure(f))
	if err != nil {
		return http.StatusInternalServerError, []byte(`{"status":"error","message":"the service failed","errors":[]}`)
	}
	return f.Code, body
}

// refuseCall answers a call that belongs to no operation.
func (s *Server) refuseCall(w http.ResponseWriter, r *http.Request, f *problem.Failure) {
	c := &call.Call{Shared: s.shared, Ctx: r.Context(), R: r, Op: &call.Operation{Operation: &openapi.Operation{}}, Began: s.clock.Now()}
	recorder := s.record(c)
	code, body := s.fail(w.Header(), c, f)
	recorder.Code, recorder.Body = code, body
	s.recorded(c, recorder)
	journal.Called(w, c)
	w.Header().Set("X-Request-Id", recorder.ID())
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

// verify is development mode: a reply that the document does not promise is a
// mistake of the service, and must not look like a good one.
func (s *Server) verify(c *call.Call, code int, header http.Header, body []byte) (int, []byte) {
	err := c.Op.CheckResponse(code, header, body)
	if err == nil {
		return code, body
	}
	s.log.Error("reply breaks the OpenAPI document", "operation", c.Op.ID, "error", err)
	text, _ := strictjson.Encode(s.dialect.Failure(problem.Refuse(http.StatusInternalServerError, "the reply breaks the OpenAPI document: %v", err)))
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
func (s *Server) markDeprecated(header http.Header, c *call.Call, got *call.Reply) {
	// The strongest ground first: the operation itself, a field that was sent,
	// the dialect.
	since := c.Op.DeprecatedSince
	if since.IsZero() && got.Deprecated {
		since = syncFieldsDeprecated
	}
	if since.IsZero() && s.dialect.OrganizationDeprecated && slices.Contains([]string{"listUsers", "listInvitations", "createInvitation", "fetchInvitation", "updateInvitation", "deleteInvitation"}, c.Op.ID) {
		since = organizationDeprecated
	}
	if since.IsZero() {
		return
	}
	header.Set("Deprecation", "@"+strconv.FormatInt(since.Unix(), 10))
	header.Set("Link", `</openapi.yaml>; rel="deprecation"; type="application/yaml"`)
}

// record begins the entry of a call in the journal; until recorded the call holds the
// state of the service.
func (s *Server) record(c *call.Call) *journal.Recorder {
	s.latch.State.RLock()
	c.Ctx = latch.Holding(c.Ctx)
	return s.journal.Begin(c)
}

// recorded ends the entry and counts the call.
func (s *Server) recorded(c *call.Call, r *journal.Recorder) {
	defer s.latch.State.RUnlock()
	s.metrics.Request(c.Op.ID, r.Code, r.End(s.faults.Taken(c)))
}
