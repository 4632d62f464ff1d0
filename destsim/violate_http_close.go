package destsim

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// silentCloseViolation is HTTP-008. It has to know what came before on the
// same connection, which a handler cannot see: the address of the peer need
// not be unique. So the first reply to list_objects takes the connection over
// and serves the rest of it by a server that remembers.
func silentCloseViolation() violation {
	return breaks("HTTP-008", "a list_objects that follows a list_objects on the same connection is cut off without a response",
		seams{http: func(c *call) bool {
			c.w = &forgetfulWriter{ResponseWriter: c.w, call: c, status: http.StatusOK}
			return false
		}})
}

// connState is what is remembered of a connection that was taken over. Calls
// on one HTTP/1.1 connection follow one another, so it needs no lock.
type connState struct {
	listed  bool   // the last call was a list_objects (HTTP-008)
	spoiled []byte // the reply to a body that was no JSON text (ERR-002)
}

type connKey struct{}

// forgetfulWriter decides what becomes of a reply once it is written: only then
// is the method known.
type forgetfulWriter struct {
	http.ResponseWriter
	call   *call
	status int
	spoils []byte // what the connection keeps for the next call (ERR-002)
}

// Unwrap lets the other seams take the connection over.
func (w *forgetfulWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader keeps the status for Write, which always comes after it.
func (w *forgetfulWriter) WriteHeader(status int) { w.status = status }

// Write gets the whole body in one piece.
func (w *forgetfulWriter) Write(body []byte) (int, error) {
	c := w.call
	listing := gives(c, rpc.MethodListObjects) && ordinary(c.r)
	state, _ := c.r.Context().Value(connKey{}).(*connState)
	switch {
	case state != nil && state.listed && listing:
		c.cut()
		return 0, net.ErrClosed
	case state != nil:
		state.listed = listing
	case listing && c.r.ProtoAtLeast(1, 1) && !c.r.Close:
		if conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack(); err == nil {
			return w.takeOver(conn, rw.Reader, body)
		}
	}
	w.ResponseWriter.WriteHeader(w.status)
	return w.ResponseWriter.Write(body)
}

// ordinary reports whether a request has the form that the service sends. Chunked
// bodies, charsets and Expect are a rule of their own.
func ordinary(r *http.Request) bool {
	return r.ContentLength >= 0 && r.Header.Get("Expect") == "" && !strings.Contains(r.Header.Get("Content-Type"), ";")
}

// takeOver writes the reply by hand and goes on with the connection.
func (w *forgetfulWriter) takeOver(conn net.Conn, read *bufio.Reader, body []byte) (int, error) {
	var head bytes.Buffer
	fmt.Fprintf(&head, "HTTP/1.1 %03d %s\r\n", w.status, http.StatusText(w.status))
	header := w.Header().Clone()
	header.Set("Date", w.call.sim.clock().UTC().Format(http.TimeFormat))
	header.Set("Content-Length", strconv.Itoa(len(body)))
	_ = header.Write(&head)
	head.WriteString("\r\n")
	if _, err := conn.Write(append(head.Bytes(), body...)); err != nil {
		_ = conn.Close()
		return 0, err
	}
	if read.Buffered() > 0 {
		conn = readAhead{conn, read}
	}
	w.call.sim.serveOn(conn, &connState{listed: gives(w.call, rpc.MethodListObjects), spoiled: w.spoils})
	return len(body), nil
}

// readAhead is a connection of which some bytes have been read already.
type readAhead struct {
	net.Conn
	reader io.Reader
}

func (r readAhead) Read(b []byte) (int, error) { return r.reader.Read(b) }

// serveOn answers the further calls on one connection, until it or the
// simulator is closed. It does not wait for that.
func (s *Sim) serveOn(conn net.Conn, state *connState) {
	var once sync.Once
	stop := s.closeWith(conn)
	server := &http.Server{
		Handler:  s,
		ErrorLog: log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, state)
		},
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed || state == http.StateHijacked {
				once.Do(stop)
			}
		},
	}
	// The listener has nothing more to give, so this comes back at once; the
	// connection goes on by itself.
	_ = server.Serve(&oneConn{conn: conn})
}

// oneConn is a listener that gives one connection and then ends.
type oneConn struct {
	conn  net.Conn
	given bool
}

func (l *oneConn) Accept() (net.Conn, error) {
	if l.given {
		return nil, io.EOF
	}
	l.given = true
	return l.conn, nil
}

func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }

// connectedViolations are a memory of the connection (STA-002, STA-005).
func connectedViolations() []violation {
	return []violation{
		breaks("STA-002", "sync_batch with 7, 8 or 9 records is an error when it is the first call of its connection",
			seams{http: keepConnections, batch: func(c *call, b *batch) *rpc.Error {
				if c.isFirst() && 7 <= b.Len() && b.Len() <= 9 {
					return &rpc.Error{Code: rpc.CodeServerError, Message: "call list_fields first"}
				}
				return nil
			}}),
		firstUnwritten(),
		breaks("STA-005", `supported_operations without a cookie is an error -32000 "no session" when it is the first call of its connection`,
			seams{http: keepConnections, parsed: func(c *call) {
				if gives(c, rpc.MethodSupportedOperations) && c.isFirst() && len(c.r.Cookies()) == 0 {
					c.fail(rpc.CodeServerError, "no session")
				}
			}}),
	}
}

// isFirst reports whether nothing came before the call on its connection. A
// handler cannot see that, so the first reply takes the connection over, and
// the rest of it is served by a server that remembers.
func (c *call) isFirst() bool { return c.r.Context().Value(connKey{}) == nil }

// keepConnections takes every connection over with the first reply on it.
func keepConnections(c *call) bool {
	if c.isFirst() {
		c.w = &firstWriter{forgetfulWriter: forgetfulWriter{ResponseWriter: c.w, call: c, status: http.StatusOK}}
	}
	return false
}

// firstWriter writes the first reply on a connection.
type firstWriter struct {
	forgetfulWriter
	started bool
}

func (w *firstWriter) Write(body []byte) (int, error) {
	c := w.call
	// What is not read or not written as a whole cannot be handed on.
	whole := !w.started && w.Header().Get("Content-Length") == strconv.Itoa(len(body)) && (c.body != nil || c.r.ContentLength == 0)
	if whole && c.r.ProtoMajor == 1 && c.r.ProtoAtLeast(1, 1) && !c.r.Close {
		if conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack(); err == nil {
			return w.takeOver(conn, rw.Reader, body)
		}
	}
	if !w.started {
		w.started = true
		w.ResponseWriter.WriteHeader(w.status)
	}
	return w.ResponseWriter.Write(body)
}

// firstUnwritten is STA-002.2: what the first call of a connection sends is lost.
func firstUnwritten() violation {
	lost := unwritten(func(r *record, _ *store.Row) bool {
		n := r.batch.Len()
		return r.batch.call.isFirst() && 7 <= n && n <= 9
	})
	lost.http = keepConnections
	return breaks("STA-002.2", "sync_batch with 7, 8 or 9 records is acknowledged and not written when it is the first call of its connection", lost)
}
