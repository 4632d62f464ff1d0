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

	"github.com/destkit/destkit/destsim/rpc"
)

// TestCompressedRepliesAreBrokenToo: the lengths are those of what is sent.
func TestCompressedRepliesAreBrokenToo(t *testing.T) {
	ask := func(violate ...string) (*http.Response, string, error) {
		_, address := serve(t, Config{Compress: "gzip", Violate: violate})
		return httpCall(t, "http://"+address, rpc.MethodGetSyncSpeed, `{}`, "Accept-Encoding", "gzip")
	}
	resp, clean, err := ask()
	require.NoError(t, err)
	require.Equal(t, "gzip", resp.Header.Get("Content-Encoding"))
	resp, long, err := ask("HTTP-006")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, clean, long)
	require.EqualValues(t, len(clean)+16, resp.ContentLength)
	resp, half, err := ask("HTTP-006.2")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, clean[:len(clean)/2], half)
	require.EqualValues(t, len(clean), resp.ContentLength)
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
