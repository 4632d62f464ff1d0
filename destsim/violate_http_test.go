package destsim

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func httpProbes() map[string]probe {
	probes := calls()
	speed := requestBody("get_sync_speed", `{}`, "a1")
	objects := requestBody("list_objects", `{}`, "a1")
	query := url.Values{"method": {"test_connection"}, "params": {"{}"}, "id": {"q1"}}.Encode()
	for name, do := range map[string]probe{
		"objects twice":       times(2, "list_objects", `{}`),
		"speed twice":         times(2, "get_sync_speed", `{}`),
		"objects then speed":  func(n *naive) string { return n.call("list_objects", `{}`) + n.call("get_sync_speed", `{}`) },
		"redirected":          func(n *naive) string { return n.send("POST", "/rpc/redirected", speed) },
		"speed with a query":  func(n *naive) string { return n.send("POST", "/rpc/?a=1%202", speed) },
		"gzip offered":        func(n *naive) string { return n.call("list_objects", `{}`, "Accept-Encoding", "gzip, deflate") },
		"identity offered":    func(n *naive) string { return n.call("list_objects", `{}`, "Accept-Encoding", "identity") },
		"chunked":             func(n *naive) string { return n.post(objects, "Transfer-Encoding", "chunked") },
		"charset":             func(n *naive) string { return n.post(objects, "Content-Type", "application/json; charset=utf-8") },
		"boundary":            func(n *naive) string { return n.post(objects, "Content-Type", "application/json; boundary=x") },
		"no type":             func(n *naive) string { return n.post(objects, "Content-Type", "") },
		"expect":              func(n *naive) string { return n.post(objects, "Expect", "100-continue") },
		"GET with a query":    func(n *naive) string { return n.send("GET", "/rpc?"+query, "") },
		"PUT with a query":    func(n *naive) string { return n.send("PUT", "/rpc?"+query, "") },
		"DELETE with a query": func(n *naive) string { return n.send("DELETE", "/rpc?"+query, "") },
		"GET with a body":     func(n *naive) string { return n.send("GET", "/rpc", objects) },
		"PUT with a body":     func(n *naive) string { return n.send("PUT", "/rpc", objects) },
		"POST with a query":   func(n *naive) string { return n.send("POST", "/rpc?"+query, objects) },
	} {
		probes[name] = do
	}
	return probes
}

func httpTampers() []tamper {
	speed := func(id, part string) tamper {
		row := ofSpeed(id, part)
		for _, name := range []string{"speed twice", "objects then speed", "redirected", "speed with a query"} {
			row.sees[name] = part
		}
		return row
	}
	redirect := func(id, status string) tamper {
		to := status + " [Content-Type: text/html; charset=utf-8] [Location: /rpc/redirected] <html>"
		row := speed(id, to)
		row.sees["speed with a query"] = strings.Replace(to, "redirected]", "redirected?a=1%202]", 1)
		delete(row.sees, "redirected") // there it works
		return row
	}
	objects := func(id, part string) tamper {
		row := ofObjects(id, part)
		for _, name := range []string{
			"objects twice", "objects then speed", "gzip offered", "identity offered", "chunked", "charset",
			"boundary", "no type", "expect", "POST with a query",
		} {
			row.sees[name] = part
		}
		return row
	}
	wrong := "500 [Content-Type: text/plain; charset=utf-8] Internal Server Error"
	return []tamper{
		speed("HTTP-001", `404 {"jsonrpc":"2.0","id":"a1","result":{`+speedNumbers+`}}`),
		speed("HTTP-002", `200 [Content-Type: text/html; charset=utf-8] {"jsonrpc"`),
		speed("HTTP-002.2", `200 [Content-Type: ] {"jsonrpc"`),
		speed("HTTP-003", "202 "),
		speed("HTTP-003.2", `202 {"status":"accepted"}`),
		redirect("HTTP-004", "301"),
		redirect("HTTP-004.2", "302"),
		redirect("HTTP-004.3", "308"),
		oneSight("HTTP-005", "GET with a query", `200 {"jsonrpc":"2.0","id":"q1",`+connected),
		speed("HTTP-006", `:1000000}} unexpected EOF`),
		speed("HTTP-006.2", `:1000,"m unexpected EOF`),
		objects("HTTP-007", `200 [Content-Encoding: gzip] {"jsonrpc"`),
		objects("HTTP-007.2", `200 [Content-Encoding: br] {"jsonrpc"`),
		oneSight("HTTP-008", "objects twice", "\nno response"),
		oneSight("HTTP-009", "chunked", "411 [Content-Type: text/plain; charset=utf-8] Length Required"),
		oneSight("HTTP-009.2", "charset", "415 [Content-Type: text/plain; charset=utf-8] Unsupported Media Type"),
		{"HTTP-010", map[string]string{"fields of no object": wrong, "fields of a number": wrong}},
		oneSight("HTTP-011", "objects twice", "\n200 [Age: 31] [X-Cache: HIT] {"),
	}
}

func TestHTTPViolationsShow(t *testing.T) {
	testAllTampered(t, httpViolations(), httpTampers())
	testTampers(t, Config{}, httpProbes(), httpTampers())
}

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
