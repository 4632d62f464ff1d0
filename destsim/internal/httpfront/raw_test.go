package httpfront

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/rawconn"
)

// talk sends requests one after the other on one connection and reads each
// reply before the next.
func talk(t *testing.T, conn net.Conn, in *bufio.Reader, requests int, pieces func(text string) []string) {
	t.Helper()
	for i := range requests {
		id := fmt.Sprintf("%d-%s", i, strings.Repeat("x", i*97%9000)) // some longer than the first buffer
		for _, piece := range pieces(request("/", `{"jsonrpc":"2.0","method":"test_connection","params":{},"id":"`+id+`"}`)) {
			_, err := io.WriteString(conn, piece)
			require.NoError(t, err)
		}
		reply, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(reply.Body)
		require.NoError(t, err)
		require.Contains(t, string(body), `"id":"`+id+`"`)
	}
}

func whole(text string) []string { return []string{text} }

// TestManyRequests: a connection that waits without a look before, whose
// requests come whole, in pieces and in pairs.
func TestManyRequests(t *testing.T) {
	for name, look := range map[string]time.Duration{"as ever": 0, "always looking again": 1} {
		t.Run(name, func(t *testing.T) {
			address := served(t, &Server{Endpoint: echo{}, MaxBody: 1 << 20, look: look, IdleTimeout: time.Hour, ErrorLog: quietly()}, nil)
			conn := dialed(t, address)
			defer conn.Close()
			in := bufio.NewReader(conn)
			talk(t, conn, in, 3*manyTaken, whole)
			talk(t, conn, in, manyTaken, func(text string) []string { return []string{text[:30], text[30:90], text[90:]} })
			talk(t, conn, in, 3*manyTaken, whole)
			both := request("/", `{"jsonrpc":"2.0","method":"list_objects","params":{},"id":"a"}`)
			_, err := io.WriteString(conn, both+both)
			require.NoError(t, err)
			for range 2 {
				reply, err := http.ReadResponse(in, nil)
				require.NoError(t, err)
				_, err = io.Copy(io.Discard, reply.Body)
				require.NoError(t, err)
			}
			talk(t, conn, in, 3*manyTaken, whole)
		})
	}
}

// TestHalfClosed: a client that ends its side together with its last request
// gets the answer and then the end, whatever the poller tells.
func TestHalfClosed(t *testing.T) {
	address := served(t, &Server{Endpoint: echo{}, MaxBody: 1 << 20, look: time.Millisecond, ErrorLog: quietly()}, nil)
	for range 20 {
		conn := dialed(t, address)
		in := bufio.NewReader(conn)
		talk(t, conn, in, 2*manyTaken, whole)
		_, err := io.WriteString(conn, request("/", `{"jsonrpc":"2.0","method":"list_objects","params":{},"id":"last"}`))
		require.NoError(t, err)
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		got, err := io.ReadAll(in)
		require.NoError(t, err)
		require.Contains(t, string(got), `"id":"last"`)
		require.NoError(t, conn.Close())
	}
}

// TestLongReply: what the socket does not take at once is sent all the same.
func TestLongReply(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	client := dialed(t, ln.Addr().String())
	conn, err := ln.Accept()
	require.NoError(t, err)
	c := newFastConn(&Server{}, nil, conn)
	long := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	sent := make(chan error, 1)
	go func() {
		err := c.write(long[:len(long)/2])
		if raw := rawconn.Of(conn); raw != nil && err == nil {
			_ = raw.Read(func(fd uintptr) bool {
				c.raw.fd, c.raw.open = fd, true
				err = c.write(long[len(long)/2:])
				return true
			})
		} else if err == nil {
			err = c.write(long[len(long)/2:])
		}
		_ = conn.Close()
		sent <- err
	}()
	got, err := io.ReadAll(client)
	require.NoError(t, err)
	require.NoError(t, <-sent)
	require.True(t, bytes.Equal(long, got))
}
