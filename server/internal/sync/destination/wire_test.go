package destination

import (
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// TestWrittenAfterTheFirstByte: a callback for a write runs once, after it, however long
// that takes.
func TestWrittenAfterTheFirstByte(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	var sending atomic.Int64
	c := &wire{Conn: near, release: func() {}, sending: func() { sending.Add(1) }}
	defer c.Close()
	var written atomic.Int64
	after := func() { written.Add(1) }
	c.written.Store(&after)
	done := make(chan error, 1)
	go func() {
		for range 2 {
			if _, err := c.Write([]byte("ab")); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	_, err := io.ReadFull(far, make([]byte, 1)) // the second byte is still to come
	require.NoError(t, err)
	require.EqualValues(t, 1, sending.Load())
	require.Zero(t, written.Load())
	_, err = io.ReadFull(far, make([]byte, 3))
	require.NoError(t, err)
	require.NoError(t, <-done)
	require.EqualValues(t, 1, written.Load())
	require.EqualValues(t, 1, sending.Load())
}

// TestAtFirstByteOfEachRequest: plain and over TLS, on connections that are made and on
// those that are kept.
func TestAtFirstByteOfEachRequest(t *testing.T) {
	answer := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("{}")) })
	for name, start := range map[string]func(http.Handler) *httptest.Server{"plain": httptest.NewServer, "TLS": httptest.NewTLSServer} {
		t.Run(name, func(t *testing.T) {
			s := start(answer)
			defer s.Close()
			var sent atomic.Int64
			g := New(Options{AllowPlainHTTP: true, Sending: func() { sent.Add(1) }})
			if c := s.Certificate(); c != nil {
				_, err := g.Trust(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
				require.NoError(t, err)
			}
			client := &http.Client{Transport: g.newPool()}
			defer client.CloseIdleConnections()
			for i := range int64(3) {
				var written atomic.Int64
				ctx := AtFirstByte(t.Context(), func() {
					require.Equal(t, i+1, sent.Load())
					written.Add(1)
				})
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("{}"))
				require.NoError(t, err)
				reply, err := client.Do(r)
				require.NoError(t, err)
				_, err = io.Copy(io.Discard, reply.Body)
				require.NoError(t, err)
				require.NoError(t, reply.Body.Close())
				require.EqualValues(t, 1, written.Load())
				require.Equal(t, i+1, sent.Load())
			}
		})
	}
}

// TestIdleConnectionsEnd: a destination that is not called is left alone.
func TestIdleConnectionsEnd(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":"x","result":{}}`)
	}))
	closed := make(chan struct{}, 10)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	s.Start()
	defer s.Close()
	g := newGate(t, Options{})
	require.Equal(t, idleTime, g.idle)
	g.idle = 10 * time.Millisecond
	_, _ = call(t.Context(), openURL(t, g, s.URL), rpc.MethodListObjects, nil) // the answer is to another id
	<-closed
}
