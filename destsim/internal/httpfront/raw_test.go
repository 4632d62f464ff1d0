package httpfront

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/rawconn"
	"github.com/destkit/destkit/internal/testkit"
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
			address := testkit.Serve(t, &Server{Endpoint: echo{}, MaxBody: 1 << 20, look: look, IdleTimeout: time.Hour, ErrorLog: quietly()}, nil)
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
// gets the answer and then the end, whatever the poller reports.
func TestHalfClosed(t *testing.T) {
	address := testkit.Serve(t, &Server{Endpoint: echo{}, MaxBody: 1 << 20, look: time.Millisecond, ErrorLog: quietly()}, nil)
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

// TestLongReply: bytes that the socket does not take at once are still sent.
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

// withholding holds back what TLS writes until it is let go.
type withholding struct {
	net.Conn
	holding bool
	bytes   bytes.Buffer
}

func (k *withholding) Write(p []byte) (int, error) {
	if k.holding {
		return k.bytes.Write(p)
	}
	return k.Conn.Write(p)
}

// sealed gives what TLS makes of texts, a record or more for each.
func (k *withholding) sealed(t *testing.T, conn net.Conn, texts ...string) []byte {
	t.Helper()
	k.holding = true
	for _, text := range texts {
		_, err := io.WriteString(conn, text)
		require.NoError(t, err)
	}
	k.holding = false
	out := bytes.Clone(k.bytes.Bytes())
	k.bytes.Reset()
	return out
}

// TestManyRequestsOverTLS: records that come whole, in pieces, in pairs and in
// crowds, on a connection that would wait for an hour for unreported bytes.
func TestManyRequestsOverTLS(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			t.Parallel()
			server := &Server{Endpoint: echo{}, MaxBody: 1 << 20, look: time.Hour, IdleTimeout: 2 * time.Hour, ErrorLog: quietly()}
			address, trust := overTLS(t, server)
			plain := &withholding{Conn: dialed(t, address)}
			conn := tls.Client(plain, &tls.Config{RootCAs: trust, ServerName: "127.0.0.1", MaxVersion: version})
			defer conn.Close()
			in := bufio.NewReader(conn)
			id := 0
			next := func(size int) string {
				id++
				return request("/", fmt.Sprintf(`{"jsonrpc":"2.0","method":"test_connection","params":{},"id":"%d-%s"}`, id, strings.Repeat("x", size)))
			}
			replied := func(first, last int) {
				t.Helper()
				for i := first; i <= last; i++ {
					reply, err := http.ReadResponse(in, nil)
					require.NoError(t, err)
					body, err := io.ReadAll(reply.Body)
					require.NoError(t, err)
					require.Contains(t, string(body), fmt.Sprintf(`"id":"%d-`, i))
				}
			}
			require.NoError(t, conn.Handshake())
			talk(t, conn, in, 3*manyTaken, whole)
			for i := range 60 {
				texts := []string{next(i * 97 % 9000)} // one record, two, and one of many
				if i%3 == 1 {
					texts = append(texts, next(10))
				}
				if i%20 == 19 {
					texts[0] = next(40_000)
					texts = texts[:1]
				}
				out := plain.sealed(t, conn, texts...)
				step := []int{len(out), 3, 1000, len(out) - 1}[i%4]
				for len(out) > 0 {
					n := min(max(step, len(out)/40), len(out))
					_, err := plain.Write(out[:n])
					require.NoError(t, err)
					out = out[n:]
					runtime.Gosched()
				}
				replied(id-len(texts)+1, id)
				talk(t, conn, in, 2, whole)
			}
			both := plain.sealed(t, conn, next(1))
			both = append(both, plain.sealed(t, conn, next(2))[:2]...) // the rest never comes
			_, err := plain.Write(both)
			require.NoError(t, err)
			replied(id-1, id-1)
		})
	}
}

// TestSocketFollowsRecords: whatever the pieces, one record alone is known as such.
func TestSocketFollowsRecords(t *testing.T) {
	record := func(size int) []byte {
		return append([]byte{23, 3, 3, byte(size >> 8), byte(size)}, make([]byte, size)...)
	}
	for name, tc := range map[string]struct {
		reads  [][]byte
		single bool
	}{
		"one":                       {[][]byte{record(300)}, true},
		"one of nothing":            {[][]byte{record(0)}, true},
		"one in pieces":             {[][]byte{record(300)[:2], record(300)[2:5], record(300)[5:]}, true},
		"two":                       {[][]byte{append(record(300), record(2)...)}, false},
		"two reads":                 {[][]byte{record(300), record(2)}, false},
		"one and a half of another": {[][]byte{append(record(300), record(2)[:6]...)}, false},
		"one and a bit of a header": {[][]byte{append(record(300), 23)}, false},
		"half of one":               {[][]byte{record(300)[:200]}, false},
		"nothing":                   {nil, false},
	} {
		s := &tlsSocket{}
		s.fresh()
		for _, b := range tc.reads {
			s.follow(b, len(b)+1)
		}
		require.Equal(t, tc.single, s.single(), name)
	}
	s := &tlsSocket{}
	for name, tc := range map[string]struct {
		more   []byte
		single bool
	}{
		"the rest":                   {nil, true},
		"the rest and a whole other": {record(2), false},
		"the rest and a bit":         {[]byte{23}, false},
	} {
		for _, cut := range []int{2, 5, 200} {
			s := &tlsSocket{}
			s.follow(record(300)[:cut], 1000)
			s.fresh()
			s.follow(append(record(300)[cut:], tc.more...), 1000)
			require.Equal(t, tc.single, s.single(), "%s, cut at %d", name, cut)
		}
	}
	s.follow(record(9), len(record(9)))
	require.False(t, s.single(), "a full buffer may have left something")
}
