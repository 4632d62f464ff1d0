package destination_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/matrixtest"
)

// oneAtATime is the listener of an endpoint with a single worker: it accepts the next
// connection when the one before is closed.
type oneAtATime struct {
	net.Listener
	free chan struct{}
}

func (l oneAtATime) Accept() (net.Conn, error) {
	l.free <- struct{}{}
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &onlyConn{Conn: conn, closed: sync.OnceFunc(func() { <-l.free })}, nil
}

type onlyConn struct {
	net.Conn
	closed func()
}

func (c *onlyConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

// singleWorker serves a handler over one connection at a time.
func singleWorker(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Listener = oneAtATime{server.Listener, make(chan struct{}, 1)}
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Listener.(oneAtATime).Close()
	})
	return server.URL
}

// TestOneConnectionAtATime: a worker that keeps a connection serves no other one. That
// is one finding, and all else is judged over one connection after the other.
func TestOneConnectionAtATime(t *testing.T) {
	matrixtest.Long(t)
	for _, write := range []bool{false, true} {
		t.Run(fmt.Sprintf("write %t", write), func(t *testing.T) {
			t.Parallel()
			b := inMemory(t, simConfig())
			url := singleWorker(t, b.sim)
			opts := fullOptions(t, url)
			opts.PlanningTimeout, opts.Timeout = 2*time.Second, 2*time.Minute
			if !write {
				opts.Write, opts.Objects, opts.Readback, opts.Load = false, nil, conformance.HookSpec{}, false
			}
			r, err := destination.Run(t.Context(), destination.Target{URL: url + "/rpc?key=" + simSecret, Token: simToken}, opts)
			require.NoError(t, err)
			require.Equal(t, []string{"PAR-001"}, tripped(r), explain(r, tripped(r)))
			require.Contains(t, strings.Join(r.Notes, "\n"), "no second connection is served while another is open (PAR-001)")
			for _, c := range r.Checks {
				if c.ID == "PAR-001" {
					require.Len(t, c.Findings, 1)
					require.Contains(t, c.Findings[0].Actual, "no second connection is served while another is open: list_objects had no answer within 2")
					require.Contains(t, c.Findings[0].Fix, "ThreadingHTTPServer")
					require.True(t, c.Findings[0].Observed)
				}
				if write && strings.HasPrefix(c.ID, "PAR-") && c.ID != "PAR-001" {
					require.Equal(t, conformance.NotRun, c.Status, c.ID)
					require.Contains(t, c.Reason, "no second connection is served while another is open (PAR-001)")
				}
			}
		})
	}
}

// TestAMethodThatHangsIsNoQueue: only an answer that comes as soon as the other
// connection is closed shows that it waited for that.
func TestAMethodThatHangsIsNoQueue(t *testing.T) { // not in parallel: all tests share the heap
	opts := conformance.Options{PlanningTimeout: 250 * time.Millisecond, BatchTimeout: 250 * time.Millisecond, Timeout: time.Minute, Select: []string{"CON-*", "PAR-001", "TIM-001"}}
	for name, hangs := range map[string]func(n int) bool{
		"every call":   func(int) bool { return true },
		"every second": func(n int) bool { return n%2 == 1 },
		"every third":  func(n int) bool { return n%3 == 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int64
			good := goodEndpoint(t)
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err == nil && strings.Contains(string(body), rpc.MethodListObjects) && hangs(int(n.Add(1))) {
					<-r.Context().Done()
					return
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				good.ServeHTTP(w, r)
			})
			r := judgeHostile(t, destination.Target{Handler: h}, opts)
			if name == "every call" { // another one may go by the checks
				require.Equal(t, 1, r.ExitStatus, r.Summary)
				require.Contains(t, r.Failed, "CON-005")
			}
			require.NotContains(t, strings.Join(r.Notes, "\n"), "no second connection")
		})
	}
}

// hanging are replies that begin well and never come to their end. Each holds the
// connection until the judge has had enough.
var hanging = map[string]func(conn net.Conn){
	"a status line and nothing more": func(conn net.Conn) { hold(conn, "HTTP/1.1 200 OK\r\n") },
	"headers, one by one": func(conn net.Conn) {
		trickles(conn, "HTTP/1.1 200 OK\r\n", "X-Waiting: yes\r\n")
	},
	"a whole head and no body":      func(conn net.Conn) { hold(conn, jsonHead+"Content-Length: 80\r\n\r\n") },
	"a body, byte by byte":          func(conn net.Conn) { trickles(conn, jsonHead+"Content-Length: 100000\r\n\r\n", " ") },
	"a shorter body than announced": func(conn net.Conn) { hold(conn, jsonHead+"Content-Length: 100\r\n\r\n{\"jsonrpc\":\"2.0\"}") },
	"chunks without end":            func(conn net.Conn) { trickles(conn, jsonHead+"Transfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n") },
	"trailers without end": func(conn net.Conn) {
		trickles(conn, jsonHead+"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n", "T: 1\r\n")
	},
	"a body until a close that fails": func(conn net.Conn) { hold(conn, jsonHead+"Connection: close\r\n\r\n{}") },
	"interim responses without end":   func(conn net.Conn) { hold(conn, "HTTP/1.1 103 Early Hints\r\n\r\n") },
}

// hold writes the beginning of a reply and waits for the judge to close.
func hold(conn net.Conn, text string) {
	if say(conn, text) {
		_, _ = io.Copy(io.Discard, conn)
	}
}

// trickles writes a part again and again until the judge closes.
func trickles(conn net.Conn, head, part string) {
	ok := say(conn, head)
	for tick := time.NewTicker(20 * time.Millisecond); ok; <-tick.C {
		ok = say(conn, part)
	}
}

// TestWhatNeverEndsIsNoAnswer: replies that hang are evidence of nothing. Where none
// was ever complete there is no verdict; where those of one method hang no check
// passes that looks at all of them.
func TestWhatNeverEndsIsNoAnswer(t *testing.T) {
	matrixtest.Long(t)
	opts := conformance.Options{PlanningTimeout: 250 * time.Millisecond, BatchTimeout: 250 * time.Millisecond, Timeout: time.Minute}
	for name, reply := range hanging {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("every call", func(t *testing.T) {
				t.Parallel()
				r := judgeHostile(t, destination.Target{URL: rawEndpoint(t, reply)}, opts)
				unreachable(t, r)
				require.Zero(t, r.Counts[conformance.Pass])
			})
			for _, method := range []string{"test_connection", "list_fields"} {
				t.Run(method, func(t *testing.T) {
					t.Parallel()
					some := opts
					some.Select = []string{"HTTP-*", "RPC-*", "RL-006", "VER-001", "TIM-*", "FLD-*"}
					r := judgeHostile(t, destination.Target{Handler: sabotaged(t, method, reply)}, some)
					require.Equal(t, 1, r.ExitStatus, r.Summary)
					require.Contains(t, r.Failed, "HTTP-006")
					passed := map[string]string{
						"test_connection": "RPC-001 RPC-002 RPC-003 RPC-005 HTTP-001 HTTP-003 HTTP-004 HTTP-006 HTTP-010 RL-006 VER-001 TIM-001 TIM-003",
						"list_fields":     "RPC-001 RPC-002 RPC-005 HTTP-001 HTTP-003 HTTP-004 HTTP-006 HTTP-010 RL-006 TIM-001 TIM-003 FLD-001 FLD-002 FLD-003 FLD-004 FLD-005",
					}[method]
					for _, c := range r.Checks {
						if slices.Contains(strings.Fields(passed), c.ID) {
							require.NotEqual(t, conformance.Pass, c.Status, "%s rests on replies of which those of %s hang", c.ID, method)
						}
					}
				})
			}
		})
	}
}

// TestATLSHandshakeThatHangs: the port accepts connections and sends nothing.
func TestATLSHandshakeThatHangs(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
		}
	}()
	opts := conformance.Options{PlanningTimeout: 250 * time.Millisecond, BatchTimeout: 250 * time.Millisecond, Development: conformance.DevelopmentOn}
	unreachable(t, judgeHostile(t, destination.Target{URL: "https://" + l.Addr().String() + "/"}, opts))
}
