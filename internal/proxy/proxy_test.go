package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/proxy"
	"github.com/destkit/destkit/internal/testkit"
)

// seenBy keeps what a proxy has seen.
type seenBy struct {
	mu  sync.Mutex
	all []*proxy.Seen
}

func (s *seenBy) Observe(x *proxy.Seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, x)
}

// running starts a proxy to an address and gives its own; stop ends it and waits until
// everything was seen.
func running(t *testing.T, cfg proxy.Config) (address string, stop func()) {
	t.Helper()
	p, err := proxy.New(cfg)
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- p.Serve(t.Context(), ln) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			ln.Close()
			require.NoError(t, <-served)
			p.Close()
		})
	}
	t.Cleanup(stop)
	return ln.Addr().String(), stop
}

// script is an endpoint that reads one request and answers with these bytes, whatever
// they are; it records its input.
type script struct {
	address string
	mu      sync.Mutex
	read    bytes.Buffer
}

func scripted(t *testing.T, answer string, reset bool) *script {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	s := &script{address: ln.Addr().String()}
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				br := bufio.NewReader(conn)
				req, err := http.ReadRequest(br)
				if err != nil {
					return
				}
				body, _ := io.ReadAll(req.Body)
				s.mu.Lock()
				s.read.Write(body)
				s.mu.Unlock()
				for part := range strings.SplitSeq(answer, "\x00") { // pieces, each in a separate packet
					_, _ = io.WriteString(conn, part)
					if strings.Contains(answer, "\x00") {
						time.Sleep(5 * time.Millisecond)
					}
				}
				if reset {
					_ = conn.(*net.TCPConn).SetLinger(0)
				}
			}()
		}
	}()
	return s
}

// exchange sends bytes and reads everything that comes up to the end.
func exchange(t *testing.T, address, request string) (string, error) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = io.WriteString(conn, request)
	require.NoError(t, err)
	got, err := io.ReadAll(conn)
	return string(got), err
}

const rpcBody = `{"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"}`

var post = fmt.Sprintf("POST / HTTP/1.1\r\nhOsT: 127.0.0.1\r\ncontent-TYPE: application/json\r\nX-Odd:   two  spaces \r\nContent-Length: %d\r\n\r\n%s", len(rpcBody), rpcBody)

// TestResponsesArriveByteForByte: even bytes that are no HTTP reach the caller as sent.
func TestResponsesArriveByteForByte(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 40_000)
	for name, answer := range map[string]string{
		"a length":                     "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
		"odd case and order":           "HTTP/1.1 200 Fine  by me\r\nx-B: 1\r\nX-a:2\r\nx-b:   3\r\ncOntent-lEngth: 2\r\n\r\n{}",
		"chunks with trailers":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n1;ext=\"a\"\r\n{\r\n01\r\n}\r\n0\r\nX-Sum: 7\r\n\r\n",
		"chunks that are cut":          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}",
		"a chunk of a wrong size":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
		"a chunk size that is none":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
		"up to the end":                "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}\r\n\r\nmore",
		"a length that is too long":    "HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n{}",
		"a length that is too short":   "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{}and more",
		"two lengths":                  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}!",
		"a length and chunks":          "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"HTTP/1.0":                     "HTTP/1.0 200 OK\r\n\r\n{}",
		"no HTTP":                      "SSH-2.0-OpenSSH_9.6\r\n",
		"HTTP/2":                       "HTTP/2 200\r\n\r\n{}",
		"a status that is none":        "HTTP/1.1 abc OK\r\nContent-Length: 2\r\n\r\n{}",
		"half a head":                  "HTTP/1.1 200 OK\r\nContent-Le",
		"bare line feeds":              "HTTP/1.1 200 OK\nContent-Length: 2\n\n{}",
		"a folded header":              "HTTP/1.1 200 OK\r\nX-A: 1\r\n 2\r\nContent-Length: 2\r\n\r\n{}",
		"a header without colon":       "HTTP/1.1 200 OK\r\nnonsense\r\nContent-Length: 2\r\n\r\n{}",
		"interim responses":            "HTTP/1.1 102 Processing\r\nX-A: 1\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
		"no content":                   "HTTP/1.1 204 No Content\r\n\r\n",
		"a page":                       "HTTP/1.1 500 Oops\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>",
		"bytes that are no text":       "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\x01\xff\xfe\x80",
		"another protocol":             "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nanything \x01 goes",
		"a long body":                  fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(big), big),
		"a long head":                  "HTTP/1.1 200 OK\r\nX-Long: " + big[:200_000] + "\r\nContent-Length: 2\r\n\r\n{}",
		"a head that is far too long":  "HTTP/1.1 200 OK\r\nX-Long: " + big + "\r\nContent-Length: 2\r\n\r\n{}",
		"a body in many packets":       "HTTP/1.1 200 OK\r\n\x00Content-Length: 6\r\n\r\n\x00{\x00\x22a\x22\x00:1}",
		"chunks in many packets":       "HTTP/1.1 200 OK\r\nTransfer-Enco\x00ding: chunked\r\n\r\n2\x00\r\n{\x00}\r\x00\n0\r\n\x00\r\n",
		"a header without its value":   "HTTP/1.1 200 OK\r\nX-Empty:\r\nContent-Length: 2\r\n\r\n{}",
		"two answers to one request":   "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
		"a body behind no content":     "HTTP/1.1 204 No Content\r\n\r\nsurplus",
		"a negative length":            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
		"a reason with strange bytes":  "HTTP/1.1 200 \xc3\xa9\x07\r\nContent-Length: 2\r\n\r\n{}",
		"a space before the colon":     "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\n{}",
		"an encoding that is not true": "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scripted(t, answer, false)
			seen := &seenBy{}
			address, stop := running(t, proxy.Config{To: "http://" + s.address + "/", Observer: seen})
			got, err := exchange(t, address, post)
			require.NoError(t, err)
			require.Equal(t, strings.ReplaceAll(answer, "\x00", ""), got)
			s.mu.Lock()
			require.Equal(t, rpcBody, s.read.String())
			s.mu.Unlock()
			stop()
			require.Len(t, seen.all, 1)
			require.Equal(t, rpcBody, string(seen.all[0].Sight.RequestBody))
			require.Equal(t, got, string(seen.all[0].Sight.Raw))
			require.Zero(t, seen.all[0].Local)
		})
	}
}

// TestRequestsArriveByteForByte: the endpoint gets what the caller has sent, but for
// the address.
func TestRequestsArriveByteForByte(t *testing.T) {
	for name, c := range map[string]struct{ sent, want, to string }{
		"order, case and space": {post, strings.Replace(post, "hOsT: 127.0.0.1", "hOsT: HOST", 1), "/"},
		"chunks with trailers": {
			"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: nothing\r\n\r\n2;x=y\r\n{}\r\n0\r\nX-T: 1\r\n\r\n",
			"POST / HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\nExpect: nothing\r\n\r\n2;x=y\r\n{}\r\n0\r\nX-T: 1\r\n\r\n", "/",
		},
		"the path of the endpoint": {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET /rpc/x?key=%20s HTTP/1.1\r\nHost: HOST\r\n\r\n", "/rpc/x?key=%20s"},
		"another path":             {"GET /a%2Fb?c=d+e HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a%2Fb?c=d+e HTTP/1.1\r\nHost: HOST\r\n\r\n", "/rpc?key=s"},
		"no host":                  {"GET / HTTP/1.0\r\nX-A: 1\r\n\r\n", "GET / HTTP/1.0\r\nX-A: 1\r\n\r\n", "/"},
		"headers of one hop":       {"GET / HTTP/1.1\r\nHost: a\r\nConnection: x-y, keep-alive\r\nX-Y: 1\r\nTE: trailers\r\nKeep-Alive: 30\r\n\r\n", "GET / HTTP/1.1\r\nHost: HOST\r\nConnection: x-y, keep-alive\r\nX-Y: 1\r\nTE: trailers\r\nKeep-Alive: 30\r\n\r\n", "/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer ln.Close()
			got := make(chan string, 1)
			go func() {
				conn, err := ln.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				want := strings.Replace(c.want, "HOST", ln.Addr().String(), 1)
				b := make([]byte, len(want))
				_, _ = io.ReadFull(conn, b)
				got <- string(b)
				_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
			}()
			address, _ := running(t, proxy.Config{To: "http://" + ln.Addr().String() + c.to, Observer: &seenBy{}})
			_, err = exchange(t, address, c.sent)
			require.NoError(t, err)
			require.Equal(t, strings.Replace(c.want, "HOST", ln.Addr().String(), 1), <-got)
		})
	}
}

// TestTheProxyAnswersByItself lists the answers that are not those of the endpoint.
func TestTheProxyAnswersByItself(t *testing.T) {
	silent := scripted(t, "", false)
	closed := scripted(t, "", true)
	nowhere, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nowhere.Close()
	for name, c := range map[string]struct{ to, sent, status, why string }{
		"nothing listens":         {nowhere.Addr().String(), post, "502 Bad Gateway", "destkit proxy: the endpoint cannot be reached: nothing listens at " + nowhere.Addr().String() + ": start the endpoint"},
		"it closes at once":       {silent.address, post, "502 Bad Gateway", "destkit proxy: the endpoint closed the connection without an answer"},
		"it resets":               {closed.address, post, "502 Bad Gateway", "destkit proxy: the endpoint closed the connection without an answer"},
		"a forward proxy":         {silent.address, "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n", "400 Bad Request", "destkit proxy: the request is one to a forward proxy"},
		"a tunnel":                {silent.address, "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n", "400 Bad Request", "one to a forward proxy"},
		"two lengths":             {silent.address, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}", "400 Bad Request", "there are two"},
		"a length and chunks":     {silent.address, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 Bad Request", "both a Content-Length"},
		"a strange coding":        {silent.address, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "400 Bad Request", "is not chunked"},
		"a space before a colon":  {silent.address, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 1\r\n\r\n{", "400 Bad Request", "a header line"},
		"a folded header":         {silent.address, "POST / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", "400 Bad Request", "a header line"},
		"no request":              {silent.address, "hello\r\n\r\n", "400 Bad Request", "the request line"},
		"a head that is too long": {silent.address, "GET / HTTP/1.1\r\nX: " + strings.Repeat("a", 300_000) + "\r\n\r\n", "431 Request Header Fields Too Large", "larger than 16 KiB"},
		"a bare LF":               {silent.address, "POST / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", "400 Bad Request", "ends with LF alone"},
		"an LF at the end":        {silent.address, "POST / HTTP/1.1\r\nHost: a\n\n", "400 Bad Request", "ends with LF alone"},
		"chunks in HTTP/1.0":      {silent.address, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 Bad Request", "HTTP/1.0 has no Transfer-Encoding"},
		"NUL in a name":           {silent.address, "POST / HTTP/1.1\r\nTransfer-Encoding\x00: chunked\r\n\r\n", "400 Bad Request", "a header line"},
		"0xA0 in a name":          {silent.address, "POST / HTTP/1.1\r\nContent-Length\xa0: 1\r\n\r\nx", "400 Bad Request", "a header line"},
		"CR in the target":        {silent.address, "POST /a\rb HTTP/1.1\r\nHost: a\r\n\r\n", "400 Bad Request", "control character"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, _ := running(t, proxy.Config{To: "http://" + c.to + "/", Observer: &seenBy{}})
			got, err := exchange(t, address, c.sent)
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(got, "HTTP/1.1 "+c.status+"\r\n"), got)
			require.Contains(t, got, "X-Destkit-Proxy: answered\r\n")
			require.Contains(t, got, c.why)
		})
	}
}

// keepAlive is an endpoint that answers every request, after a wait.
func keepAlive(t *testing.T, wait time.Duration) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		time.Sleep(wait)
		_, _ = w.Write(body)
	})}
	go func() { _ = srv.Serve(ln) }()
	t.Cleanup(func() { srv.Close() })
	return ln.Addr().String()
}

func TestPipelinedRequests(t *testing.T) {
	seen := &seenBy{}
	address, stop := running(t, proxy.Config{To: "http://" + keepAlive(t, 0) + "/", Observer: seen})
	var sent strings.Builder
	const n = 200
	for i := range n {
		body := fmt.Sprintf(`{"n":%d}`, i)
		last := ""
		if i == n-1 {
			last = "Connection: close\r\n"
		}
		fmt.Fprintf(&sent, "POST / HTTP/1.1\r\nHost: a\r\n%sContent-Length: %d\r\n\r\n%s", last, len(body), body)
	}
	got, err := exchange(t, address, sent.String())
	require.NoError(t, err)
	br := bufio.NewReader(strings.NewReader(got))
	for i := range n {
		resp, err := http.ReadResponse(br, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf(`{"n":%d}`, i), string(body))
	}
	stop()
	require.Len(t, seen.all, n)
	for i, x := range seen.all {
		require.Equal(t, fmt.Sprintf(`{"n":%d}`, i), string(x.Sight.RequestBody), "request and response of one exchange")
		require.True(t, strings.HasSuffix(string(x.Sight.Raw), fmt.Sprintf(`{"n":%d}`, i)))
	}
}

func TestLongBodiesAreOnlyPassedOn(t *testing.T) {
	seen := &seenBy{}
	address, stop := running(t, proxy.Config{To: "http://" + keepAlive(t, 0) + "/", Observer: seen, MaxBody: 1000})
	long := strings.Repeat("x", 5<<20)
	got, err := exchange(t, address, fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(long), long))
	require.NoError(t, err)
	require.Greater(t, len(got), len(long), "the body comes back whole, in chunks")
	stop()
	require.Len(t, seen.all, 1)
	require.Equal(t, "a body is longer than --max-body", seen.all[0].Lost)
	require.Empty(t, seen.all[0].Sight.RequestBody)
}

// slowly is an observer that waits for a channel before each exchange.
type slowly struct{ until chan struct{} }

func (s slowly) Observe(*proxy.Seen) { <-s.until }

func TestASlowJudgeHoldsNoCall(t *testing.T) {
	judge := slowly{make(chan struct{})}
	p, err := proxy.New(proxy.Config{To: "http://" + keepAlive(t, 0) + "/", Observer: judge})
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- p.Serve(t.Context(), ln) }()
	const n = 5000 // more than wait to be judged
	var sent strings.Builder
	for i := range n {
		last := ""
		if i == n-1 {
			last = "Connection: close\r\n"
		}
		fmt.Fprintf(&sent, "POST / HTTP/1.1\r\nHost: a\r\n%sContent-Length: 2\r\n\r\n{}", last)
	}
	conn, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	go func() { _, _ = io.WriteString(conn, sent.String()) }()
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, n, strings.Count(string(got), "HTTP/1.1 200 OK"), "every call is answered while the judge stands still")
	require.Greater(t, p.Counts().NotJudged, int64(0))
	close(judge.until)
	ln.Close()
	require.NoError(t, <-served)
	p.Close()
	require.Equal(t, int64(n), p.Counts().Passed)
}

// TestTheCallersEndIsPassedOn: an endpoint sees that its caller has gone, as it would
// without the proxy.
func TestTheCallersEndIsPassedOn(t *testing.T) {
	for name, end := range map[string]func(conn *net.TCPConn){
		"closed": func(conn *net.TCPConn) { conn.Close() },
		"reset":  func(conn *net.TCPConn) { _ = conn.SetLinger(0); conn.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			came, gone := make(chan struct{}), make(chan struct{})
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			srv := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				close(came)
				<-r.Context().Done()
				close(gone)
				// A handler that returns is answered for with 200, and who has closed only
				// the writing side gets that: nothing must be left to pass on.
				panic(http.ErrAbortHandler)
			})}
			go func() { _ = srv.Serve(ln) }()
			defer srv.Close()
			seen := &seenBy{}
			address, stop := running(t, proxy.Config{To: "http://" + ln.Addr().String() + "/", Observer: seen})
			conn, err := net.Dial("tcp", address)
			require.NoError(t, err)
			_, err = io.WriteString(conn, post)
			require.NoError(t, err)
			<-came
			end(conn.(*net.TCPConn))
			<-gone
			stop()
			require.Len(t, seen.all, 1)
			require.Error(t, seen.all[0].Sight.Err)
		})
	}
}

// TestEventsArriveAtOnce: a response that comes in parts is passed on in parts.
func TestEventsArriveAtOnce(t *testing.T) {
	next := make(chan struct{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := range 3 {
			fmt.Fprintf(w, "part %d\n", i)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	})}
	go func() { _ = srv.Serve(ln) }()
	defer srv.Close()
	address, _ := running(t, proxy.Config{To: "http://" + ln.Addr().String() + "/", Observer: &seenBy{}})
	resp, err := http.Get("http://" + address + "/")
	require.NoError(t, err)
	defer resp.Body.Close()
	br := bufio.NewReader(resp.Body)
	for i := range 3 {
		line, err := br.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("part %d\n", i), line)
		next <- struct{}{}
	}
}

// TestCallsItself: as far as that is certain before a connection.
func TestCallsItself(t *testing.T) {
	for _, c := range []struct {
		to, addr string
		itself   bool
	}{
		{"http://127.0.0.1:18085/", "127.0.0.1:18085", true},
		{"https://127.0.0.1:18085/x?y", "127.0.0.1:18085", true},
		{"http://localhost:18085/", "127.0.0.1:18085", true},
		{"http://localhost:18085/", "[::1]:18085", true},
		{"http://127.0.0.1:18085/", "localhost:18085", true},
		{"http://0.0.0.0:18085/", "127.0.0.1:18085", true},
		{"http://[::]:18085/", "127.0.0.1:18085", true},
		{"http://127.0.0.1:18085/", ":18085", true},
		{"http://[::1]:18085/", "0.0.0.0:18085", true},
		{"http://127.0.0.1:18085/", "[::]:18085", true},
		{"http://127.0.0.1/", "127.0.0.1:80", true},
		{"https://127.0.0.1/", "127.0.0.1:443", true},
		{"http://127.0.0.1:18086/", "127.0.0.1:18085", false},
		{"http://127.0.0.2:18085/", "127.0.0.1:18085", false},
		{"http://example.com:18085/", ":18085", false},
		{"http://192.0.2.1:18085/", ":18085", false},
		{"http://127.0.0.1:18085/", "127.0.0.1:0", false},
		{"http://127.0.0.1:18085/", "nothing", false},
	} {
		require.Equal(t, c.itself, proxy.CallsItself(c.to, c.addr), "%s at %s", c.to, c.addr)
	}
}

// TestALoopIsStopped: a name that leads back to the proxy is seen once it is dialled.
func TestALoopIsStopped(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var dialled atomic.Int64
	p, err := proxy.New(proxy.Config{To: "http://endpoint.example/", Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		if dialled.Add(1) > 3 {
			return nil, errors.New("it calls itself again and again")
		}
		return new(net.Dialer).DialContext(ctx, network, ln.Addr().String())
	}})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- p.Serve(t.Context(), ln) }()
	got, err := exchange(t, ln.Addr().String(), post)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(got, "HTTP/1.1 502 "), got)
	require.Contains(t, got, "the endpoint cannot be reached: its URL leads to this proxy itself")
	require.EqualValues(t, 1, dialled.Load())
	ln.Close()
	require.NoError(t, <-served)
	p.Close()
}

// TestCallersThatStall: more connections than are carried begin a head and stall; calls still get
// through, and what they held is given back.
func TestCallersThatStall(t *testing.T) {
	address, _ := running(t, proxy.Config{To: "http://" + keepAlive(t, 0) + "/"})
	testkit.Stalled(t, address, post)
}
