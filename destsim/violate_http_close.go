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
