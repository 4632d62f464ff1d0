package httpfront

import (
	"bufio"
	"bytes"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzHead: net/http reads a usual head of the fast path in the same way, also where
// the head before it is remembered.
func FuzzHead(f *testing.F) {
	usual := "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\n"
	for _, seed := range []string{
		usual, "POST /a?b HTTP/1.1\r\nhost: [::1]:8\r\ncontent-length:   7 \r\nAuthorization: Bearer x\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 1\r\n\r\n",
		"POST http://b/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n", "POST //b HTTP/1.1\r\nHost: a\r\nContent-Length: 01\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1 2\r\n\r\n",
	} {
		f.Add([]byte(usual), []byte(seed))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		m := headMemo{apart: func(string) bool { return false }}
		for _, text := range [][]byte{first, second, second} {
			n, length, verdict := m.match(text)
			if verdict != headUsual {
				continue
			}
			require.LessOrEqual(t, n, len(text))
			want, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text[:n])))
			require.NoError(t, err)
			require.EqualValues(t, want.ContentLength, length)
			require.Equal(t, want.ContentLength, m.request.ContentLength)
			require.Equal(t, want.RequestURI, m.request.RequestURI)
			require.Equal(t, want.URL.String(), m.request.URL.String())
			require.Equal(t, want.Host, m.request.Host)
			require.Equal(t, want.Close, m.request.Close)
			want.Header.Del("Content-Length")
			got := m.request.Header.Clone()
			got.Del("Content-Length")
			require.Equal(t, want.Header, got)
		}
	})
}
