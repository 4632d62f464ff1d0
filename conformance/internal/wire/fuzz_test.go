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

// FuzzResponse puts any bytes to the parser of responses. Whatever it calls
// complete, net/http must read in the same way.
func FuzzResponse(f *testing.F) {
	for _, seed := range []string{
		ok("{}"), "HTTP/1.1 200 OK\r\n\r\nabc", "HTTP/1.0 404 No\r\nContent-Length: 1\r\n\r\na",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nT: 1\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 X\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08", "HTTP/1.1 200 OK\r\n A: b\r\n\r\n", "HTTP/1.1 200 OK\nA:b\n\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, reply []byte) {
		c, err := New(Options{URL: "http://fuzz.test/", MaxBody: 1 << 20, Dial: func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go func() {
				defer server.Close()
				_, _, _ = readRequest(bufio.NewReader(server))
				_, _ = server.Write(reply)
			}()
			return client, nil
		}})
		require.NoError(t, err)
		defer c.Close()
		r := c.Do(t.Context(), Call{Body: []byte("{}"), Timeout: time.Minute, FreshConn: true})
		require.Equal(t, r.Kind == KindNone, r.Err == nil)
		require.NotEqual(t, KindTimeout, r.Kind)
		require.EqualValues(t, r.Received, min(r.Received, int64(len(reply))))
		if !r.OK() || len(r.Interim) > 0 {
			return
		}
		res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(reply)), &http.Request{Method: http.MethodPost})
		if err != nil {
			return // net/http is stricter about some header lines
		}
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, res.StatusCode, r.Status)
		require.Equal(t, string(body), string(r.Raw))
	})
}
