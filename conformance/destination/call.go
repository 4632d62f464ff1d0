package destination

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
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
	unrepeated bool // a disturbance is what the caller looks for, or repeats itself
	once       bool // takes effect once: a repeat may be answered in another way
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

type (
	reply  = exchange.Reply
	result = exchange.Result
)

// send sends one request and reads its reply. An error means that the judge
// failed or that the run is over; what the endpoint does wrong is in the reply.
func (sc *scenario) send(req request) (*reply, error) {
	r, err := sc.session.send(sc.ctx, sc.Check().ID, req)
	if r != nil {
		sc.replies = append(sc.replies, r)
	}
	return r, err
}

// valid holds a request that is meant to be good to the published schema. The records of a
// plan are alike: its first batch stands for all.
func (s *session) valid(req *request) error {
	if req.odd {
		return nil
	}
	plan, _, _ := bytes.Cut(req.params, []byte(`"records":[`))
	key := req.method + string(plan)
	if _, known := s.validated.Load(key); known {
		return nil
	}
	if err := openapi.ValidateParams(req.method, rules.Sample(req.params)); err != nil {
		return harness("the judge was about to send a %s request outside the published schema: %w", req.method, err)
	}
	s.validated.Store(key, true)
	return nil
}

// sendOnce makes a call without a repeat.
func (s *session) sendOnce(ctx context.Context, check string, req request) (*reply, error) {
	if req.params == nil {
		req.params = []byte("{}")
	}
	if req.id == "" {
		req.id = s.newID()
	}
	body := req.body
	if body == nil {
		body = rpc.EncodeRequest(nil, req.method, req.params, req.id)
		if err := s.valid(&req); err != nil {
			return nil, err
		}
	}
	req.timeout = cmp.Or(req.timeout, s.deadline(req.method))
	header := http.Header{}
	if token := s.token.get(); token != s.target.Token && token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	maps.Copy(header, req.header)
	address := ""
	if req.plain {
		address = net.JoinHostPort(s.url.Hostname(), strconv.Itoa(s.opts.ProbePlainHTTP))
		header["Authorization"] = nil // no token over plain http
	}
	if req.method == rpc.MethodSyncBatch && req.hops == 0 {
		if err := s.pace.enter(ctx); err != nil {
			return nil, unsentError{overtime(ctx)}
		}
		defer s.pace.leave()
	}
	replica, to := s.replicas.next(check, &req), s.client
	if replica > 0 {
		to = s.replicas.lines[replica]
	}
	call, gone := s.watch.enter(nameOf(req, check), req)
	defer s.watch.leave(call)
	if gone != nil {
		return nil, unsentError{gone.err()}
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
	if got.Ended() {
		s.responded.Store(true)
	}
	s.watch.hears(got)
	if err := s.away(ctx, to, call, req, got); err != nil {
		if got.Unsent() {
			err = unsentError{err}
		}
		return nil, err
	}
	s.noticeRateLimit(got)
	r := &reply{Reply: got, ID: req.id, Method: req.method, Object: req.object, Plain: req.plain, Replica: replica}
	r.Parse(&s.trees)
	if to := s.redirect(got, req); to != "" {
		s.saw(req, r)
		req.url, req.hops = to, req.hops+1
		next, err := s.sendOnce(ctx, check, req)
		if next != nil {
			next.Redirected = append([]*reply{r}, next.Redirected...)
		}
		return next, err
	}
	return r, nil
}

// unsentError is the end of a call of which no byte has left.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

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

// objectParams are the params of list_fields and supported_operations.
func objectParams(o rpc.Object) []byte {
	b, _ := json.Marshal(map[string]rpc.ObjectRef{"object": o.Ref()})
	return b
}

const (
	// The bodies themselves stay until the end of their scenario: so many bytes of those
	// that are asked for object by object, over all scenarios.
	keptBodies = 24 << 20
	fewBytes   = 1 << 20 // are not counted
)

// reserve waits until the answers about all these objects have room beside those that
// other scenarios keep. Calls are counted twice: some are made again.
func (sc *scenario) reserve(calls []request) error {
	size := 0
	for _, c := range calls {
		if o := sc.catalog.object(c.object); o != nil {
			size += 2 * o.size
		}
	}
	if size < fewBytes || sc.reserved > 0 {
		return nil
	}
	n := int64(min(size, keptBodies))
	if err := sc.wide.Acquire(sc.ctx, n); err != nil {
		return overtime(sc.ctx)
	}
	sc.reserved = n
	return nil
}

// release gives the room to others.
func (sc *scenario) release() {
	if sc.reserved > 0 {
		sc.wide.Release(sc.reserved)
	}
	sc.reserved = 0
}

// saw shows a reply to what looks at every exchange of the run.
func (s *session) saw(req request, r *reply) *reply {
	if r != nil && s.seen != nil {
		s.seen(req, r)
	}
	return r
}
