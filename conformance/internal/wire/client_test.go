package wire

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rawServer accepts connections and hands each to serve, which may break any
// rule of HTTP. The n-th connection counts from 1.
func rawServer(t *testing.T, serve func(n int, conn *net.TCPConn, br *bufio.Reader)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop); l.Close() })
	go func() {
		for n := 1; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				go func() { <-stop; conn.Close() }()
				serve(n, conn.(*net.TCPConn), bufio.NewReader(conn))
			}()
		}
	}()
	return "http://" + l.Addr().String() + "/rpc"
}

// readRequest reads one request and gives its head and body.
func readRequest(br *bufio.Reader) (head, body string, err error) {
	var b strings.Builder
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			return b.String(), "", err
		}
		b.WriteString(line)
		if line == "\r\n" {
			break
		}
	}
	req, err := http.ReadRequest(bufio.NewReader(io.MultiReader(strings.NewReader(b.String()), br)))
	if err != nil {
		return b.String(), "", err
	}
	got, err := io.ReadAll(req.Body)
	return b.String(), string(got), err
}

// answer serves every request of a connection with the same bytes, and closes after them with
// closeAfter.
func answer(reply string, closeAfter bool) func(int, *net.TCPConn, *bufio.Reader) {
	return func(_ int, conn *net.TCPConn, br *bufio.Reader) {
		for {
			if _, _, err := readRequest(br); err != nil {
				return
			}
			if _, err := io.WriteString(conn, reply); err != nil || closeAfter {
				return
			}
		}
	}
}

func newClient(t *testing.T, opts Options) *Client {
	t.Helper()
	c, err := New(opts)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func ok(body string) string {
	return "HTTP/1.1 200 OK\r\nContent-Length: " + itoa(len(body)) + "\r\n\r\n" + body
}

func itoa(n int) string { return string(appendInt(nil, n)) }

func appendInt(b []byte, n int) []byte {
	if n >= 10 {
		b = appendInt(b, n/10)
	}
	return append(b, byte('0'+n%10))
}

func TestRequestIsWrittenAsTheServiceWritesIt(t *testing.T) {
	heads := make(chan string, 8)
	url := rawServer(t, func(_ int, conn *net.TCPConn, br *bufio.Reader) {
		for {
			head, body, err := readRequest(br)
			if err != nil {
				return
			}
			heads <- head + body
			_, _ = io.WriteString(conn, ok("{}"))
		}
	})
	host := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/rpc")
	c := newClient(t, Options{URL: url + "?key=a%2fb&x=%20#part", Token: "tok-123456", UserAgent: "destkit/1.2",
		Headers: map[string]string{"x-team": "blue"}})
	tests := []struct {
		name string
		call Call
		want string
	}{
		{"defaults", Call{Body: []byte("{}")}, "POST /rpc?key=a%2fb&x=%20 HTTP/1.1\r\nUser-Agent: destkit/1.2\r\nContent-Type: application/json\r\n" +
			"Accept-Encoding: gzip;q=1.0,deflate;q=0.6,identity;q=0.3\r\nAccept: */*\r\nConnection: keep-alive\r\nKeep-Alive: 30\r\n" +
			"Host: " + host + "\r\nContent-Length: 2\r\nAuthorization: Bearer tok-123456\r\nx-team: blue\r\n\r\n{}"},
		{"overridden", Call{HTTPMethod: "GET", URL: "http://" + host, Header: http.Header{"authorization": nil, "User-Agent": {"u"},
			"accept-encoding": {}, "X-Team": {"red", "green"}, "Connection": nil, "Keep-Alive": nil}},
			"GET / HTTP/1.1\r\nUser-Agent: u\r\nContent-Type: application/json\r\nAccept: */*\r\nHost: " + host + "\r\nX-Team: red\r\nX-Team: green\r\n\r\n"},
		{"chunked", Call{Body: []byte("12345"), Chunked: true, Header: http.Header{"Authorization": {"Basic eA=="}}},
			"POST /rpc?key=a%2fb&x=%20 HTTP/1.1\r\nUser-Agent: destkit/1.2\r\nContent-Type: application/json\r\n" +
				"Accept-Encoding: gzip;q=1.0,deflate;q=0.6,identity;q=0.3\r\nAccept: */*\r\nConnection: keep-alive\r\nKeep-Alive: 30\r\n" +
				"Host: " + host + "\r\nTransfer-Encoding: chunked\r\nAuthorization: Basic eA==\r\nx-team: blue\r\n\r\n12345"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := c.Do(t.Context(), test.call)
			require.NoError(t, r.Err)
			require.Equal(t, test.want, <-heads)
			require.Equal(t, test.call.Body, r.Request)
		})
	}
	require.Equal(t, 3, c.Calls())
}

func TestChunkedBodyHasAtLeastTwoChunks(t *testing.T) {
	got := make(chan string, 1)
	url := rawServer(t, func(_ int, conn *net.TCPConn, br *bufio.Reader) {
		var b strings.Builder
		for !strings.HasSuffix(b.String(), "0\r\n\r\n") {
			line, err := br.ReadString('\n')
			if err != nil {
				return
			}
			b.WriteString(line)
		}
		_, body, _ := strings.Cut(b.String(), "\r\n\r\n")
		got <- body
		_, _ = io.WriteString(conn, ok("{}"))
	})
	r := newClient(t, Options{URL: url}).Do(t.Context(), Call{Body: []byte("abcde"), Chunked: true})
	require.NoError(t, r.Err)
	require.Equal(t, "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", <-got)
}

func TestOptionsAndCallsThatCannotBeSent(t *testing.T) {
	for _, bad := range []string{"", "ftp://s3cret@h/", "http:///x?key=s3cret", "http://h:s3cret/", "http://h/%zz-s3cret\x00", "h/s3cret"} {
		_, err := New(Options{URL: bad})
		require.Error(t, err, bad)
		require.NotContains(t, err.Error(), "s3cret")
	}
	_, err := New(Options{URL: "http://h/", Token: "s3cret\r\nX: y"})
	require.ErrorContains(t, err, "control character")
	require.NotContains(t, err.Error(), "s3cret")
	_, err = New(Options{URL: "http://h/", Headers: map[string]string{"a b": "x"}})
	require.ErrorContains(t, err, "not a token")

	c := newClient(t, Options{URL: "http://127.0.0.1:1/"})
	for _, call := range []Call{{HTTPMethod: "A B"}, {URL: "mailto:x"}, {Header: http.Header{"X": {"a\nb"}}}} {
		r := c.Do(t.Context(), call)
		require.Equal(t, KindInvalid, r.Kind)
		require.Error(t, r.Err)
	}
	require.Zero(t, c.Calls())
}

func TestNoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	url := "http://" + l.Addr().String()
	l.Close()
	r := newClient(t, Options{URL: url}).Do(t.Context(), Call{})
	require.Equal(t, KindRefused, r.Kind)
	require.False(t, r.OK())
	require.True(t, strings.HasPrefix(r.Exchange().Error, "refused: dial "), r.Exchange().Error)
	require.Nil(t, r.Exchange().Response)

	dns := newClient(t, Options{URL: url, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "h", IsNotFound: true}}
	}})
	require.Equal(t, KindDNS, dns.Do(t.Context(), Call{}).Kind)

	slow := newClient(t, Options{URL: url, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	require.Equal(t, KindTimeout, slow.Do(t.Context(), Call{Timeout: 10 * time.Millisecond}).Kind)
}

func TestLimiterIsAskedFirst(t *testing.T) {
	url := rawServer(t, answer(ok("{}"), false))
	asked := 0
	c := newClient(t, Options{URL: url, Limiter: func(_ context.Context, records int) error {
		asked += records
		if asked > 5 {
			return context.Canceled
		}
		return nil
	}})
	require.True(t, c.Do(t.Context(), Call{Records: 5}).OK())
	r := c.Do(t.Context(), Call{Records: 1})
	require.Equal(t, KindCanceled, r.Kind)
	require.Equal(t, 1, c.Calls())
}

func TestCallerCancels(t *testing.T) {
	url := rawServer(t, func(_ int, _ *net.TCPConn, br *bufio.Reader) { _, _ = io.Copy(io.Discard, br) })
	c := newClient(t, Options{URL: url})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	require.Equal(t, KindCanceled, c.Do(ctx, Call{Timeout: time.Hour}).Kind)
	require.Equal(t, KindCanceled, c.Do(ctx, Call{}).Kind)

	// The end of the whole run is not a timeout of the endpoint.
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.Equal(t, KindCanceled, c.Do(short, Call{Timeout: time.Hour}).Kind)
	require.Equal(t, KindTimeout, c.Do(t.Context(), Call{Timeout: 20 * time.Millisecond}).Kind)
}

func TestParallelCalls(t *testing.T) {
	dial, stop := ServeHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip") // takes time to decode while the connection is free
		zipped := gzip.NewWriter(w)
		_, _ = io.Copy(zipped, r.Body)
		zipped.Close()
	}))
	defer stop()
	c := newClient(t, Options{URL: "http://memory/", Dial: dial})
	done := make(chan *Reply)
	numbers := make(chan int, 64*20)
	for i := range 64 {
		go func() {
			for j := range 20 {
				body := bytes.Repeat([]byte(itoa(i*100+j)), 500)
				r := c.Do(t.Context(), Call{Body: body, Timeout: time.Minute})
				if !r.OK() || !bytes.Equal(r.Body, body) {
					done <- r
					return
				}
				numbers <- r.Exchange().ID
			}
			done <- nil
		}()
	}
	for range 64 {
		r := <-done
		require.Nil(t, r)
	}
	require.Equal(t, 64*20, c.Calls())
	ids := map[int]bool{}
	close(numbers)
	for n := range numbers {
		ids[n] = true
	}
	require.Len(t, ids, 64*20)
}
