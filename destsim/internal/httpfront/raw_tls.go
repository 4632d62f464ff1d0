package httpfront

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/destkit/destkit/internal/callers"
	"github.com/destkit/destkit/internal/rawconn"
)

// socketListener puts a tlsSocket beneath every TLS connection, where the system
// lets the fast path read and write sockets by itself.
type socketListener struct{ net.Listener }

func (l socketListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if raw := rawconn.Of(callers.Plain(conn)); raw != nil {
		return &tlsSocket{Conn: conn, raw: raw}, nil
	}
	return conn, nil
}

// tlsSocket is the plain connection beneath TLS. Within a call of Read of its raw
// socket its own Read neither waits nor notifies the scheduler of a system call;
// outside it is the connection. Who reads is the goroutine that serves; writes
// come from others too, since closing sends an alert, and are those of the
// connection.
//
// It follows the records of TLS (RFC 8446 section 5.1) as they come in: no poller reports what
// TLS has read and not handed out yet, so the fast path waits without a look only when the last
// read brought one record and nothing else.
type tlsSocket struct {
	net.Conn
	raw  syscall.RawConn
	fd   uintptr
	open bool // fd may be used, by who reads

	header  [recordHeader]byte // of a record that is on its way
	have    int                // bytes of the header
	left    int                // bytes of the record that are still to come
	records int                // of which bytes came since fresh
	drained bool               // the last read did not fill its buffer
}

// recordHeader is the length of the header of a record; its last two bytes are
// the length of the rest.
const recordHeader = 5

// socketOf gives the socket beneath TLS; nil where there is none.
func socketOf(conn net.Conn) *tlsSocket {
	t, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	s, _ := t.NetConn().(*tlsSocket)
	return s
}

// NetConn is the socket with its count.
func (s *tlsSocket) NetConn() net.Conn { return s.Conn }

// Read fails with syscall.EAGAIN where nothing is there and the socket may not
// wait. crypto/tls takes that for a pause: the next Read goes on.
func (s *tlsSocket) Read(p []byte) (n int, err error) {
	if !s.open {
		n, err = s.Conn.Read(p)
		s.follow(p[:n], len(p))
		return n, err
	}
	n, err = rawconn.Read(s.fd, p)
	s.follow(p[:n], len(p))
	switch {
	case err == syscall.EAGAIN:
		return 0, err
	case err != nil:
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", err)}
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// fresh restarts the count of incoming records; a record that is on its way counts.
func (s *tlsSocket) fresh() {
	s.records, s.drained = 0, false
	if s.have > 0 || s.left > 0 {
		s.records = 1
	}
}

// single reports whether one record has come since fresh, as a whole and alone.
func (s *tlsSocket) single() bool {
	return s.drained && s.records == 1 && s.have == 0 && s.left == 0
}

// follow looks at bytes that came in for a buffer of that size.
func (s *tlsSocket) follow(b []byte, size int) {
	s.drained = len(b) < size
	for len(b) > 0 {
		if s.left > 0 {
			n := min(s.left, len(b))
			s.left, b = s.left-n, b[n:]
			continue
		}
		if s.have == 0 {
			s.records++
		}
		n := copy(s.header[s.have:], b)
		b = b[n:]
		if s.have += n; s.have == recordHeader {
			s.left = int(s.header[3])<<8 | int(s.header[4])
			s.have = 0
		}
	}
}
