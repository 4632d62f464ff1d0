package line

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/internal/unreached"
	"github.com/destkit/destkit/openapi"
)

// Request is one call as a step wants it; with a method alone it is what the service would send.
type Request struct {
	Method string
	Params []byte // "{}" when nil
	ID     string // a fresh one when empty
	Object string // the object that it speaks of, for the report

	Body    []byte // the whole body, instead of method, params and id
	Odd     bool   // deliberately outside the published schema
	Records int

	HTTPMethod string
	Header     http.Header // overrides; a nil value removes a header
	Fresh      bool        // on a separate connection
	CutReply   int         // close after that many bytes of the reply
	Unrepeated bool        // a disturbance is what the caller looks for, or repeats itself
	replica    int         // goes to this one, from 1; 0: to whose turn it is
	Manner
}

// Manner is how a call travels; the zero value as any other.
type Manner struct {
	URL             string
	timeout         time.Duration
	Conn            *wire.Conn
	Chunked, Expect bool
	CutRequest      int // abort after that many bytes of the body
	CutAtOnce       bool
	Plain           bool // over plain http on the probe port
	Once            bool // takes effect once: a repeat may be answered in another way
	hops            int
}

// refusedEarly is a request that many endpoints refuse before they read its body. The rest would
// precede the next call, so it gets its own connection; ERR-002 judges that.
func (r *Request) refusedEarly() bool {
	_, changed := r.Header["Authorization"]
	return r.Conn == nil && (changed || r.HTTPMethod != "")
}

// valid checks a request that is meant to be good against the published schema. The records of a
// plan are alike: its first batch represents all.
func (s *Session) valid(req *Request) error {
	if req.Odd {
		return nil
	}
	plan, _, _ := bytes.Cut(req.Params, []byte(`"records":[`))
	key := req.Method + string(plan)
	if _, known := s.validated.Load(key); known {
		return nil
	}
	if err := openapi.ValidateParams(req.Method, rules.Sample(req.Params)); err != nil {
		return Harness("the judge was about to send a %s request outside the published schema: %w", req.Method, err)
	}
	s.validated.Store(key, true)
	return nil
}

// sendOnce makes a call without a repeat.
func (s *Session) sendOnce(ctx context.Context, check string, req Request) (*exchange.Reply, error) {
	if req.Params == nil {
		req.Params = []byte("{}")
	}
	if req.ID == "" {
		req.ID = s.NewID()
	}
	body := req.Body
	if body == nil {
		body = rpc.EncodeRequest(nil, req.Method, req.Params, req.ID)
		if err := s.valid(&req); err != nil {
			return nil, err
		}
	}
	limit := s.Opts.PlanningTimeout
	if req.Method == rpc.MethodSyncBatch {
		limit = s.Opts.BatchTimeout
	}
	req.timeout = cmp.Or(req.timeout, limit)
	header := http.Header{}
	if token := s.Token.Get(); token != s.Target.Token && token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	maps.Copy(header, req.Header)
	address := ""
	if req.Plain {
		address = net.JoinHostPort(s.URL.Hostname(), strconv.Itoa(s.Opts.ProbePlainHTTP))
		header["Authorization"] = nil // no token over plain http
	}
	if req.Method == rpc.MethodSyncBatch && req.hops == 0 {
		leave, err := s.Pace.enter(ctx)
		if err != nil {
			return nil, UnsentError{Overtime(ctx)}
		}
		defer leave()
	}
	replica := s.Replicas.next(check, &req)
	to := s.Replicas.Lines[replica]
	call, gone := s.Watch.enter(nameOf(req, check), req)
	defer s.Watch.leave(call)
	if gone != nil && (!gone.Batches || req.Method == rpc.MethodSyncBatch) {
		return nil, UnsentError{gone.err()}
	}
	got := to.Do(ctx, wire.Call{
		Check: check, RPC: req.Method, ID: req.ID, HTTPMethod: req.HTTPMethod, URL: req.URL, Header: header,
		Body: body, Chunked: req.Chunked, ExpectContinue: req.Expect, Timeout: req.timeout,
		FreshConn: req.Fresh || req.refusedEarly(), Conn: req.Conn, Records: req.Records,
		Detour: wire.Detour{Plain: req.Plain, Once: req.Once, Address: address},
		Cut:    wire.Cut{CutAfterRequest: req.CutAtOnce, CutResponseAfter: req.CutReply, CutRequestAfter: req.CutRequest},
	})
	if over(ctx) {
		return nil, Overtime(ctx)
	}
	if got.Ended() {
		s.Responded.Store(true)
	}
	s.Watch.hears(got)
	r := &exchange.Reply{Reply: got, ID: req.ID, Method: req.Method, Object: req.Object, Plain: req.Plain, Replica: replica}
	if err := s.away(ctx, to, call, r); err != nil {
		if got.Unsent() {
			err = UnsentError{err}
		}
		return nil, err
	}
	s.noticeRateLimit(got)
	r.Parse(&s.Trees)
	if to := s.redirect(got, req); to != "" {
		s.saw(req, r)
		req.URL, req.hops = to, req.hops+1
		next, err := s.sendOnce(ctx, check, req)
		if next != nil {
			next.Redirected = append([]*exchange.Reply{r}, next.Redirected...)
		}
		return next, err
	}
	return r, nil
}

// UnsentError is the end of a call of which no byte has left.
type UnsentError struct{ error }

func (e UnsentError) Unwrap() error { return e.error }

// redirect is where a reply sends the caller on the same host. HTTP-004 judges that; all
// other checks look at the answer behind it, for which the POST is repeated.
func (s *Session) redirect(r *wire.Reply, req Request) string {
	if !r.OK() || r.Status < 300 || r.Status > 399 || req.hops >= 3 || req.Conn != nil || req.Plain {
		return ""
	}
	from := s.URL
	if req.URL != "" {
		from, _ = url.Parse(req.URL)
	}
	location := r.Header.Get("Location")
	to, err := from.Parse(location)
	if err != nil || location == "" || to.Host != s.URL.Host || to.Scheme != s.URL.Scheme {
		return ""
	}
	return to.String()
}

// over reports whether the run has ended. Its deadline cuts off the reading of a
// reply too, perhaps a moment before the context itself is done.
func over(ctx context.Context) bool {
	if at, ok := ctx.Deadline(); ok && !time.Now().Before(at) {
		<-ctx.Done()
	}
	return ctx.Err() != nil
}

// ObjectParams are the params of list_fields and supported_operations.
func ObjectParams(o rpc.Object) []byte {
	b, _ := json.Marshal(map[string]rpc.ObjectRef{"object": o.Ref()})
	return b
}

// KeptBodies limits the bytes of the bodies that are requested object by object and kept at once,
// each until the end of its scenario.
const (
	KeptBodies = 24 << 20
	FewBytes   = 1 << 20 // are not counted
)

// saw shows a reply to what looks at every exchange of the run.
func (s *Session) saw(req Request, r *exchange.Reply) *exchange.Reply {
	if r != nil && s.Seen != nil {
		s.Seen(req, r)
	}
	return r
}

// NoResponse distinguishes a reply that never started from one that never ended.
func NoResponse(r *exchange.Reply) string {
	if r.Received > 0 {
		return "no complete HTTP response"
	}
	return "no HTTP response"
}

// WhyUnreached explains in plain words why a reply did not end, and what to do.
func (s *Session) WhyUnreached(r *exchange.Reply, name, host string) (what, fix string) {
	cause := unreached.Of(r.Err, name, host)
	switch {
	case r.Kind == wire.KindTimeout && r.Framing == wire.FramingClose && len(r.Body) > 0:
		then := ""
		if json.Valid(r.Body) {
			then = ", then nothing"
		}
		return fmt.Sprintf("HTTP %d and %s came%s: the response has neither Content-Length nor chunked encoding, and the connection stays open",
			r.Status, quantity.Count(len(r.Body), "byte"), then), "send Content-Length, or close the connection"
	case r.Kind == wire.KindTimeout && r.Received > 0:
		return r.Failure(), "look whether the " + name + " hangs in the middle of a response, or announces a longer one than it sends"
	case cause == unreached.Cause{} || r.Received > 0:
		return r.Failure(), "check the URL, that the " + name + " runs, and that this machine may reach it"
	case cause.Late:
		return r.Failure(), cause.Fix // with the time
	}
	return cause.What, cause.Fix
}

// noticed notes when the hook gives no count.
func (s *Session) noticed(readback hook.Readback) hook.Readback {
	return func(ctx context.Context, q hook.ReadbackRequest) (hook.ReadbackReply, error) {
		reply, err := readback(ctx, q)
		if slices.ContainsFunc(reply.Records, func(r hook.ReadbackRecord) bool { return r.Uncounted }) {
			s.Uncounted.Store(true)
		}
		return reply, err
	}
}
