package server

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/strictjson"
)

// reply is what a handler answers. Raw, when set, is the finished body, and
// release gives its memory back once it was written and kept.
type reply struct {
	code       int
	body       any
	raw        []byte
	release    func()
	deprecated bool
}

// answer serves one operation: who calls, which faults are due, is the request
// well formed, what does the handler say, is that what the document promises.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, op *operation) {
	c := &call{s: s, ctx: r.Context(), r: r, op: op, began: s.clock.Now()}
	// A client may send and read as slowly as it likes. The world is held only in
	// between: a snapshot that waits for it makes all other calls wait.
	patiently(w, r, c.receive)
	defer called(w, c)
	code, body, release := s.settle(w.Header(), c)
	defer release()
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

// settle does what a call asks for, fills in the headers of its answer and keeps
// it in the journal. The body is good until release.
func (s *Server) settle(header http.Header, c *call) (code int, body []byte, release func()) {
	recorder := s.journal.begin(c)
	defer recorder.end()
	got, err := s.resolve(c)
	release = func() {
		if got != nil && got.release != nil {
			got.release()
		}
	}
	if err == nil {
		err = s.faults.after(c)
	}
	var dropped *droppedConnection
	if errors.As(err, &dropped) {
		release()
		panic(http.ErrAbortHandler) // the recorder keeps the status 0
	}
	for _, warning := range c.warnings {
		header.Add("Warning", `299 - `+strconv.QuoteToASCII(warning))
	}
	if err == nil {
		code, body = got.code, got.raw
		if body == nil {
			body, err = strictjson.Encode(got.body)
		}
		s.markDeprecated(header, c, got)
	}
	if err != nil {
		code, body = s.fail(header, c, err)
	}
	header.Set("Content-Type", "application/json; charset=utf-8")
	header.Set("X-Request-Id", recorder.id())
	if s.config.Development {
		code, body = s.verify(c, code, header, body)
	}
	recorder.code, recorder.body = code, body
	header.Set("Content-Length", strconv.Itoa(len(body)))
	return code, body, release
}

// resolve is judge for a world that does not stay as it was. A call that waited while
// the world was replaced begins anew, as if it had come after that; so does one that
// refers to what is gone, to find out whether its caller is.
func (s *Server) resolve(c *call) (*reply, error) {
	for {
		got, err := s.judge(c)
		switch {
		case errors.Is(err, errWorldReplaced):
			if gone := c.ctx.Err(); gone != nil {
				return nil, gone // its caller has left
			}
			c.again()
		case errors.Is(err, store.ErrGone):
			return nil, cmp.Or(s.authenticate(c), err)
		default:
			return got, err
		}
	}
}

// again forgets what was made of the request.
func (c *call) again() {
	if c.sent != nil {
		c.body, c.sent = c.sent, nil
	}
	c.who, c.present, c.warnings = principal{}, nil, nil
}

// judge does everything up to the handler's answer.
func (s *Server) judge(c *call) (got *reply, err error) {
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			got, err = nil, fmt.Errorf("panic in %s: %v\n%s", c.op.ID, p, debug.Stack())
		}
	}()
	// Who calls comes first: a stranger learns nothing of faults, and nothing
	// of what is wrong with the body.
	if err := s.authenticate(c); err != nil {
		return nil, err
	}
	if err := s.faults.before(c); err != nil {
		return nil, err
	}
	if err := c.read(); err != nil {
		return nil, err
	}
	return c.op.handle(c)
}

// bodyTime is how long a body may take to arrive, in real time.
const bodyTime = 2 * time.Minute

// patiently lets read take the body of a request. Where the connection knows
// deadlines, a body that does not arrive is given up; what the handler does
// afterwards may take longer.
func patiently(w http.ResponseWriter, r *http.Request, read func()) {
	if r.Body != nil && r.Body != http.NoBody {
		connection := http.NewResponseController(w)
		if connection.SetReadDeadline(time.Now().Add(bodyTime)) == nil {
			defer func() { _ = connection.SetReadDeadline(time.Time{}) }()
		}
	}
	read()
}

// receive takes the body up to the limit. What is wrong with it is told only
// once it is known who calls.
func (c *call) receive() {
	limit := c.s.config.MaxBody
	switch {
	case c.op.Auth != "" && c.r.Header.Get("Authorization") == "":
		return // refused in any case, so nothing need be sent
	case c.r.ContentLength > limit && c.r.Header.Get("Expect") != "":
		// The client waits with its body. One that is sending already gets its
		// answer more surely when some of it is taken.
		c.unread = &http.MaxBytesError{Limit: limit}
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, c.r.Body, limit))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		c.unread = err
	case err != nil:
		c.unread = problem.Refuse(http.StatusBadRequest, "the body ended before its announced length")
	default:
		c.body = body
	}
}

// maxWarnings bounds the Warning headers of a reply: many clients take no more
// than a hundred headers.
const maxWarnings = 20

// read holds the request against the document.
func (c *call) read() error {
	if c.unread != nil {
		return c.unread
	}
	var kept []api.Problem
	for _, p := range c.problems() {
		switch {
		case p.Loose && c.s.dialect.QueryBooleans && !p.OfBody():
			// published: the handlers read it with flag.
		case p.Unknown && c.s.dialect.UnknownFields:
			c.warnings = append(c.warnings, "unknown field "+p.Field+" was ignored")
		case p.Missing && c.s.dialect.PartialSyncUpdate && c.op.ID == "updateSync" && p.TopLevel():
			// published: real clients send only what changes.
		default:
			kept = append(kept, api.Problem{Field: p.Field, Message: p.Message})
		}
	}
	if more := len(c.warnings) - maxWarnings; more > 0 {
		c.warnings = append(c.warnings[:maxWarnings], fmt.Sprintf("and %d more", more))
	}
	if len(kept) > 0 {
		return problem.Invalid(kept)
	}
	return nil
}

// problems is what the document has against the request. Ids as texts are put
// right where the dialect takes them; a request without any is looked at once.
func (c *call) problems() []openapi.RESTProblem {
	problems := c.op.CheckRequest(c.r, c.paths(), c.body)
	loose := func(p openapi.RESTProblem) bool { return p.Loose && p.OfBody() }
	if !c.s.dialect.IDsAsText || !slices.ContainsFunc(problems, loose) {
		return problems
	}
	c.sent, c.body = c.body, c.op.NumberIDs(c.body)
	return c.op.CheckRequest(c.r, c.paths(), c.body)
}

// paths are the values of the path's parameters.
func (c *call) paths() map[string]string {
	values := map[string]string{}
	for rest := c.op.Path; ; {
		_, after, found := strings.Cut(rest, "{")
		if !found {
			return values
		}
		name, after, _ := strings.Cut(after, "}")
		values[name], rest = c.r.PathValue(name), after
	}
}

// fail writes the headers of a failure and gives its status and body.
func (s *Server) fail(header http.Header, c *call, err error) (int, []byte) {
	f := problem.Of(err)
	// Without a cause the answer says it all, such as that a worker serves no API.
	// A destination that is down is logged where it was asked.
	if f.Code >= http.StatusInternalServerError && f.Code != http.StatusBadGateway && f.Cause != nil {
		s.log.Error("call failed", "operation", c.op.ID, "status", f.Code, "error", s.journal.clean(c, fmt.Sprint(f.Cause)))
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
	c := &call{s: s, ctx: r.Context(), r: r, op: &operation{Operation: &openapi.Operation{}}, began: s.clock.Now()}
	recorder := s.journal.begin(c)
	code, body := s.fail(w.Header(), c, f)
	recorder.code, recorder.body = code, body
	recorder.end()
	called(w, c)
	w.Header().Set("X-Request-Id", recorder.id())
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

// verify is development mode: a reply that the document does not promise is a
// mistake of the service, and must not look like a good one.
func (s *Server) verify(c *call, code int, header http.Header, body []byte) (int, []byte) {
	err := c.op.CheckResponse(code, header, body)
	if err == nil {
		return code, body
	}
	s.log.Error("reply breaks the OpenAPI document", "operation", c.op.ID, "error", err)
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
func (s *Server) markDeprecated(header http.Header, c *call, got *reply) {
	// The strongest ground first: the operation itself, a field that was sent,
	// the dialect.
	since := c.op.DeprecatedSince
	if since.IsZero() && got.deprecated {
		since = syncFieldsDeprecated
	}
	if since.IsZero() && s.dialect.OrganizationDeprecated && slices.Contains([]string{"listUsers", "listInvitations", "createInvitation", "fetchInvitation", "updateInvitation", "deleteInvitation"}, c.op.ID) {
		since = organizationDeprecated
	}
	if since.IsZero() {
		return
	}
	header.Set("Deprecation", "@"+strconv.FormatInt(since.Unix(), 10))
	header.Set("Link", `</openapi.yaml>; rel="deprecation"; type="application/yaml"`)
}
