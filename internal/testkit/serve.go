package testkit

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Serve runs a server until the test ends and gives its address. wrap may replace the listener; nil: it stays.
func Serve(t testing.TB, server interface {
	Serve(ln net.Listener) error
	Close() error
}, wrap func(net.Listener) net.Listener,
) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := ln.Addr().String()
	if wrap != nil {
		ln = wrap(ln)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ln) }()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-done, http.ErrServerClosed)
	})
	return address
}

// Who may log in, and how. The user is a superuser.
const (
	PostgresUser     = "tester"
	PostgresPassword = "pg-s3cret-word"
)

// Postgres is a running one.
type Postgres struct {
	Folder string // of the socket, too
	Port   int
}

// Stalled opens more connections than a server carries, each of which stalls in a head. A call
// that has begun and another one still get the status 200, and memory is given back.
func Stalled(t testing.TB, address, call string) {
	t.Helper()
	memory := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	open := func(text string) net.Conn {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		_, _ = io.WriteString(conn, text) // refused where it was closed
		return conn
	}
	answered := func(conn net.Conn) {
		t.Helper()
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, 200, response.StatusCode)
		require.NoError(t, response.Body.Close())
	}
	before := memory()
	begun := open(call[:len(call)-1])
	stalled := make([]net.Conn, 4096)
	for i := range stalled {
		stalled[i] = open("POST / HTTP/1.1\r\nX: " + strings.Repeat("a", 10_000))
	}
	answered(open(call))
	_, err := io.WriteString(begun, call[len(call)-1:])
	require.NoError(t, err)
	answered(begun)
	require.Less(t, memory(), before+64<<20)
	for _, conn := range stalled {
		conn.Close()
	}
	for memory() > before+16<<20 {
		time.Sleep(10 * time.Millisecond)
	}
}
