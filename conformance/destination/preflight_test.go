package destination

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
)

// everyCall answers each call alike, as a gateway in front of an endpoint does.
func everyCall(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in, _ := io.ReadAll(r.Body)
		var call struct{ ID json.RawMessage }
		_ = json.Unmarshal(in, &call)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		fmt.Fprint(w, strings.ReplaceAll(body, "$ID", string(call.ID)))
	}
}

// nothingJudged: one problem, exit status 3, and not one check that looked.
func nothingJudged(t *testing.T, r *conformance.Report, kind string, words ...string) {
	t.Helper()
	require.Equal(t, []string{kind}, problemKinds(r), "%s", r.Summary)
	require.Equal(t, 3, r.ExitStatus)
	require.Equal(t, conformance.Unknown, r.Verdict)
	said := r.Problems[0].Message + ". " + r.Problems[0].Fix
	for _, w := range words {
		require.Contains(t, said, w)
	}
	require.NotEmpty(t, r.Problems[0].Fix)
	require.Contains(t, r.Summary, "nothing was judged")
	for _, c := range r.Checks {
		require.Equal(t, conformance.NotRun, c.Status, c.ID)
		require.Empty(t, c.BlockedBy, c.ID)
	}
}

// TestNothingToJudge: the problem names what answers every call in place of the endpoint, with the
// fix.
func TestNothingToJudge(t *testing.T) {
	t.Parallel()
	const (
		page = "<!DOCTYPE html>\n<html><body>Welcome to nginx!</body></html>"
		rpc  = `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32001,"message":%q}}`
	)
	for _, c := range []struct {
		name    string
		handler http.Handler
		token   string
		kind    string
		words   []string
	}{
		{"401 and no token", everyCall(401, "text/plain", "no"), "", "unauthorized", []string{"HTTP status 401", "no token was sent", "--token-env NAME"}},
		{"401 and an envelope", everyCall(401, "application/json", fmt.Sprintf(rpc, "who are you?")), "", "unauthorized", []string{"HTTP status 401", "--token-env NAME"}},
		{"403 and a token", everyCall(403, "application/json", `{"message":"Forbidden"}`), "a-wrong-token", "unauthorized", []string{"HTTP status 403", "the token that was given is refused", "--token-env"}},
		{"an error with status 200", everyCall(200, "application/json", fmt.Sprintf(rpc, "Unauthorized: missing bearer token")), "", "unauthorized", []string{`the message "Unauthorized: missing bearer token"`, "--token-env NAME"}},
		{"an error about a wrong token", everyCall(200, "application/json", fmt.Sprintf(rpc, "Invalid API key")), "a-wrong-token", "unauthorized", []string{"Invalid API key", "the token that was given is refused"}},
		{"success false where the method has it", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			answer := fmt.Sprintf(rpc, "invalid token")
			if strings.Contains(string(body), "test_connection") {
				answer = `{"jsonrpc":"2.0","id":$ID,"result":{"success":false,"error_message":"authentication failed"}}`
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			everyCall(200, "application/json", answer)(w, r)
		}), "", "unauthorized", []string{"authentication failed", "--token-env NAME"}},
		{"another way to sign in", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", `Basic realm="staging"`)
			everyCall(401, "text/html", page)(w, r)
		}), "", "unauthorized", []string{`asks for "Basic"`}},
		{"404", http.NotFoundHandler(), "", "not-found", []string{"HTTP status 404", "is the path right?"}},
		{"404 of a framework", everyCall(404, "application/json", `{"detail":"Not Found"}`), "", "not-found", []string{"is the path right?"}},
		{"404 in HTML", everyCall(404, "text/html", page), "", "not-found", []string{"is the path right?"}},
		{"a web server without POST", everyCall(405, "text/html", page), "", "not-found", []string{"HTTP status 405", "is the path right?"}},
		{"HTML", everyCall(200, "text/html", page), "", "web-page", []string{"HTTP status 200", "a web page (HTML)", "is the path right?"}},
		{"HTML that is labelled JSON", everyCall(200, "application/json", page), "", "web-page", []string{"is the path right?"}},
		{"XML of a storage", everyCall(400, "application/xml", "<?xml version=\"1.0\"?><Error><Code>MethodNotAllowed</Code></Error>"), "", "web-page", []string{"a page of markup", "is the path right?"}},
		{"a gateway with nothing behind it", everyCall(502, "text/html", page), "", "web-page", []string{"HTTP status 502", "does the endpoint behind it run?"}},
		{"an application that fails", everyCall(500, "text/html", page), "", "web-page", []string{"HTTP status 500", "look into its log"}},
		{"text with status 500", everyCall(500, "text/plain", "Internal Server Error"), "", "unhealthy", []string{"every call is answered with HTTP status 500", "look into its log"}},
		{"an empty 503", everyCall(503, "", ""), "", "unhealthy", []string{"every call is answered with HTTP status 503", "does the endpoint run"}},
		{"JSON of a gateway", everyCall(504, "application/json", `{"message":"Endpoint request timed out"}`), "", "unhealthy", []string{"HTTP status 504", "does the endpoint run"}},
		{"a head that is too large", everyCall(431, "text/plain", ""), "", "unhealthy", []string{"HTTP status 431", "--header"}},
		{"a redirect to a page to sign in at", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/login" {
				http.Redirect(w, r, "/login", http.StatusTemporaryRedirect)
				return
			}
			everyCall(200, "text/html", page)(w, r)
		}), "", "web-page", []string{"behind a redirect"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "run.ndjson")
			opts := conformance.Options{Write: true, Objects: []string{"contact"}, Journal: path}
			r, err := Run(context.Background(), Target{Handler: c.handler, Token: c.token}, opts)
			require.NoError(t, err)
			nothingJudged(t, r, c.kind, c.words...)
			require.NoFileExists(t, path, "the corrected command can use the same journal")
			require.Empty(t, r.Residue.Journal)
			if c.token != "" {
				require.Empty(t, leaks(t, r, c.token))
			}
			_, err = Plan(context.Background(), Target{Handler: c.handler, Token: c.token}, conformance.Options{})
			require.ErrorContains(t, err, r.Problems[0].Message)
			require.ErrorContains(t, err, r.Problems[0].Fix)
		})
	}
}

// TestAMixedEndpointIsJudged: one sound answer, or answers of several kinds, and
// the endpoint itself is at work.
func TestAMixedEndpointIsJudged(t *testing.T) {
	with := func(method, body string, status int) http.Handler {
		good := newSmall()
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			in, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(strings.NewReader(string(in)))
			if strings.Contains(string(in), method) {
				good.ServeHTTP(w, r)
				return
			}
			everyCall(status, "application/json", body)(w, r)
		})
	}
	const failure = `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":%q}}`
	for name, h := range map[string]http.Handler{
		"401 but for test_connection":           with("test_connection", "{}", 401),
		"404 but for list_objects":              with("list_objects", "{}", 404),
		"an error that is not about the caller": everyCall(200, "application/json", fmt.Sprintf(failure, "no such table: tokens_seen")),
		"an error with status 404":              everyCall(404, "application/json", fmt.Sprintf(failure, "no such method")),
		"an error with status 500":              everyCall(500, "application/json", fmt.Sprintf(failure, "crashed")),
		"text with status 500 but for params":   with(`"object"`, "crashed", 500),
		"text with status 500 but for a method": with("get_sync_speed", "crashed", 500),
		"HTML but for a method":                 with("get_sync_speed", "<html>hello</html>", 200),
		"text that is no JSON":                  everyCall(200, "application/json", "it works!"),
		"an empty object":                       everyCall(200, "application/json", "{}"),
		"400 over plain http":                   everyCall(400, "text/plain", "bad request"),
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Run(context.Background(), Target{Handler: h}, conformance.Options{Select: []string{"RPC-*", "CON-*", "HTTP-*"}})
			require.NoError(t, err)
			require.Equal(t, conformance.NonConformant, r.Verdict, r.Summary)
			require.Equal(t, 1, r.ExitStatus)
		})
	}
}

// TestTLSAndPlainHTTP: the scheme of the URL is not that of the port.
func TestTLSAndPlainHTTP(t *testing.T) {
	secure, plain := httptest.NewTLSServer(newSmall()), httptest.NewServer(newSmall())
	t.Cleanup(secure.Close)
	t.Cleanup(plain.Close)
	r, err := Run(context.Background(), Target{URL: "http" + strings.TrimPrefix(secure.URL, "https")}, conformance.Options{})
	require.NoError(t, err)
	nothingJudged(t, r, "unreachable", "TLS is spoken on this port", "begin the URL with https://")
	for _, d := range []conformance.Development{conformance.DevelopmentAuto, conformance.DevelopmentOff} {
		r, err = Run(context.Background(), Target{URL: "https" + strings.TrimPrefix(plain.URL, "http")}, conformance.Options{Development: d})
		require.NoError(t, err)
		nothingJudged(t, r, "unreachable", "plain http is spoken on this port", "begin the URL with http://")
	}
	r, err = Run(context.Background(), Target{URL: "http://" + hangsUpOnPlainHTTP(t, secure.TLS.Certificates)}, conformance.Options{})
	require.NoError(t, err)
	nothingJudged(t, r, "unreachable", "TLS is spoken on this port", "begin the URL with https://")
}

// hangsUpOnPlainHTTP is a port of TLS as many languages have it: what does not
// begin with a handshake gets no answer at all.
func hangsUpOnPlainHTTP(t *testing.T, certificates []tls.Certificate) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	t.Cleanup(func() { l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				_ = tls.Server(mute{conn}, &tls.Config{Certificates: certificates}).Handshake() // of a stranger: it fails
			})
		}
	})
	return l.Addr().String()
}

// mute sends handshakes only: no alert and no text.
type mute struct{ net.Conn }

func (m mute) Write(b []byte) (int, error) {
	if len(b) > 0 && b[0] != 0x15 && b[0] != 'H' {
		return m.Conn.Write(b)
	}
	return len(b), nil
}

// TestAResponseWithoutLength: the report shows what arrived and what is missing.
func TestAResponseWithoutLength(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, response string
		words          []string
	}{
		{"no length", "\r\n{\"jsonrpc\":\"2.0\"}", []string{
			"HTTP 200 and 17 bytes came, then nothing: the response has neither Content-Length nor chunked encoding, and the connection stays open",
			"send Content-Length, or close the connection",
		}},
		{"too great a length", "Content-Length: 80\r\n\r\n{\"jsonrpc\":\"2.0\"}", []string{"no complete reply within", "announces a longer one than it sends"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					return
				}
				defer conn.Close()
				fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"+c.response)
				_, _ = io.Copy(io.Discard, conn)
			}))
			t.Cleanup(e.Close)
			r, err := Run(context.Background(), Target{URL: e.URL}, conformance.Options{PlanningTimeout: 250 * time.Millisecond})
			require.NoError(t, err)
			nothingJudged(t, r, "unreachable", c.words...)
		})
	}
}

func TestUnhealthySaysWhatIsMissing(t *testing.T) {
	e := newSmall()
	e.answer = func(method string, _ int, _ []byte) string {
		if method == "test_connection" {
			return `{"jsonrpc":"2.0","id":$ID,"result":{"success":false,"error_message":"missing access token"}}`
		}
		return ""
	}
	r, err := Run(context.Background(), Target{Handler: e}, conformance.Options{})
	require.NoError(t, err)
	nothingJudged(t, r, "unhealthy", "missing access token", "--token-env NAME")
}
