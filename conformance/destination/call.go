package destination

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/unreached"
	"github.com/destkit/destkit/openapi"
)

// request is one call as a step wants it; the zero value of everything but
// method is what the service would send.
type request struct {
	method string
	params []byte // "{}" when nil
	id     string // a fresh one when empty
	object string // the object that it speaks of, for the report

	body    []byte // the whole body, instead of method, params and id
	odd     bool   // deliberately outside the published schema
	records int

	httpMethod string
	header     http.Header // overrides; a nil value removes a header
	url        string
	timeout    time.Duration
	fresh      bool
	conn       *wire.Conn
	chunked    bool
	expect     bool
	cutRequest int // abort after that many bytes of the body
	cutReply   int // close after that many bytes of the reply
	cutAtOnce  bool
	plain      bool // over plain http on the probe port
	hops       int
	replica    int // goes to this one, from 1; 0: to whose turn it is
}

// refusedEarly is a request that many endpoints refuse before they read its body.
// The rest would stand before the next call of the connection and spoil that of
// another check: it gets a connection of its own, and ERR-002 judges what is left.
func (r *request) refusedEarly() bool {
	_, changed := r.header["Authorization"]
	return r.conn == nil && (changed || r.httpMethod != "")
}

// reply is what came back, with the request that it answers.
type reply struct {
	*wire.Reply
	id     string
	method string
	object string
	small  *wire.Node // the values of a small body; doc gives those of any
	trees  *trees     // where those of a larger one are kept; nil of no JSON and of a small one
	docErr error
	plain  bool // over plain http, without the token
	// replica is the one that was called, 0 for the URL itself.
	replica int
	// redirected are the replies that led here.
	redirected []*reply
}

// send sends one request and reads its reply. An error means that the judge
// failed or that the run is over; what the endpoint does wrong is in the reply.
func (sc *scenario) send(req request) (*reply, error) {
	r, err := sc.session.send(sc.ctx, sc.Check().ID, req)
	if r != nil {
		sc.replies = append(sc.replies, r)
	}
	return r, err
}

func (s *session) send(ctx context.Context, check string, req request) (*reply, error) {
	if req.params == nil {
		req.params = []byte("{}")
	}
	if req.id == "" {
		req.id = s.newID()
	}
	body := req.body
	if body == nil {
		body = rpc.EncodeRequest(nil, req.method, req.params, req.id)
		if !req.odd {
			if err := openapi.ValidateParams(req.method, sample(req.params)); err != nil {
				return nil, harness("the judge was about to send a %s request outside the published schema: %w", req.method, err)
			}
		}
	}
	if req.timeout == 0 {
		req.timeout = s.deadline(req.method)
	}
	header := http.Header{}
	if token := s.token.get(); token != s.target.Token && token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	for name, values := range req.header {
		header[name] = values
	}
	address := ""
	if req.plain {
		address = net.JoinHostPort(s.url.Hostname(), strconv.Itoa(s.opts.ProbePlainHTTP))
		header["Authorization"] = nil // no token over plain http
	}
	if req.method == rpc.MethodSyncBatch && req.hops == 0 {
		if err := s.pace.enter(ctx); err != nil {
			return nil, overtime(ctx)
		}
		defer s.pace.leave()
	}
	replica, to := s.replicas.next(check, &req), s.line
	if replica > 0 {
		to = s.replicas.lines[replica]
	}
	started, gone := s.watch.enter()
	defer s.watch.leave()
	if gone != nil {
		return nil, gone.err()
	}
	got := to.Do(ctx, wire.Call{
		Check: check, RPC: req.method, ID: req.id, HTTPMethod: req.httpMethod, URL: req.url, Header: header,
		Body: body, Chunked: req.chunked, ExpectContinue: req.expect, Timeout: req.timeout,
		Plain: req.plain, Address: address,
		FreshConn: req.fresh || req.refusedEarly(), Conn: req.conn, Records: req.records,
		CutAfterRequest: req.cutAtOnce, CutResponseAfter: req.cutReply, CutRequestAfter: req.cutRequest,
	})
	if over(ctx) {
		return nil, overtime(ctx)
	}
	if ended(got) {
		s.responded.Store(true)
	}
	s.watch.hears(got)
	if err := s.away(ctx, to, check, req, got, started); err != nil {
		return nil, err
	}
	s.noticeRateLimit(got)
	r := &reply{Reply: got, id: req.id, method: req.method, object: req.object, plain: req.plain, replica: replica}
	if to := s.redirect(got, req); to != "" {
		req.url, req.hops = to, req.hops+1
		next, err := s.send(ctx, check, req)
		if next != nil {
			next.redirected = append([]*reply{r}, next.redirected...)
		}
		return next, err
	}
	r.parse(&s.trees)
	s.notice(req, r)
	return r, nil
}

// redirect is where a reply sends the caller on the same host. HTTP-004 judges
// the redirect; all other checks look at the answer behind it, for which the
// POST is repeated.
func (s *session) redirect(r *wire.Reply, req request) string {
	if !r.OK() || r.Status < 300 || r.Status > 399 || req.hops >= 3 || req.conn != nil || req.plain {
		return ""
	}
	from := s.url
	if req.url != "" {
		from, _ = url.Parse(req.url)
	}
	to, err := from.Parse(r.Header.Get("Location"))
	if err != nil || r.Header.Get("Location") == "" || to.Host != s.url.Host || to.Scheme != s.url.Scheme {
		return ""
	}
	return to.String()
}

// sampled is the length up to which params are validated whole; the records of
// a batch are alike, so that of a longer one the first few stand for all.
const sampled = 16 << 10

func sample(params []byte) []byte {
	if len(params) <= sampled {
		return params
	}
	start := bytes.Index(params, []byte(`"records":[`))
	if start < 0 {
		return params
	}
	start += len(`"records":[`)
	dec := json.NewDecoder(bytes.NewReader(params[start:]))
	var first json.RawMessage
	if dec.Decode(&first) != nil {
		return params
	}
	out := append(params[:start:start], first...)
	return append(out, "]}"...)
}

// over reports whether the run has ended. Its deadline cuts off the reading of a
// reply too, perhaps a moment before the context itself is done.
func over(ctx context.Context) bool {
	if at, ok := ctx.Deadline(); ok && !time.Now().Before(at) {
		<-ctx.Done()
	}
	return ctx.Err() != nil
}

// overtime says why the run ended before this check did.
func overtime(ctx context.Context) error {
	if o, timeUp := errors.AsType[decided](context.Cause(ctx)); timeUp {
		return o
	}
	return notRun("", "the run was interrupted")
}

// parse reads the body as JSON. A body that is labelled gzip and is not is
// judged by HTTP-007 alone; everything else looks at the bytes as they came.
//
// One that cannot be held beside others is as one that did not arrive: nothing is known
// of it.
func (r *reply) parse(trees *trees) {
	if !r.OK() {
		r.docErr = fmt.Errorf("no complete reply: %s", r.failure())
		return
	}
	root, cost, err := r.Tree()
	if r.docErr = err; err != nil {
		if wire.Classify(err, r.Received) == wire.KindUnread {
			r.Kind, r.Err = wire.KindUnread, err
		}
		return
	}
	if cost <= smallTree || trees == nil {
		r.small = root
		return
	}
	r.trees = trees
	trees.put(r, root, cost)
}

// failure describes what kept a complete reply from coming.
func (r *reply) failure() string {
	switch {
	case r.Kind == wire.KindTimeout:
		return fmt.Sprintf("no complete reply within %s", round(r.Total))
	case r.Kind == wire.KindClosed:
		return "the server closed the connection without responding"
	case r.Kind == wire.KindReset && (errors.Is(r.Err, syscall.ECONNRESET) || errors.Is(r.Err, syscall.EPIPE)):
		return "the server reset the connection without responding"
	case r.Kind == wire.KindTruncated && errors.Is(r.Err, io.ErrUnexpectedEOF):
		return "the response was truncated: the connection ended in the middle of it"
	case r.Kind == wire.KindTruncated && (errors.Is(r.Err, syscall.ECONNRESET) || errors.Is(r.Err, syscall.EPIPE)):
		return "the response was truncated: the server reset the connection in the middle of it"
	case r.Err != nil && r.Received == 0 && r.Kind != wire.KindCanceled:
		return inWords(r.Err, "the endpoint")
	case r.Err != nil:
		return r.Err.Error()
	case r.OK():
		return fmt.Sprintf("HTTP status %d", r.Status)
	}
	return string(r.Kind)
}

// inWords says in plain words what kept a call to a host, or its connection, from coming
// about.
func inWords(err error, host string) string {
	if cause := unreached.Of(err, "endpoint", host); cause.What != "" {
		return cause.What
	}
	return err.Error()
}

// member returns a top-level member of the reply, nil when it is absent.
func (r *reply) member(name string) *wire.Node {
	return r.doc().Get(name)
}

// result returns the result when it is an object and no error stands beside it. A
// null error is RPC-004's, and hides nothing else.
func (r *reply) result() *wire.Node {
	e := r.member("error")
	if n := r.member("result"); n != nil && n.Kind == wire.Object && (e == nil || e.Kind == wire.Null) {
		return n
	}
	return nil
}

// isError tells a JSON-RPC error.
func (r *reply) isError() bool {
	n := r.member("error")
	return n != nil && n.Kind != wire.Null && r.member("result") == nil
}

// errorText returns the message of a JSON-RPC error, its beginning where it is so long
// that no person would read it: what is made of it is redacted, searched and kept.
func (r *reply) errorText() string { return beginning(r.wholeErrorText()) }

// longestMessage bounds a message of an endpoint in bytes, but for the checks that are
// about its length.
const longestMessage = 64 << 10

// beginning is a message up to longestMessage, without half a character at its end.
func beginning(message string) string {
	if len(message) <= longestMessage {
		return message
	}
	return strings.ToValidUTF8(message[:longestMessage], "")
}

func (r *reply) wholeErrorText() string {
	if n := r.member("error"); n != nil {
		if m := n.Get("message"); m != nil && m.Kind == wire.String {
			return m.Text
		}
		return string(n.Raw)
	}
	return ""
}

// kindOf names the kind of a reply: the method and the shape of what came back,
// the same for all replies of one defect. An ordinary record result has none.
func (r *reply) kindOf() string {
	shape := ""
	// A null id of an error is that of a request that could not be read.
	if _, actual := sameID(r); actual != "" && (!r.member("id").Is(wire.Null) || r.member("result") != nil) {
		return "another id"
	}
	switch {
	case !r.complete():
		shape = string(r.Kind)
	case r.doc() == nil:
		shape = fmt.Sprintf("HTTP %d without JSON", r.Status)
	case r.isError():
		shape = fmt.Sprintf("HTTP %d error %s", r.Status, r.errorCode())
	case r.result() == nil:
		shape = fmt.Sprintf("HTTP %d %s", r.Status, r.shape())
	case r.method == rpc.MethodSyncBatch && !r.result().Get("record_results").Is(wire.Array):
		shape = "no record_results"
	case r.method == rpc.MethodSyncBatch:
		return ""
	default:
		return r.methodName() + " " + r.object + ": result"
	}
	return r.methodName() + ": " + shape
}

// methodName is the method, the same for all that do not exist.
func (r *reply) methodName() string {
	if r.method != "" && !slices.Contains(rpc.Methods(), r.method) {
		return "an unknown method"
	}
	return r.method
}

func (r *reply) errorCode() string {
	if c := r.member("error").Get("code"); c != nil {
		return string(c.Raw)
	}
	return ""
}

// shape lists the members of an envelope with their kinds.
func (r *reply) shape() string {
	var parts []string
	for _, m := range r.doc().Members {
		parts = append(parts, fmt.Sprintf("%s %v", m.Name, m.Value.Kind))
	}
	return strings.Join(parts, " ")
}

// what describes the call for a finding: `list_fields of "contact"`.
func (r *reply) what() string {
	if r.object != "" {
		return fmt.Sprintf("%s of %q", r.method, r.object)
	}
	if r.method == "" {
		return "the call"
	}
	return r.method
}

// short shows the reply in a line.
func (r *reply) short() string {
	if !r.OK() && r.Kind != wire.KindEncoding {
		return r.failure()
	}
	// What is shown is at the beginning, and the body may be as long as it likes.
	text := strings.ToValidUTF8(string(r.Body[:min(len(r.Body), utf8.UTFMax*(shownCharacters+1))]), "\ufffd")
	if text == "" {
		return fmt.Sprintf("HTTP %d with an empty body", r.Status)
	}
	if r.Status != http.StatusOK {
		return fmt.Sprintf("HTTP %d %s", r.Status, truncate(text, shownCharacters-20))
	}
	return truncate(text, shownCharacters)
}

// shownCharacters is how many characters of a reply a finding shows.
const shownCharacters = 260

// truncate shortens a text for a finding to n characters. It makes no copy of the text,
// which an endpoint may have made very long.
func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	count := 0
	for i := range s {
		if count == n {
			return s[:i] + " …"
		}
		count++
	}
	return s
}

func round(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}

// objectParams are the params of list_fields and supported_operations.
func objectParams(o rpc.Object) []byte {
	b, _ := json.Marshal(map[string]rpc.ObjectRef{"object": o.Ref()})
	return b
}
