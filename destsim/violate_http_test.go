package destsim

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCompressedRepliesAreBrokenToo: the lengths are those of what is sent.
func TestCompressedRepliesAreBrokenToo(t *testing.T) {
	do := func(n *naive) string { return n.call("get_sync_speed", `{}`, "Accept-Encoding", "gzip") }
	config := Config{Compress: "gzip"}
	clean := probing(t, config, "", do)
	require.Contains(t, clean, "[Content-Encoding: gzip]")
	require.Equal(t, clean+" unexpected EOF", probing(t, config, "HTTP-006", do))
	half := probing(t, config, "HTTP-006.2", do)
	require.Contains(t, half, " unexpected EOF")
	require.True(t, strings.HasPrefix(clean, strings.TrimSuffix(half, " unexpected EOF")))
}

// TestOnlyAListAfterAListIsCut walks one connection by hand (HTTP-008).
func TestOnlyAListAfterAListIsCut(t *testing.T) {
	s := newSim(t, Config{Violate: []string{"HTTP-008"}})
	server := httptest.NewServer(s)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	reader := bufio.NewReader(conn)
	ask := func(method string) error {
		method, form, _ := strings.Cut(method, " ")
		r, err := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(requestBody(method, "{}", "a1")))
		require.NoError(t, err)
		if form == "chunked" {
			r.ContentLength = -1
		}
		require.NoError(t, r.Write(conn))
		resp, err := http.ReadResponse(reader, r)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Contains(t, string(body), `"result":{`)
		require.False(t, resp.Close, "nothing is announced")
		require.NotEmpty(t, resp.Header.Get("Date"))
		require.Equal(t, "100000", resp.Header.Get("X-RateLimit-Limit"))
		return nil
	}
	for _, method := range []string{"get_sync_speed", "list_objects", "test_connection", "list_objects", "get_sync_speed", "list_objects", "list_objects chunked", "list_objects"} {
		require.NoError(t, ask(method), method)
	}
	require.ErrorIs(t, ask("list_objects"), io.ErrUnexpectedEOF)
}
