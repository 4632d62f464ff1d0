package destsim

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/internal/httpfront"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/testkit"
)

func quietly() *log.Logger { return log.New(io.Discard, "", 0) }

// raw sends bytes on one connection, ends its side, and gives all that comes
// back with the date masked.
func raw(t testing.TB, address string, pieces ...string) string {
	t.Helper()
	conn := dialed(t, address)
	defer conn.Close()
	// A server that refuses a request need not read the next; its answer
	// still arrives.
	for _, piece := range pieces {
		_, _ = io.WriteString(conn, piece)
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	got, _ := io.ReadAll(conn)
	return date.ReplaceAllString(string(got), "Date: D\r\n")
}

var date = regexp.MustCompile(`Date: [A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\r\n`)

func dialed(t testing.TB, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	return conn
}

// request is one request in the usual form, further headers in pairs of name
// and value.
func request(target, body string, header ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n", target, len(body))
	for i := 0; i+1 < len(header); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", header[i], header[i+1])
	}
	return b.String() + "\r\n" + body
}

func requestBody(method, params, id string) string {
	return string(rpc.EncodeRequest(nil, method, []byte(params), id))
}

// conversations are requests in all forms, each list on one connection.
func conversations(s *Sim) map[string][]string {
	ask := requestBody("list_objects", `{}`, "a1")
	batch := requestBody("sync_batch", fourRecords(s, "upsert"), "a2")
	chunked := "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n" + ask[:5] + fmt.Sprintf("\r\n%x\r\n", len(ask)-5) + ask[5:] + "\r\n0\r\n\r\n"
	usual := request("/", ask)
	bearer := []string{"Authorization", "Bearer t"}
	return map[string][]string{
		"one":                  {request("/", ask, bearer...)},
		"no token":             {usual},
		"wrong token":          {request("/", ask, "Authorization", "Bearer x")},
		"two tokens":           {request("/", ask, "Authorization", "Bearer t", "Authorization", "Bearer t")},
		"three, then the end":  {request("/a?b=c", ask, bearer...), request("/a?b=c", batch, bearer...), request("/", ask, bearer...)},
		"piped":                {request("/", ask, bearer...) + request("/", batch, bearer...) + request("/", ask, bearer...)},
		"in pieces":            {usual[:3], usual[3:30], usual[30 : len(usual)-4], usual[len(usual)-4:], usual},
		"other headers":        {request("/", ask, "authorization", "Bearer t", "X-Request-Id", "1", "Accept-Encoding", "gzip"), request("/", ask, "AUTHORIZATION", "Bearer t", "X-Request-Id", "2")},
		"keep-alive":           {request("/", ask, "Connection", "Keep-Alive")},
		"close":                {request("/", ask, "Connection", "close"), usual},
		"chunked":              {usual, chunked, usual},
		"expect":               {request("/", ask, "Expect", "100-continue"), usual},
		"expect something":     {request("/", ask, "Expect", "gold")},
		"GET":                  {"GET / HTTP/1.1\r\nHost: h\r\n\r\n", usual},
		"HEAD":                 {"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", usual},
		"PUT":                  {usual, strings.Replace(usual, "POST", "PUT", 1), usual},
		"lower case":           {strings.Replace(usual, "POST", "post", 1)},
		"HTTP/1.0":             {strings.Replace(usual, "HTTP/1.1", "HTTP/1.0", 1), usual},
		"HTTP/1.0 kept":        {strings.Replace(request("/", ask, "Connection", "keep-alive"), "HTTP/1.1", "HTTP/1.0", 1), usual},
		"HTTP/1.2":             {strings.Replace(usual, "HTTP/1.1", "HTTP/1.2", 1)},
		"no version":           {"POST /\r\nHost: h\r\n\r\n"},
		"absolute target":      {strings.Replace(usual, "POST /", "POST http://h/x", 1), usual},
		"target with a space":  {strings.Replace(usual, "POST /", "POST /a b", 1)},
		"target not escaped":   {strings.Replace(usual, "POST /", "POST /%zz", 1)},
		"target beyond ASCII":  {strings.Replace(usual, "POST /", "POST /é", 1)},
		"control":              {request("/_control/hooks/restart", `{}`), usual},
		"control, hidden":      {request("/%5fcontrol/hooks/restart", `{}`), usual},
		"health":               {request("/healthz", `{}`), usual},
		"beside health":        {request("/healthz/", ask)},
		"no host":              {strings.Replace(usual, "Host: h\r\n", "", 1)},
		"two hosts":            {request("/", ask, "Host", "i")},
		"odd host":             {strings.Replace(usual, "Host: h", "Host: h/x", 1)},
		"empty host":           {strings.Replace(usual, "Host: h", "Host:", 1), usual},
		"no length":            {strings.Replace(usual, "Content-Length", "X-Length", 1)},
		"length twice":         {request("/", ask, "Content-Length", fmt.Sprint(len(ask)))},
		"two lengths":          {request("/", ask, "Content-Length", "1")},
		"length with a sign":   {strings.Replace(usual, "Content-Length: ", "Content-Length: +", 1)},
		"length with zeros":    {strings.Replace(usual, "Content-Length: ", "Content-Length: 000", 1), usual},
		"length with spaces":   {strings.Replace(usual, "Content-Length: ", "Content-Length:  \t", 1), usual},
		"length close to all":  {strings.Replace(usual, "Content-Length: ", "Content-Length:", 1), usual},
		"length and more":      {strings.Replace(usual, "\r\nContent-Length: ", "\r\nContent-Length: 0x", 1)},
		"space before colon":   {strings.Replace(usual, "Host:", "Host :", 1)},
		"folded":               {strings.Replace(usual, "Host: h\r\n", "Host: h\r\nX: a\r\n b\r\n", 1), usual},
		"bare line feeds":      {strings.ReplaceAll(usual, "\r\n", "\n"), usual},
		"bare return":          {strings.Replace(usual, "Host: h", "X: a\rb\r\nHost: h", 1)},
		"NUL in a header":      {strings.Replace(usual, "Host: h", "X: a\x00b\r\nHost: h", 1)},
		"no body":              {request("/", "")},
		"empty lines before":   {usual, "\r\n\r\n" + usual},
		"long head":            {request("/", ask, "X-Long", strings.Repeat("x", httpfront.HeadLimit)), usual},
		"much too long head":   {request("/", ask, "X-Long", strings.Repeat("x", 2<<20))},
		"body too long":        {usual, request("/", strings.Repeat(" ", 100001)), usual},
		"body longest":         {usual, request("/", strings.Repeat(" ", 100000)), usual},
		"not JSON":             {request("/", `{"jsonrpc":`, bearer...), request("/", ask, bearer...)},
		"another method":       {request("/", requestBody("other", `{}`, "a3"), bearer...)},
		"body cut":             {request("/", ask)[:len(usual)-3]},
		"head cut":             {usual[:40]},
		"upgrade":              {request("/", ask, "Connection", "Upgrade", "Upgrade", "websocket"), usual},
		"nothing":              {""},
		"TLS":                  {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("x", 40)},
		"HTTP/2":               {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
		"answer and half more": {usual + usual[:50]},
	}
}

// TestServerSendsWhatNetHTTPSends: the same bytes, whatever is sent, plain and
// with its own headers and codings, and the same calls in the journal.
func TestServerSendsWhatNetHTTPSends(t *testing.T) {
	now := func() time.Time { return time.Unix(1700000000, 0) }
	for name, config := range map[string]Config{
		"usual":    {},
		"dressed":  {Headers: map[string]string{"X-Region": "north", "content-type": "application/JSON"}, Compress: "auto", RateLimit: -1},
		"framed":   {Headers: map[string]string{"date": "yesterday", "Connection": "close"}},
		"enforced": {EnforceLimits: true, RateLimit: 1},
		"broken":   {Violate: []string{"HTTP-006", "RES-002"}},
	} {
		if testing.Short() && name != "usual" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config.Token, config.MaxBody, config.Clock = "t", 100000, now
			fast, slow := newSim(t, config), newSim(t, config)
			address := testkit.Serve(t, &Server{Sim: fast, ErrorLog: quietly()}, nil)
			plain := httptest.NewUnstartedServer(slow)
			plain.Config.ErrorLog = quietly()
			plain.Start()
			defer plain.Close()
			for _, form := range slices.Sorted(maps.Keys(conversations(fast))) {
				if form == "body too long" && name != "usual" {
					continue // net/http lingers for half a second
				}
				pieces := conversations(fast)[form]
				require.Equal(t, raw(t, plain.Listener.Addr().String(), pieces...), raw(t, address, pieces...), form)
			}
			fastCalls, slowCalls := fast.Journal(JournalFilter{}), slow.Journal(JournalFilter{})
			require.Greater(t, len(slowCalls.Entries), 40)
			require.Equal(t, slowCalls, fastCalls)
			require.Equal(t, slow.Figures(), fast.Figures())
			stored, total, err := fast.Records("contact", 0, 100)
			require.NoError(t, err)
			want, _, err := slow.Records("contact", 0, 100)
			require.NoError(t, err)
			require.Equal(t, want, stored)
			require.True(t, name != "usual" || total == 4)
		})
	}
}

// overTLS is a Server with its own certificates, and a pool that trusts it.
func overTLS(t testing.TB, server *Server) (address string, trust *x509.CertPool) {
	t.Helper()
	certificates, err := NewCertificates(nil)
	require.NoError(t, err)
	config, err := certificates.TLSConfig("")
	require.NoError(t, err)
	config.NextProtos = []string{"h2", "http/1.1"}
	trust = x509.NewCertPool()
	require.True(t, trust.AppendCertsFromPEM(certificates.CAPEM()))
	return testkit.Serve(t, server, func(ln net.Listener) net.Listener { return TLSListener(ln, config, false) }), trust
}

// TestServerOverTLS: HTTP/1.1 takes the fast path and can be handed over in the
// middle of a connection, HTTP/2 and plain text go to net/http.
func TestServerOverTLS(t *testing.T) {
	t.Parallel()
	s := newSim(t, Config{})
	var seen []*http.Request
	server := &Server{Sim: s, ErrorLog: quietly(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r)
		s.ServeHTTP(w, r)
	})}
	address, trust := overTLS(t, server)
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: trust, NextProtos: []string{"http/1.1"}})
	require.NoError(t, err)
	defer conn.Close()
	reader := bufio.NewReader(conn)
	ask := func(text string) string {
		_, err := io.WriteString(conn, text)
		require.NoError(t, err)
		resp, err := http.ReadResponse(reader, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(body)
	}
	require.Contains(t, ask(request("/", testCall)), `"success":true`)
	require.Contains(t, ask(request("/", testCall)), `"success":true`)
	require.Empty(t, seen, "nothing was handed over")
	require.Contains(t, ask("GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"), `"ok":true`)
	require.Contains(t, ask(request("/", testCall)), `"success":true`)
	require.Len(t, seen, 2)
	require.NotNil(t, seen[0].TLS)
	require.Equal(t, conn.ConnectionState().Version, seen[1].TLS.Version)

	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: trust}}}
	defer client.CloseIdleConnections()
	resp, err := client.Post("https://"+address, "application/json", strings.NewReader(testCall))
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 2, resp.ProtoMajor)
	require.Equal(t, 200, resp.StatusCode)
	require.Contains(t, raw(t, address, request("/", testCall)), "HTTP/1.0 400 Bad Request")
}

// TestServerHandsOverWhenAFaultIsArmed: also on a connection that the fast path
// has served until then.
func TestServerHandsOverWhenAFaultIsArmed(t *testing.T) {
	t.Parallel()
	s := newSim(t, Config{})
	address := testkit.Serve(t, &Server{Sim: s, ErrorLog: quietly()}, nil)
	conn := dialed(t, address)
	defer conn.Close()
	reader := bufio.NewReader(conn)
	ask := func() (*http.Response, error) {
		_, err := io.WriteString(conn, request("/", testCall))
		require.NoError(t, err)
		resp, err := http.ReadResponse(reader, nil)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
		}
		return resp, err
	}
	resp, err := ask()
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode)
	armJSON(t, s, `{"kind":"throttle","when":{"first":1}}`)
	armJSON(t, s, `{"kind":"truncate","when":{"from":3}}`)
	resp, err = ask()
	require.NoError(t, err)
	require.Equal(t, 429, resp.StatusCode)
	require.Equal(t, "1", resp.Header.Get("Retry-After"))
	_, err = ask()
	require.NoError(t, err)
	_, err = ask()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	for _, kind := range []string{"reset", "close"} {
		s.faults.disarmAll()
		fresh := dialed(t, address)
		_, err = io.WriteString(fresh, request("/", testCall))
		require.NoError(t, err)
		_, err = http.ReadResponse(bufio.NewReader(fresh), nil)
		require.NoError(t, err)
		armJSON(t, s, `{"kind":"`+kind+`"}`)
		_, err = io.WriteString(fresh, request("/", testCall))
		require.NoError(t, err)
		rest, err := io.ReadAll(fresh)
		require.Equal(t, kind == "reset", err != nil, "%v %q", err, rest)
		require.NoError(t, fresh.Close())
	}
}
