package destination_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/destsim"
)

// judgeHostile judges under a context that outlasts every deadline of the judge
// many times. A judge that does not end by its own deadlines is interrupted, and the
// test fails.
func judgeHostile(t *testing.T, target destination.Target, opts conformance.Options) *conformance.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	r, err := destination.Run(ctx, target, opts)
	require.NoError(t, err)
	require.NoError(t, ctx.Err(), "the judge did not end by its own deadlines")
	require.Zero(t, r.Counts[conformance.HarnessError], explain(r, tripped(r)))
	return r
}

// rawEndpoint answers each call on a TCP connection by its own writing.
func rawEndpoint(t *testing.T, answer func(conn net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				for {
					req, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					if _, err := io.Copy(io.Discard, req.Body); err != nil {
						return
					}
					answer(conn)
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return "http://" + l.Addr().String() + "/rpc"
}

// say writes until the judge closes the connection.
func say(conn net.Conn, text string) bool {
	_, err := io.WriteString(conn, text)
	return err == nil
}

const jsonHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

// unreachable: one problem with exit status 3 and no finding.
func unreachable(t *testing.T, r *conformance.Report) {
	t.Helper()
	require.Equal(t, 3, r.ExitStatus, "%s\n%s", r.Summary, explain(r, r.Failed))
	require.Equal(t, conformance.Unknown, r.Verdict)
	require.Len(t, r.Problems, 1)
	require.Equal(t, "unreachable", r.Problems[0].Kind)
	require.NotEmpty(t, r.Problems[0].Fix)
	require.Empty(t, r.Failed)
	for _, c := range r.Checks {
		require.Empty(t, c.Findings, c.ID)
	}
}

// TestNobodyThere: no address, no listener, and nothing that speaks HTTP.
func TestNobodyThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	for name, url := range map[string]string{
		"nothing listens": "http://" + l.Addr().String() + "/",
		"no such host":    "http://endpoint.invalid/",
		"garbage":         rawEndpoint(t, func(conn net.Conn) { say(conn, "\x16\x03\x01SSH-2.0-OpenSSH\r\n\x00\xff\xfe"); conn.Close() }),
		"resets": rawEndpoint(t, func(conn net.Conn) {
			_ = conn.(*net.TCPConn).SetLinger(0) // Close then sends RST
			conn.Close()
		}),
	} {
		t.Run(name, func(t *testing.T) {
			unreachable(t, judgeHostile(t, destination.Target{URL: url}, conformance.Options{Timeout: 30 * time.Second}))
		})
	}
}

// goodEndpoint is a simulator that breaks no rule.
func goodEndpoint(t *testing.T) http.Handler {
	t.Helper()
	sim, err := destsim.New(destsim.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sim.Close()) })
	return sim
}

// sabotaged is a good endpoint that answers one method by its own writing.
func sabotaged(t *testing.T, method string, answer func(conn net.Conn)) http.Handler {
	good := goodEndpoint(t)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var c struct{ Method string }
		if json.Unmarshal(body, &c) != nil || c.Method != method {
			r.Body = io.NopCloser(bytes.NewReader(body))
			good.ServeHTTP(w, r)
			return
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		answer(conn)
	})
}
