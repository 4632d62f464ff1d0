// Package wire carries the calls of a load: endpoints that are ready to be called, and
// connections to them that write a request at once and read its reply with as few calls
// of the system as there can be, or by net/http. It leaves the content of requests and
// the meaning of replies to the generator.
package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/internal/foreign"
)

// Link is one connection to the target with the bytes read from it: HTTP/1.1,
// one call at a time, one write per request. It connects when it has to.
type Link struct {
	end  *Endpoint
	ctx  context.Context // of the whole run: its end ends dialling
	conn net.Conn        // nil: not connected
	sock *socket         // conn, or what is below its TLS
	used int64           // when a reply last came, in nanoseconds of the clock

	in   []byte // in[r:w] is read and not used yet
	r, w int
	// plain is what a reply was that came encoded.
	plain []byte
	// The heads of consecutive replies are mostly equal byte for byte; a parsed
	// head is compared then.
	lastHead []byte
	lastSays head

	// open is the connection for another goroutine, which breaks it where a call
	// takes too long; late means that it did.
	open atomic.Pointer[socket]
	late atomic.Bool
}

const (
	firstRoom = 4 << 10
	// stale is how long a connection must have been idle before a check whether
	// the peer has closed it.
	stale = int64(200 * time.Millisecond)
)

func NewLink(ctx context.Context, end *Endpoint) *Link {
	return &Link{end: end, ctx: ctx, in: make([]byte, firstRoom)}
}

// Call sends one whole request and reads its reply. After an error the
// connection is closed.
func (l *Link) Call(r Request, now int64) (rep Reply, err error) {
	// A connection that was broken between two calls has a deadline in the past.
	if l.late.Swap(false) || l.conn != nil && now-l.used > stale && gone(l.sock.Conn) {
		l.drop()
	}
	if l.conn == nil {
		began := time.Now()
		if err := l.connect(); err != nil {
			return rep, err
		}
		rep.Dialled = int64(time.Since(began))
	}
	h, body, err := l.exchange(r.Wire)
	if err != nil {
		l.drop()
		l.release()
		return rep, err
	}
	rep.Status, rep.Body, rep.Limit, rep.Retry = h.status, body, h.limit, h.retry
	if h.encoding != "" && h.encoding != "identity" {
		if l.plain, rep.Body, err = l.end.memory.decode(l.plain, h.encoding, body, l.end.Transport.MaxReply); err != nil {
			l.drop()
			l.release()
			return rep, err
		}
	}
	if h.closing || l.end.Transport.Reconnect {
		l.drop()
	}
	l.used = now
	return rep, nil
}

// exchange writes and reads; both errors end the connection.
func (l *Link) exchange(request []byte) (head, []byte, error) {
	if l.r != l.w {
		return head{}, nil, Newf(KindHTTP, "the target sent bytes that were not asked for")
	}
	l.r, l.w = 0, 0
	l.sock.send(l.conn, request)
	h, err := l.readHead()
	if err == nil {
		var body []byte
		if body, err = l.readBody(h); err == nil {
			// A target that refuses a request early answers before it closes.
			h.closing = h.closing || l.sock.failed != nil
			return h, body, nil
		}
	}
	if l.sock.failed != nil {
		err = l.sock.failed
	}
	var own *Failure
	switch {
	case l.late.Load():
		return head{}, nil, Newf(KindTimeout, "no whole reply in time")
	case errors.As(err, &own):
		return head{}, nil, own
	}
	return head{}, nil, Call(err, l.w > 0)
}

// readHead reads up to the blank line.
func (l *Link) readHead() (head, error) {
	for informed := 0; ; {
		if n := len(l.lastHead); n > 0 && l.w-l.r >= n && bytes.Equal(l.in[l.r:l.r+n], l.lastHead) {
			l.r += n
			return l.lastSays, nil
		}
		if end := bytes.Index(l.in[l.r:l.w], []byte("\r\n\r\n")); end >= 0 {
			text := l.in[l.r : l.r+end+4]
			h, err := parseHead(text)
			if err != nil {
				return h, Newf(KindHTTP, "%v", err)
			}
			l.r += len(text)
			if h.status/100 == 1 {
				// 100 Continue and the like come before the response.
				if informed++; h.status == 101 || informed > 8 {
					return h, Newf(KindHTTP, "status %d instead of a response", h.status)
				}
				continue
			}
			l.lastHead, l.lastSays = append(l.lastHead[:0], text...), h
			return h, nil
		}
		if l.w-l.r >= longestHead {
			return head{}, Newf(KindHTTP, "the head of the reply has more than %d bytes", longestHead)
		}
		if l.w-l.r >= 8 && string(l.in[l.r:l.r+7]) != "HTTP/1." {
			return head{}, Newf(KindHTTP, "the reply is not HTTP/1.1: it begins with %q", foreign.Clip(l.in[l.r:min(l.w, l.r+24)], LongestQuote))
		}
		if err := l.fill(1); err != nil {
			return head{}, err
		}
	}
}

// fill reads until at least n further bytes are there.
func (l *Link) fill(n int) error {
	if l.w+n > len(l.in) {
		more, ok := l.end.memory.grow(l.in, l.w, l.w+n)
		if !ok {
			return l.end.memory.full()
		}
		l.in = more
	}
	for want := l.w + n; l.w < want; {
		got, err := l.conn.Read(l.in[l.w:])
		l.w += got
		if err != nil && l.w < want {
			return err
		}
	}
	return nil
}

// connect dials and shakes hands within the time of a call.
func (l *Link) connect() error {
	l.late.Store(false)
	ctx, cancel := context.WithTimeout(l.ctx, l.end.Transport.Timeout)
	defer cancel()
	conn, err := l.end.Transport.Dial(ctx, "tcp", l.end.address)
	if err != nil {
		if l.ctx.Err() != nil {
			return Newf(KindInterrupted, "the run ended while connecting")
		}
		return Dial(err)
	}
	l.sock = newSocket(conn, &l.late)
	l.conn = l.sock
	if l.end.tls != nil {
		secure := tls.Client(l.sock, l.end.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			l.conn = nil
			return TLS(err)
		}
		l.conn = secure
	}
	l.open.Store(l.sock)
	if l.late.Load() {
		l.drop()
		return Newf(KindTimeout, "connecting took too long")
	}
	l.r, l.w, l.lastHead = 0, 0, l.lastHead[:0]
	return nil
}

// drop closes the connection.
func (l *Link) drop() {
	if l.conn == nil {
		return
	}
	l.open.Store(nil)
	// A deadline first: closing TLS sends an alert, which may hang.
	l.conn.SetDeadline(time.Now().Add(time.Second))
	l.conn.Close()
	l.conn = nil
	l.r, l.w = 0, 0
}

// release gives large buffers back, after a call whose reply is not needed.
func (l *Link) release() {
	if len(l.in) > freeRoom {
		l.end.memory.give(l.in)
		l.in = make([]byte, firstRoom)
	}
	l.end.memory.give(l.plain)
	l.plain = nil
}

// Interrupt breaks the call that is under way, from another goroutine. A
// deadline for every call would cost more than the call's own work.
func (l *Link) Interrupt() {
	l.late.Store(true)
	if s := l.open.Load(); s != nil {
		s.SetDeadline(time.Now().Add(-time.Second))
	}
}

// Look sees to it that a call that lasts does not wait for something that is
// there already, from another goroutine.
func (l *Link) Look() {
	if s := l.open.Load(); s != nil {
		s.look()
	}
}

func (l *Link) Close() { l.drop() }

// decode is decompress with the errors of a call, into a buffer that is used again.
func (m *memory) decode(buf []byte, encoding string, body []byte, most int64) (all, plain []byte, err error) {
	r, err := decompress(encoding, body)
	if err == nil {
		buf, plain, err = m.read(buf, r, most)
	}
	var own *Failure
	switch {
	case errors.As(err, &own) && own.Kind == KindTooLarge:
		return buf, nil, Newf(KindTooLarge, "decoded, %s", own.Message)
	case err != nil:
		return buf, nil, Newf(KindHTTP, "%v", fmt.Errorf("decode %s: %w", foreign.Clip(encoding, LongestQuote), err))
	}
	return buf, plain, nil
}

// Request is one request that is ready to be sent: a batch, or a call of a service's
// API. It is good until the next one of its connection.
type Request struct {
	Wire []byte // all of it: what a link writes
	// For net/http: body without the head, method and the path with its query. Without a
	// method it is a POST to the URL of the endpoint.
	Body           []byte
	Method, Target string
}

// Throttled reports whether the target asks for fewer requests: 429, or a 503 that is the
// answer of an application (enveloped) or says when to come again.
func (r Reply) Throttled(enveloped bool) bool {
	return r.Status == http.StatusTooManyRequests || r.Status == http.StatusServiceUnavailable && (enveloped || r.Retry != "")
}

// ThrottleText names the status and how long to wait.
func (r Reply) ThrottleText() string {
	return fmt.Sprintf("HTTP status %d, Retry-After %q", r.Status, r.Retry)
}

// RetryIn is how long Retry-After asks to wait, in seconds or until a date (RFC 9110), at
// most a minute, as a service waits; ok is false where it says nothing that can be understood.
func (r Reply) RetryIn(now time.Time) (d time.Duration, ok bool) {
	const most = time.Minute
	text := strings.TrimSpace(r.Retry)
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(most/time.Second))) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), most), true
	}
	return 0, false
}

// Reply is the answer to one request; body is good until the next call.
type Reply struct {
	Status  int
	Body    []byte
	Limit   int64
	Retry   string
	Dialled int64 // nanoseconds that connecting took, 0 on a kept connection
}
