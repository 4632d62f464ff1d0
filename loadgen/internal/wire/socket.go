package wire

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/destkit/destkit/internal/rawconn"
)

// socket is the plain connection of a link, below TLS where there is any. A
// request goes out with the read of its reply, in one turn that waits before it
// reads: a read right after a write is in vain, and costs a third of a request.
//
// A turn waits for bytes after its write. Earlier ones are there as well then,
// but is not reported: a target that closes its side, or answers, before the
// request. So the watch ends the blind part of a wait that lasts.
type socket struct {
	net.Conn
	raw  syscall.RawConn // nil: every read looks first
	late *atomic.Bool    // of the link: the call has been broken

	held    []byte // the part of a request that TLS has written
	holding bool
	out     []byte // goes out with the next read
	failed  error  // of sending it; a target that refuses early answers all the same

	// Of the turn that is under way.
	take func(fd uintptr) bool
	in   []byte
	n    int
	err  error
	sent bool

	blind   atomic.Bool // it waits without having looked
	looking sync.Mutex
}

const (
	// mostAtOnce is how much is written in a turn. Of more the socket takes a part
	// only, mostly.
	mostAtOnce = 64 << 10
	// Trusted is how long a wait may be blind.
	Trusted = int64(time.Second)
	// early is how long a target that did not take a request has for its answer.
	early = time.Second
)

func newSocket(conn net.Conn, late *atomic.Bool) *socket {
	s := &socket{Conn: conn, raw: rawconn.Of(conn), late: late}
	s.take = s.turn
	return s
}

// send sends a request, with the next read where it can. conn is this socket or
// TLS above it. request must stay as it is until then.
func (s *socket) send(conn net.Conn, request []byte) {
	s.failed, s.out = nil, nil
	switch {
	case s.raw == nil || len(request) > mostAtOnce:
		_, err := conn.Write(request)
		s.fail(err)
	case conn == net.Conn(s):
		s.out = request
	default:
		s.holding, s.held = true, s.held[:0]
		_, err := conn.Write(request)
		s.holding, s.out = false, s.held
		s.fail(err)
	}
}

// fail keeps an error of sending.
func (s *socket) fail(err error) {
	if err != nil {
		s.failed = err
		s.SetReadDeadline(time.Now().Add(early))
	}
}

func (s *socket) Write(p []byte) (int, error) {
	if s.holding {
		s.held = append(s.held, p...)
		return len(p), nil
	}
	return s.Conn.Write(p)
}

func (s *socket) Read(p []byte) (int, error) {
	if len(s.out) == 0 || len(p) == 0 {
		return s.Conn.Read(p)
	}
	s.in, s.n, s.err, s.sent = p, 0, nil, false
	s.blind.Store(true)
	err := s.raw.Read(s.take)
	looked := !s.blind.Swap(false)
	s.in = nil
	if looked {
		s.resume()
	}
	switch {
	case s.sent && err == nil && s.err == nil && s.n > 0:
		return s.n, nil
	case s.sent && err == nil && s.err == nil:
		return 0, io.EOF
	case s.sent && err == nil:
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", s.err)}
	case !looked && err != nil:
		return 0, err
	}
	// The poller does not know enough: the rest is sent, and read, in the usual way.
	if rest := s.out; len(rest) > 0 && s.failed == nil {
		s.out = nil
		_, err := s.Conn.Write(rest)
		s.fail(err)
	}
	return s.Conn.Read(p)
}

// turn writes when it is called first, and reads when it is called again. false
// waits until there is something to be read.
func (s *socket) turn(fd uintptr) (done bool) {
	if !s.sent {
		n, err := rawconn.Write(fd, s.out)
		s.out = s.out[n:]
		if err != nil && err != syscall.EAGAIN {
			s.out = nil
			s.fail(&net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", err)})
		}
		s.sent = len(s.out) == 0 && s.failed == nil
		return !s.sent
	}
	s.n, s.err = rawconn.Read(fd, s.in)
	return s.err != syscall.EAGAIN
}

// look ends the blind part of a wait, from another goroutine.
func (s *socket) look() {
	s.looking.Lock()
	defer s.looking.Unlock()
	if s.blind.CompareAndSwap(true, false) {
		s.SetReadDeadline(time.Now().Add(-time.Second))
	}
}

// resume takes back the deadline by which look has ended a wait, but not that of
// a call that has been broken.
func (s *socket) resume() {
	s.looking.Lock()
	defer s.looking.Unlock()
	s.SetReadDeadline(time.Time{})
	if s.late.Load() {
		s.SetReadDeadline(time.Now().Add(-time.Second))
	}
}
