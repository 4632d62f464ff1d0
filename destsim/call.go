package destsim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/codec"
	"github.com/destkit/destkit/internal/rawjson"
)

// call is one HTTP request of the endpoint on its way through the pipeline.
type call struct {
	sim   *Sim
	w     http.ResponseWriter // nil on the fast path, see Server
	r     *http.Request
	start time.Time
	end   time.Time // set by finish
	verb  string    // the HTTP method that counts
	body  []byte    // the request body as read

	// Known after decoding; params and id are raw JSON, id nil is null.
	method string
	params []byte
	id     []byte
	object string // object_api_name of the params or the plan, "" where there is none

	denied bool // the clean verdict of auth: refused
	batch  *batch

	// The answer: result is raw JSON and counts when err is nil.
	done   bool // answered: nothing later changes the answer but answered
	gone   bool // the connection was ended without an answer
	status int
	result []byte
	err    *rpc.Error
	// encoded is the whole reply with that result, where it was written at once;
	// it lives until finish.
	encoded []byte

	reply httpReply // the sent reply, for later readers
	marks []string  // ids of the faults that touched the call
	touch *touch    // what they do to it, nil when no fault fires

	metered bool // counted as a batch under way

	decodedParams []byte // params as decoded into batch, and
	paramsErr     *rpc.Error
}

// serve runs the pipeline in the order that violation describes.
func (c *call) serve() {
	s := c.sim
	for _, f := range s.chain().http {
		if f(c) {
			return
		}
	}
	c.status = http.StatusOK
	switch {
	case c.verb != http.MethodPost:
		// Only POST carries calls (spec 4.2).
		c.refuse(http.StatusMethodNotAllowed, rpc.CodeInvalidRequest, "the endpoint takes POST only")
	case !c.read():
	default:
		c.decode()
		c.handle()
	}
	for _, f := range s.chain().answered {
		if !c.gone {
			f(c)
		}
	}
	if !c.gone {
		c.send(c.encode())
	}
}

// read takes the body in; a false result has an answer set.
func (c *call) read() bool {
	if c.body != nil {
		return true
	}
	limit := c.sim.config.MaxBody
	if c.r.ContentLength > limit {
		c.refuse(http.StatusRequestEntityTooLarge, rpc.CodeInvalidRequest, fmt.Sprintf("the body is longer than %d bytes", limit))
		return false
	}
	var err error
	if n := c.r.ContentLength; n >= 0 {
		c.body = make([]byte, n)
		_, err = io.ReadFull(c.r.Body, c.body)
	} else {
		c.body, err = io.ReadAll(io.LimitReader(c.r.Body, limit+1))
	}
	switch {
	case err != nil:
		c.refuse(http.StatusBadRequest, rpc.CodeParseError, "the body could not be read to its end")
		return false
	case int64(len(c.body)) > limit:
		c.refuse(http.StatusRequestEntityTooLarge, rpc.CodeInvalidRequest, fmt.Sprintf("the body is longer than %d bytes", limit))
		return false
	}
	return true
}

// decode fills method, params and id, and err when the envelope is wrong. The
// params of a sync_batch are decoded in the same pass over the body.
func (c *call) decode() {
	c.batch = c.sim.batches.Get().(*batch)
	c.batch.call = nil // calls are reused, and this one has no results yet
	q := &c.batch.request
	err := codec.DecodeCall(c.body, q, &c.batch.Batch)
	c.method, c.params, c.id = q.Method, q.Params, q.RawID
	switch q.Method {
	case rpc.MethodSyncBatch:
		c.decodedParams = c.params
		c.object = c.batch.Plan.Object.APIName
	case rpc.MethodListFields, rpc.MethodSupportedOperations:
		c.object, _ = objectName(c.params)
	}
	if err == nil {
		return
	}
	var e *rpc.Error
	switch {
	case !errors.As(err, &e):
		c.err = &rpc.Error{Code: rpc.CodeInternalError, Message: err.Error()}
	case e.Code == rpc.CodeInvalidParams:
		c.paramsErr = e
	default:
		c.err = e
	}
}

// handle decides about access and dispatches.
func (c *call) handle() {
	s := c.sim
	c.denied = !s.authorised(c.r)
	allowed := !c.denied
	for _, f := range s.chain().auth {
		allowed = f(c, allowed)
	}
	if !allowed {
		c.refuseAccess()
		return
	}
	if s.config.EnforceLimits && !s.limits.Load().request() {
		c.tooFast("more requests per second than X-RateLimit-Limit")
		return
	}
	for _, f := range s.chain().parsed {
		if f(c); c.done {
			return
		}
	}
	if c.err == nil {
		c.dispatch()
	}
}

// dispatch runs the method (spec 4.2).
func (c *call) dispatch() {
	if c.method == rpc.MethodSyncBatch {
		c.syncBatch()
		return
	}
	value, err := c.planning()
	if err != nil {
		c.err = err
		return
	}
	for _, f := range c.sim.chain().plan {
		value = f(c, value)
	}
	c.answer(value)
}

// answer sets a result; a value that is raw JSON is taken as it is.
func (c *call) answer(value any) {
	c.done, c.err = true, nil
	if raw, ok := value.(json.RawMessage); ok {
		c.result = raw
		return
	}
	c.result = encode(value)
}

// fail sets a JSON-RPC error; the HTTP status stays 200.
func (c *call) fail(code int64, message string) {
	c.done, c.result = true, nil
	c.err = &rpc.Error{Code: code, Message: message}
}

// refuse sets a JSON-RPC error under another HTTP status.
func (c *call) refuse(status int, code int64, message string) {
	c.fail(code, message)
	c.status = status
}

// refuseAccess is the answer to a call without the right token or URL secret
// (spec 5.2): both an HTTP client and a JSON-RPC client can recognize it.
func (c *call) refuseAccess() {
	c.refuse(http.StatusUnauthorized, codeUnauthorised, "authentication failed: the token or the URL is not valid")
	c.reply.set("WWW-Authenticate", `Bearer realm="destination"`)
}

// tooFast is the answer to a call beyond a limit that is enforced.
func (c *call) tooFast(what string) {
	c.refuse(http.StatusTooManyRequests, codeTooFast, "slow down: "+what)
	c.reply.set("Retry-After", "1")
}

// Error codes of the range that JSON-RPC leaves to servers.
const (
	codeUnauthorised = -32001
	codeTooFast      = -32029
	codeTooLarge     = -32013
)

// encode marshals without escaping HTML.
func encode(value any) []byte {
	text, err := rawjson.Marshal(value)
	if err != nil {
		return []byte(`{}`)
	}
	return text
}

// sleep waits for d and reports whether all of it has passed; it ends early when
// the client has gone or the simulator is closed.
func (c *call) sleep(d time.Duration) bool {
	ctx := context.Background()
	if c.r != nil {
		ctx = c.r.Context()
	}
	return c.sim.sleep(ctx, d)
}

func (s *Sim) sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-s.life.Done():
	}
	return false
}

// hang gives no answer until the client has gone or Delays.Hang is over, and
// then closes the connection without one.
func (c *call) hang() {
	// The server only notices that a client has gone once the body is read.
	_, _ = io.Copy(io.Discard, c.r.Body)
	c.sleep(c.sim.delays.Hang)
	c.cut()
}

// cut closes the connection without another byte (the client sees EOF).
func (c *call) cut() { _ = c.leave().Close() }

// reset aborts the connection (the client sees a reset where the transport has
// one).
func (c *call) reset() { abort(c.leave()) }

// leave ends the pipeline for this call and takes its connection.
func (c *call) leave() net.Conn {
	c.gone, c.done = true, true
	return c.hijack()
}

// abort closes with a reset: unsent bytes are thrown away.
func abort(conn net.Conn) {
	if l, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0)
	} else if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		if l, ok := t.NetConn().(interface{ SetLinger(int) error }); ok {
			_ = l.SetLinger(0)
		}
		_ = t.NetConn().Close()
	}
	_ = conn.Close()
}

// hijack takes the connection over; the caller closes it. Where the transport
// cannot hand it out (HTTP/2, a recorder in a test) the call is aborted.
func (c *call) hijack() net.Conn {
	conn, _, err := http.NewResponseController(c.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return conn
}
