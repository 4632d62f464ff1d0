//go:build unix

package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sockets are both sides of a connection, the near one as a link has it.
func sockets(t *testing.T) (near *socket, far *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	conn, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	other, err := ln.Accept()
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = conn.Close()
		_ = other.Close()
	})
	return newSocket(conn, new(atomic.Bool)), other.(*net.TCPConn)
}

// came waits until something is there to be read, an end or a fault among it.
func came(s *socket) {
	for !gone(s.Conn) {
		runtime.Gosched()
	}
}

// looking lets a read look until it has ended.
func looking(s *socket, p []byte) (n int, err error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n, err = s.Read(p)
	}()
	for {
		select {
		case <-ended:
			return n, err
		default:
			s.look()
			runtime.Gosched()
		}
	}
}

// TestTurns: requests and replies of all sizes, plain and over TLS; those that
// the socket does not take at once, too.
func TestTurns(t *testing.T) {
	for _, secure := range []bool{false, true} {
		s, far := sockets(t)
		near, other := net.Conn(s), net.Conn(far)
		if secure {
			server := httptest.NewUnstartedServer(nil)
			server.StartTLS()
			defer server.Close()
			near, other = tls.Client(s, &tls.Config{InsecureSkipVerify: true}), tls.Server(far, server.TLS)
		}
		go func() { // an echo
			defer far.Close()
			for size := range sizes {
				request := make([]byte, size)
				if _, err := io.ReadFull(other, request); err != nil {
					return
				}
				if _, err := other.Write(request); err != nil {
					return
				}
			}
		}()
		if secure {
			require.NoError(t, near.(*tls.Conn).HandshakeContext(context.Background()))
		}
		for size := range sizes {
			request, reply := bytes.Repeat([]byte("r"), size), make([]byte, size)
			s.send(near, request)
			_, err := io.ReadFull(near, reply)
			require.NoError(t, err)
			require.NoError(t, s.failed)
			require.True(t, bytes.Equal(request, reply), "%d bytes, TLS %v", size, secure)
		}
	}
}

func sizes(yield func(int) bool) {
	for _, size := range []int{1, 400, 400, 2400, 16 << 10, 60_000, mostAtOnce + 1, 400, 3 << 20, 1} {
		if !yield(size) {
			return
		}
	}
}

// TestTurnsLook: data before the request is not reported, and is still read.
func TestTurnsLook(t *testing.T) {
	s, far := sockets(t)
	p := make([]byte, 100)
	_, err := far.Write([]byte("early"))
	require.NoError(t, err)
	came(s)
	s.send(s, []byte("request"))
	n, err := looking(s, p)
	require.NoError(t, err)
	require.Equal(t, "early", string(p[:n]))
	n, err = io.ReadFull(far, p[:7])
	require.NoError(t, err)
	require.Equal(t, "request", string(p[:n]))

	require.NoError(t, far.CloseWrite())
	came(s)
	s.send(s, []byte("another"))
	_, err = looking(s, p)
	require.Equal(t, io.EOF, err)
	n, err = io.ReadFull(far, p[:7])
	require.NoError(t, err)
	require.Equal(t, "another", string(p[:n]))
}

// TestTurnsAreBroken: a call that is broken ends, with or without a look.
func TestTurnsAreBroken(t *testing.T) {
	for _, look := range []bool{false, true} {
		s, _ := sockets(t)
		s.send(s, []byte("request"))
		ended := make(chan error, 1)
		go func() {
			_, err := s.Read(make([]byte, 100))
			ended <- err
		}()
		if look {
			s.look()
		}
		s.late.Store(true)
		s.SetDeadline(time.Now().Add(-time.Second))
		require.ErrorIs(t, <-ended, os.ErrDeadlineExceeded)
	}
}

// TestTurnsFail: faults keep their kinds.
func TestTurnsFail(t *testing.T) {
	s, far := sockets(t)
	require.NoError(t, far.SetLinger(0))
	require.NoError(t, far.Close())
	came(s)
	s.send(s, []byte("request"))
	_, err := looking(s, make([]byte, 100))
	if s.failed != nil {
		err = s.failed
	}
	kind := Call(err, false).Kind
	require.Contains(t, []string{KindReset, KindClosed}, kind, "%v", err)

	s, far = sockets(t)
	ended := make(chan error, 1)
	s.send(s, []byte("request"))
	go func() {
		_, err := s.Read(make([]byte, 100))
		ended <- err
	}()
	_, err = io.ReadFull(far, make([]byte, 7))
	require.NoError(t, err)
	require.NoError(t, far.SetLinger(0))
	require.NoError(t, far.Close())
	err = <-ended
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.Equal(t, KindReset, Call(err, false).Kind)
}
