package destination

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// TestFailuresInPlainWords: what a person reads of a connection that ended.
func TestFailuresInPlainWords(t *testing.T) {
	for _, test := range []struct {
		name, reply string
		reset       bool
		says        string
	}{
		{"closed", "", false, "the server closed the connection without responding"},
		{"reset", "", true, "the server reset the connection without responding"},
		{"half a head", "HTTP/1.1 200 OK\r\nContent-", false, "the response was truncated: the connection ended in the middle of it"},
		{"half a body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", false, "the response was truncated: the connection ended in the middle of it"},
		{"no HTTP", "SSH-2.0-x\r\n\r\n", false, "parse response"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			t.Cleanup(func() { _ = l.Close() })
			go func() {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer func() { _ = conn.Close() }()
				if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = io.Copy(io.Discard, r.Body)
				}
				_, _ = io.WriteString(conn, test.reply)
				if test.reset {
					_ = conn.(*net.TCPConn).SetLinger(0)
				}
			}()
			c, err := wire.New(wire.Options{URL: "http://" + l.Addr().String()})
			require.NoError(t, err)
			t.Cleanup(c.Close)
			r := &exchange.Reply{Reply: c.Do(t.Context(), wire.Call{Body: []byte("{}"), Timeout: time.Minute})}
			require.Contains(t, r.Failure(), test.says)
		})
	}
}
