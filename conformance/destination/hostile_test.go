package destination_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/conformance/report"
	"github.com/destkit/destkit/internal/matrixtest"
)

// maxHeap is what the judge may use whatever the endpoint does, in bytes. The
// endpoints of these tests live in the same process and count as well.
const maxHeap = 256 << 20

// hostileOptions have deadlines that a test can wait for, where the endpoint makes
// the judge wait; elsewhere some that a busy machine keeps.
func hostileOptions(name string) conformance.Options {
	deadline := 10 * time.Second
	if waits[name] {
		deadline = 250 * time.Millisecond
	}
	return conformance.Options{PlanningTimeout: deadline, BatchTimeout: deadline, Timeout: 30 * time.Second, Serial: true}
}

// judgeHostile judges under a context that outlasts every deadline of the judge
// many times, and watches the memory. A judge that does not end by its own
// deadlines is interrupted, and the test fails.
func judgeHostile(t *testing.T, target destination.Target, opts conformance.Options) *conformance.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	peak := watchHeap()
	r, err := destination.Run(ctx, target, opts)
	used := peak()
	require.NoError(t, err)
	require.NoError(t, ctx.Err(), "the judge did not end by its own deadlines")
	t.Logf("%s; heap %d MiB", r.Summary, used>>20)
	require.Less(t, used, uint64(maxHeap))
	require.Zero(t, r.Counts[conformance.HarnessError], explain(r, tripped(r)))
	printable(t, r)
	return r
}

// frugal collects as often as a program does by itself; the tiers of the Makefile
// collect less often.
func frugal(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
}

// watchHeap samples the heap in use until it is asked for the highest value.
func watchHeap() func() uint64 {
	runtime.GC()
	stop, out := make(chan struct{}), make(chan uint64)
	go func() {
		var peak uint64
		// Reading these does not stop the program.
		used := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			metrics.Read(used)
			peak = max(peak, used[0].Value.Uint64()+used[1].Value.Uint64())
			select {
			case <-tick.C:
			case <-stop:
				out <- peak
				return
			}
		}
	}()
	return func() uint64 { close(stop); return <-out }
}

// printable holds the terminal report free of control characters, whatever the
// endpoint wrote.
func printable(t *testing.T, r *conformance.Report) {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, report.Write("text", &text, r))
	for _, c := range text.String() {
		if c < ' ' && c != '\n' || c == 0x7f || c >= 0x80 && c < 0xa0 {
			t.Fatalf("the text report holds the control character %U", c)
		}
	}
	require.Less(t, text.Len(), 1<<20)
}

// hostileCall is what a raw endpoint knows of the call that it answers.
type hostileCall struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

// rawEndpoint answers each call on a TCP connection by its own writing.
func rawEndpoint(t *testing.T, answer func(conn net.Conn, c hostileCall)) string {
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
					var c hostileCall
					if json.NewDecoder(req.Body).Decode(&c) != nil {
						c.ID = json.RawMessage("null")
					}
					if _, err := io.Copy(io.Discard, req.Body); err != nil {
						return
					}
					answer(conn, c)
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return "http://" + l.Addr().String() + "/rpc"
}

// say writes until the judge has had enough.
func say(conn net.Conn, parts ...string) bool {
	for _, p := range parts {
		if _, err := io.WriteString(conn, p); err != nil {
			return false
		}
	}
	return true
}

const jsonHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

// sized writes a whole response with a body of a known length.
func sized(conn net.Conn, head string, body ...[]byte) {
	n := 0
	for _, b := range body {
		n += len(b)
	}
	if !say(conn, head, fmt.Sprintf("Content-Length: %d\r\n\r\n", n)) {
		return
	}
	for _, b := range body {
		if _, err := conn.Write(b); err != nil {
			return
		}
	}
}

// repeated writes a pattern n times, without ever holding all of it.
func repeated(conn net.Conn, pattern string, n int) bool {
	block := []byte(strings.Repeat(pattern, 64<<10/len(pattern)+1))
	for left := n * len(pattern); left > 0; {
		k, err := conn.Write(block[:min(left, len(block)/len(pattern)*len(pattern))])
		if err != nil {
			return false
		}
		left -= k
	}
	return true
}

// wrapped is a big JSON body: head, n times a pattern, tail.
func wrapped(conn net.Conn, c hostileCall, head, pattern string, n int, tail string) {
	head = `{"jsonrpc":"2.0","id":` + string(c.ID) + `,"result":` + head
	tail += "}"
	_ = say(conn, jsonHead, fmt.Sprintf("Content-Length: %d\r\n\r\n", len(head)+n*len(pattern)+len(tail)), head) &&
		repeated(conn, pattern, n) && say(conn, tail)
}

// drip writes a text byte by byte, slower than any deadline.
func drip(conn net.Conn, text string) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := range len(text) {
		<-tick.C
		if !say(conn, text[i:i+1]) {
			return
		}
	}
}

func reset(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0) // Close then sends RST
	conn.Close()
}

// bomb is gzip that unpacks to 1 GiB of zeros: many members, one after another.
var bomb = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, _ = z.Write(make([]byte, 16<<20)) // into memory: cannot fail
	_ = z.Close()
	return bytes.Repeat(b.Bytes(), 64)
})

// TestMatrixHostileEndpoints: an endpoint that answers in HTTP is judged and fails; one
// that never does is unreachable.
func TestMatrixHostileEndpoints(t *testing.T) {
	matrixtest.Long(t)
	if testing.Short() {
		t.Skip("hostile endpoints need deadlines that the race detector does not keep")
	}
	const ansi = "\x1b]0;owned\x07\x1b[2J\x1b[31mPASS\x1b[0m\u009b1m\u202e"
	quoted, err := json.Marshal(ansi)
	require.NoError(t, err)
	bomb() // takes longer than the deadlines
	frugal(t)
	for _, c := range []struct {
		name   string
		answer func(conn net.Conn, c hostileCall)
		// failed is a check that must fail; "" when the endpoint is unreachable.
		failed string
	}{
		{"endless body", func(conn net.Conn, _ hostileCall) {
			if say(conn, jsonHead, "Transfer-Encoding: chunked\r\n\r\n") {
				for repeated(conn, "4000\r\n"+strings.Repeat(" ", 0x4000)+"\r\n", 64) {
				}
			}
		}, "HTTP-006"},
		{"endless body until close", func(conn net.Conn, _ hostileCall) {
			if say(conn, jsonHead, "Connection: close\r\n\r\n[") {
				for repeated(conn, "[],", 1<<20) {
				}
			}
		}, "HTTP-006"},
		{"gzip bomb", func(conn net.Conn, _ hostileCall) {
			sized(conn, jsonHead+"Content-Encoding: gzip\r\n", bomb())
		}, "HTTP-006"},
		{"deep nesting", func(conn net.Conn, c hostileCall) { wrapped(conn, c, "", "[", 5<<20, "") }, "RPC-001"},
		{"deep nesting, closed", func(conn net.Conn, c hostileCall) {
			wrapped(conn, c, strings.Repeat(`{"a":`, 100_000)+"1", "}", 100_000, "")
		}, "RPC-001"},
		{"64 MB of JSON", func(conn net.Conn, c hostileCall) {
			wrapped(conn, c, `{"objects":[1`, `,{"object_api_name":"a","label":"b"}`, 64<<20/36, `]}`)
		}, "HTTP-006"},
		{"4 MB of small values", func(conn net.Conn, c hostileCall) { wrapped(conn, c, `{"objects":[1`, ",1", 2<<20, `]}`) }, "RPC-001"},
		{"4 MB of one string", func(conn net.Conn, c hostileCall) { wrapped(conn, c, `{"success":"`, "\\u001b", 4<<20/6, `"}`) }, "CON-001"},
		{"4 MB of error message", func(conn net.Conn, c hostileCall) {
			head := `{"jsonrpc":"2.0","id":` + string(c.ID) + `,"error":{"code":-32000,"message":"`
			const n = 4 << 20
			_ = say(conn, jsonHead, fmt.Sprintf("Content-Length: %d\r\n\r\n", len(head)+n+3), head) && repeated(conn, "x", n) && say(conn, `"}}`)
		}, "CON-004"},
		{"a million headers", func(conn net.Conn, _ hostileCall) {
			_ = say(conn, jsonHead) && repeated(conn, "X-Header: value\r\n", 1_000_000) && say(conn, "Content-Length: 2\r\n\r\n{}")
		}, "HTTP-006"},
		{"a header without an end", func(conn net.Conn, _ hostileCall) {
			if say(conn, jsonHead, "X-Header: ") {
				for repeated(conn, "v", 1<<20) {
				}
			}
		}, "HTTP-006"},
		{"endless 100 Continue", func(conn net.Conn, _ hostileCall) {
			for repeated(conn, "HTTP/1.1 100 Continue\r\n\r\n", 1000) {
			}
		}, "HTTP-006"},
		{"a status line without an end", func(conn net.Conn, _ hostileCall) {
			for repeated(conn, "HTTP/1.1 200 OK ", 1000) {
			}
		}, ""},
		{"chunk sizes without an end", func(conn net.Conn, _ hostileCall) {
			if say(conn, jsonHead, "Transfer-Encoding: chunked\r\n\r\n") {
				for repeated(conn, "0", 1<<20) {
				}
			}
		}, "HTTP-006"},
		{"lengths that contradict", func(conn net.Conn, _ hostileCall) {
			say(conn, jsonHead, "Content-Length: 5\r\nContent-Length: 9999999999999999999999\r\nTransfer-Encoding: chunked\r\n\r\n{}")
			reset(conn)
		}, "HTTP-006"},
		{"slow drip of the body", func(conn net.Conn, c hostileCall) {
			if say(conn, jsonHead, "Content-Length: 1000000\r\n\r\n") {
				drip(conn, strings.Repeat(" ", 1000))
			}
		}, ""},
		{"slow drip of the status line", func(conn net.Conn, _ hostileCall) { drip(conn, jsonHead) }, ""},
		{"garbage", func(conn net.Conn, _ hostileCall) {
			say(conn, "\x16\x03\x01SSH-2.0-OpenSSH\r\n\x00\xff\xfe")
			conn.Close()
		}, ""},
		{"reset before the response", func(conn net.Conn, _ hostileCall) { reset(conn) }, ""},
		{"reset in the header", func(conn net.Conn, _ hostileCall) { say(conn, "HTTP/1.1 200 OK\r\nContent-Ty"); reset(conn) }, "HTTP-006"},
		{"reset in the body", func(conn net.Conn, _ hostileCall) {
			say(conn, jsonHead, "Content-Length: 100\r\n\r\n{\"jsonrpc\"")
			reset(conn)
		}, "HTTP-006"},
		{"never an answer", func(conn net.Conn, _ hostileCall) { _, _ = io.Copy(io.Discard, conn) }, ""},
		{"text of a proxy", func(conn net.Conn, _ hostileCall) {
			sized(conn, "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\n", []byte("upstream connect error"))
		}, "RPC-001"},
		{"redirects in a loop", func(conn net.Conn, _ hostileCall) {
			sized(conn, "HTTP/1.1 307 Temporary Redirect\r\nLocation: /again\r\n")
		}, "CON-004"},
		{"a redirect to another host", func(conn net.Conn, _ hostileCall) {
			sized(conn, "HTTP/1.1 302 Found\r\nLocation: http://203.0.113.1:9/\r\n")
		}, "CON-004"},
		{"escapes for the terminal", func(conn net.Conn, c hostileCall) {
			sized(conn, jsonHead, []byte(`{"jsonrpc":"2.0","id":`+string(c.ID)+`,"result":{"success":`+string(quoted)+`,"objects":[{"object_api_name":`+string(quoted)+`}]}}`))
		}, "CON-001"},
		{"escapes in a header", func(conn net.Conn, _ hostileCall) {
			sized(conn, "HTTP/1.1 200 OK\r\nContent-Type: "+ansi+"\r\n", []byte("{}"))
		}, "HTTP-006"},
		{"raw escapes for the terminal", func(conn net.Conn, _ hostileCall) {
			sized(conn, jsonHead, []byte(ansi))
		}, "RPC-001"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !large[c.name] {
				t.Parallel()
			}
			opts := hostileOptions(c.name)
			// Each call may use up its deadline; one check at a time takes long.
			opts.Serial = !strings.HasPrefix(c.name, "slow")
			if large[c.name] { // in every answer, whichever check asks
				opts.Select = []string{"HTTP-006", "RPC-001", "RPC-008", "CON-*", "OBJ-001"}
			}
			r := judgeHostile(t, destination.Target{URL: rawEndpoint(t, c.answer)}, opts)
			if c.failed == "" {
				unreachable(t, r)
				return
			}
			require.Equal(t, 1, r.ExitStatus, r.Summary)
			require.Equal(t, conformance.NonConformant, r.Verdict)
			require.Contains(t, r.Failed, c.failed, explain(r, append(r.Failed, c.failed)))
		})
	}
}

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

// TestNobodyThere: no address, no listener, and no TLS.
func TestNobodyThere(t *testing.T) {
	frugal(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	t.Run("nothing listens", func(t *testing.T) {
		unreachable(t, judgeHostile(t, destination.Target{URL: "http://" + l.Addr().String() + "/"}, hostileOptions(t.Name())))
	})
	t.Run("no such host", func(t *testing.T) {
		unreachable(t, judgeHostile(t, destination.Target{URL: "http://endpoint.invalid/"}, hostileOptions(t.Name())))
	})
	t.Run("https where http is spoken", func(t *testing.T) {
		plain := httptest.NewServer(http.NotFoundHandler())
		defer plain.Close()
		opts := hostileOptions(t.Name())
		opts.Development = conformance.DevelopmentOn
		unreachable(t, judgeHostile(t, destination.Target{URL: strings.Replace(plain.URL, "http:", "https:", 1)}, opts))
	})
}

// large are endpoints whose every answer takes the judge much time.
var large = map[string]bool{
	"endless body": true, "endless body until close": true, "gzip bomb": true, "64 MB of JSON": true, "deep nesting": true,
	"4 MB of small values": true, "4 MB of one string": true, "4 MB of error message": true,
}

// waits are endpoints that take the judge's time and nothing else: several are
// judged at once, and together stay within the memory of one.
var waits = map[string]bool{
	"slow drip of the body": true, "slow drip of the status line": true, "never an answer": true,
	"no batch is ever answered": true, "the slowest speed": true, "one call in a second": true,
}

// sabotaged is a good endpoint that answers one method by its own writing.
func sabotaged(method string, answer func(conn net.Conn, c hostileCall)) http.Handler {
	good := &sloppy{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var c hostileCall
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
		answer(conn, c)
	})
}

// TestMatrixHostileMethods: one method of an otherwise good endpoint goes wild, with
// writes permitted.
func TestMatrixHostileMethods(t *testing.T) {
	matrixtest.Long(t)
	if testing.Short() {
		t.Skip("hostile endpoints need deadlines that the race detector does not keep")
	}
	const many = 200_000
	frugal(t)
	for _, c := range []struct {
		name, method string
		answer       func(conn net.Conn, c hostileCall)
		failed       string // "" when the run only has to end
	}{
		{"endless results", "sync_batch", func(conn net.Conn, c hostileCall) {
			wrapped(conn, c, `{"record_results":[0`, `,{"identifier":"x","success":true}`, 64<<20, `]}`)
		}, "OPS-004"},
		{"many results", "sync_batch", func(conn net.Conn, c hostileCall) {
			wrapped(conn, c, `{"record_results":[{"identifier":"x","success":true}`, `,{"identifier":"x","success":true}`, 200_000, `]}`)
		}, "OPS-004"},
		{"no batch is ever answered", "sync_batch", func(conn net.Conn, _ hostileCall) { _, _ = io.Copy(io.Discard, conn) }, "RES-001"},
		{"every batch is reset", "sync_batch", func(net.Conn, hostileCall) {}, "OPS-004"},
		{"many objects", "list_objects", func(conn net.Conn, c hostileCall) {
			var b strings.Builder
			b.WriteString(`{"jsonrpc":"2.0","id":` + string(c.ID) + `,"result":{"objects":[{"object_api_name":"contact","label":"c"}`)
			for i := range many {
				fmt.Fprintf(&b, `,{"object_api_name":"o%d","label":"o"}`, i)
			}
			b.WriteString("]}}")
			sized(conn, jsonHead, []byte(b.String()))
		}, ""},
		{"many fields", "list_fields", func(conn net.Conn, c hostileCall) {
			wrapped(conn, c, `{"fields":[0`, `,{"field_api_name":"x","label":"x","identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":false}`, 2_000, `]}`)
		}, "FLD-001"},
		{"many operations", "supported_operations", func(conn net.Conn, c hostileCall) {
			wrapped(conn, c, `{"operations":["upsert"`, `,"upsert"`, 100_000, `]}`)
		}, "OPS-002"},
		{"the slowest speed", "get_sync_speed", func(conn net.Conn, c hostileCall) {
			wrapped(conn, c, `{"maximum_batch_size":1,"maximum_parallel_batches":1,"maximum_records_per_second":1}`, " ", 1, "")
		}, ""},
		{"numbers beyond all bounds", "get_sync_speed", func(conn net.Conn, c hostileCall) {
			wrapped(conn, c, `{"maximum_batch_size":9223372036854775807,"maximum_parallel_batches":9223372036854775807,"maximum_records_per_second":9223372036854775807}`, " ", 1, "")
		}, ""},
		{"one call in a second", "get_sync_speed", func(conn net.Conn, c hostileCall) {
			sized(conn, jsonHead+"X-RateLimit-Limit: 1\r\n",
				[]byte(`{"jsonrpc":"2.0","id":`+string(c.ID)+`,"result":{"maximum_batch_size":1,"maximum_parallel_batches":1,"maximum_records_per_second":1}}`))
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if waits[c.name] {
				t.Parallel()
			}
			opts := hostileOptions(c.name)
			opts.Timeout = 3 * time.Second // some of them would go on for hours
			if c.failed != "" {            // a busy machine must come that far
				opts.Timeout = time.Minute
			}
			opts.Write, opts.Objects = true, []string{"contact"}
			if c.name == "many results" { // each batch has them
				opts.Select = []string{"OPS-*"}
			}
			r := judgeHostile(t, destination.Target{Handler: sabotaged(c.method, c.answer)}, opts)
			if c.failed != "" {
				require.Equal(t, 1, r.ExitStatus, r.Summary)
				require.Contains(t, r.Failed, c.failed, explain(r, append(r.Failed, c.failed)))
			}
		})
	}
}
