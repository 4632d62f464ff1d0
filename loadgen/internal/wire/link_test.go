package wire

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzReply puts any bytes to the reader of replies. A reply that it takes as
// whole, net/http must read in the same way, to the last byte.
func FuzzReply(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.0 200 OK\r\n\r\nabc", "HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nT: 1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nT:\x011\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
		"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08",
		"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\na", "HTTP/1.1 429 Slow\r\nRetry-After: 1\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	const most = 1 << 16
	f.Fuzz(func(t *testing.T, text []byte) {
		end, err := NewEndpoint(Target{URL: "http://127.0.0.1:1/"}, Transport{Timeout: time.Minute, MaxReply: most})
		require.NoError(t, err)
		near, far := net.Pipe()
		end.Transport.Dial = func(context.Context, string, string) (net.Conn, error) { return near, nil }
		go func() {
			defer far.Close()
			if _, err := http.ReadRequest(bufio.NewReader(far)); err == nil {
				_, _ = far.Write(text)
			}
		}()
		l := NewLink(t.Context(), end)
		defer l.Close()
		require.NoError(t, l.connect())
		h, body, err := l.exchange([]byte("POST / HTTP/1.1\r\nHost: fuzz.test\r\nContent-Length: 0\r\n\r\n"))
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		require.LessOrEqual(t, len(body), most)
		in := bufio.NewReader(bytes.NewReader(text))
		for {
			want, err := http.ReadResponse(in, &http.Request{Method: http.MethodPost})
			require.NoError(t, err, "net/http takes it for no reply")
			if want.StatusCode/100 == 1 {
				continue
			}
			got, err := io.ReadAll(want.Body)
			require.NoError(t, err)
			require.Equal(t, want.StatusCode, h.status)
			require.Equal(t, string(got), string(body))
			return
		}
	})
}
