package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/internal/page"
	"github.com/destkit/destkit/internal/proxy"
)

// seen is traffic that a test makes.
type seen struct {
	mu    sync.Mutex
	calls Calls
	sides []Side
}

func (s *seen) Stamp() string { return fmt.Sprint(s.Calls().Observed) }

func (s *seen) Calls() Calls {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *seen) Sides() []Side {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sides
}

// add takes a call whose number is the next.
func (s *seen) add(c Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls.Observed++
	s.calls.Passed++
	c.Number = int(s.calls.Observed)
	s.calls.Kept = append(s.calls.Kept, c)
}

// hostile is text that a page must not take for its own.
const hostile = `"><script>alert(1)</script>`

// aBatch is a call that breaks a rule on either side.
func aBatch() Call {
	return Call{
		Line: proxy.Line{
			Started: time.Date(2026, 3, 4, 9, 30, 0, 0, time.UTC), Method: "sync_batch", Object: "contact", Operation: "upsert", Status: 200, MS: 12.3, FirstByteMS: 8.1,
			Records: 3, Succeeded: 2, Failed: 1, Broken: []string{"RES-002"}, Caller: []string{"CALL-008"},
		},
		Target: "/in" + hostile, Reused: true,
		Request:  console.Message{Headers: []string{"POST $DESTKIT_URL", "X-Odd: " + hostile}, Body: json.RawMessage(`{"name":"Lovelace","odd":"` + `<script>alert(1)</script>"}`), Bytes: 70},
		Response: console.Message{Headers: []string{"HTTP/1.1 200 OK"}, Body: json.RawMessage(`no JSON <i>`), Bytes: 11, Note: "Only its beginning is kept: it has 11 bytes."},
		Curl:     func() string { return `curl -sS "$DESTKIT_URL" -d '` + hostile + `'` },
	}
}

// bothSides are two judgements: the endpoint breaks a rule twice, the caller none.
func bothSides() []Side {
	write := func(w io.Writer) error { _, err := io.WriteString(w, "<!doctype html><p>the report"); return err }
	finding := page.Finding{Place: "object contact, operation upsert", Expected: "3 results " + hostile, Actual: "2 results", Times: 2, Exchanges: []int{1}}
	other := finding
	other.Actual, other.Exchanges = "no results", []int{9}
	return []Side{{
		Key: SideEndpoint, Name: "The endpoint", Verdict: "non-conformant", Records: 3,
		Titles: map[string]string{"RES-002": "Every record has a result"}, Notes: []string{"3 calls were answered by the proxy " + hostile},
		Report: write, Policy: "default-src 'none'; script-src 'sha256-abc'",
		Outline: page.Outline{Tone: "bad", Summary: "1 of 100 MUSTs failed (RES-002); 5 need --development off", Counts: []page.Count{{Status: "FAIL", Tone: "bad", Checks: 1}, {Status: "PASS", Tone: "good", Checks: 51}}, Failures: []page.Check{{
			ID: "RES-002", Title: "Every record has a result", Status: "FAIL", Tone: "bad", Rank: "MUST · spec 7.2.4", Reason: "A record without one is lost.", Again: "destkit conform --from calls.ndjson --select RES-002",
			Causes:   []page.Cause{{CauseLabel: "Possible cause", Cause: "the list is cut", Fix: "answer for each record", Examples: []page.Finding{finding}, More: 1, Exchanges: []int{1, 9}, Curl: "curl -sS x"}},
			Findings: []page.Finding{finding, other},
		}},
			Undecided: []page.Undecided{{What: "decided by active judging", How: "destkit conform", Musts: 1, Checks: []page.Check{{ID: "DUR-001", Title: "Every record is there at once"}}}},
			Problems:  []page.Problem{{Message: "a waiver is stale", Fix: "take it away"}}},
	}, {
		Key: SideCaller, Name: "The caller", Verdict: "conformant in part", Outline: page.Outline{Tone: "part", Summary: "none of 27 MUSTs failed"}, Titles: map[string]string{"CALL-008": "Every batch carries the whole plan"}, Report: write,
	}}
}

// servedProxy is the pages of a proxy on a port.
func servedProxy(t *testing.T, token string) (*Proxy, *seen, *httptest.Server) {
	t.Helper()
	s := &seen{sides: bothSides()}
	p := NewProxy(ProxyConfig{Traffic: s, From: "http://127.0.0.1:8070/", To: "$DESTKIT_URL", Token: token})
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	t.Cleanup(p.CloseConsole)
	return p, s, server
}

// clean makes sure that a page has no script but the console's, no style that the policy
// forbids, and nothing that came as text.
func clean(t *testing.T, text string) {
	t.Helper()
	require.Equal(t, 1, strings.Count(text, "<script"), "only the console's")
	require.NotContains(t, text, "alert(1)</script>")
	require.NotContains(t, text, " style=", "the policy forbids it")
}

func TestThePagesOfAProxy(t *testing.T) {
	_, s, server := servedProxy(t, "")
	root := server.URL + console.Path
	got, _ := ask(t, "GET", server.URL+"/", nil)
	require.Equal(t, 303, got.StatusCode)
	require.Equal(t, console.Path+"/", got.Header.Get("Location"))
	_, text := ask(t, "GET", root+"/", nil)
	require.Contains(t, text, "No call has come yet. Give the caller http://127.0.0.1:8070/ as the URL of the endpoint.")
	require.NotContains(t, text, "no longer")
	s.add(aBatch())
	s.add(Call{Line: proxy.Line{Method: "list_objects", Problem: "the proxy has answered 502", NotJudged: "a body is longer than --max-body"}, Target: "/in", Response: console.Message{Missing: "Not kept."}})
	s.calls.Local = 4

	for path, parts := range map[string][]string{
		"/": {
			"go to <code>$DESTKIT_URL</code>", "<b>2</b><span>calls passed on", "<b>3</b><span>records sent", "<b>4</b><span>answered by the proxy",
			"The endpoint <span class=\"chip\">non-conformant", `5 need <span class="flag">--development</span> off`, "51 PASS", `findings#f-RES-002"><code>RES-002</code></a> Every record has a result`,
			"The caller <span class=\"chip\">conformant in part", "2 exchanges so far", `exchanges/1">/in&#34;&gt;&lt;script&gt;`, "2 of 3 records ok", `<span class="tag bad">RES-002`, `<span class="tag bad">CALL-008`,
			"not judged", "the proxy has answered 502", "12.3 ms", "<option>list_objects</option>", "data-live=",
		},
		"/findings": {
			`id="f-RES-002"`, "MUST · spec 7.2.4", "A record without one is lost.", "3 results &#34;&gt;&lt;script&gt;", "Actual, 2 times", "and 1 more", "the list is cut", "answer for each record",
			`exchanges/9">exchange 9`, "curl -sS x", "destkit conform --from calls.ndjson --select RES-002", "destkit explain RES-002",
			"Not decided by this traffic", "decided by active judging", "1 MUST", "DUR-001", "a waiver is stale", "answered by the proxy &#34;&gt;&lt;script&gt;",
			"No call so far breaks a rule.", "report/caller",
		},
		"/exchanges/1": {
			"12.3 ms, the first byte of the response after 8.1 ms", "3 sent, 2 succeeded, 1 failed", "kept from an earlier call", "X-Odd: &#34;&gt;&lt;script&gt;", "Lovelace", "no JSON &lt;i&gt;",
			"Only its beginning is kept", "The endpoint breaks", "Every record has a result", "2 results", "the list is cut", "The caller breaks", "Every batch carries the whole plan",
			"The report has other exchanges that show it", "curl -sS", `exchanges/2">Newer`,
		},
		"/exchanges/2": {"was only passed on: a body is longer than --max-body", "There is no command", "no response", `exchanges/1">Older`, "Not kept."},
	} {
		got, text := ask(t, "GET", root+path, nil)
		require.Equal(t, 200, got.StatusCode, path)
		require.Contains(t, got.Header.Get("Content-Security-Policy"), "script-src 'self'")
		for _, words := range parts {
			require.Contains(t, text, words, path)
		}
		clean(t, text)
	}
	_, text = ask(t, "GET", root+"/exchanges/1", nil)
	require.NotContains(t, text, "no results", "that was another exchange")

	for path, want := range map[string]int{"/exchanges/3": 404, "/exchanges/x": 404, "/report/x": 404, "/?before=x": 400, "/?before=-1": 400} {
		got, text := ask(t, "GET", root+path, nil)
		require.Equal(t, want, got.StatusCode, path)
		clean(t, text)
	}
	got, text = ask(t, "GET", root+"/report/endpoint", nil)
	require.Equal(t, 200, got.StatusCode)
	require.Equal(t, "<!doctype html><p>the report", text)
	require.Equal(t, "default-src 'none'; script-src 'sha256-abc'; frame-ancestors 'none'", got.Header.Get("Content-Security-Policy"))
}

func TestExchangesAreFiltered(t *testing.T) {
	_, s, server := servedProxy(t, "")
	root := server.URL + console.Path
	s.add(aBatch())                                                                                      // 1
	s.add(Call{Line: proxy.Line{Method: "list_objects", Status: 503}, Target: "/in"})                    // 2
	s.add(Call{Line: proxy.Line{Method: "GET", Status: 404}, Target: "/other?x=1"})                      // 3
	s.add(Call{Line: proxy.Line{Method: "sync_batch", Problem: "reset"}, Target: "/in"})                 // 4
	s.add(Call{Line: proxy.Line{Method: "sync_batch", Status: 200, Object: "a<b>order"}, Target: "/in"}) // 5
	for query, want := range map[string][]int{
		"":                              {5, 4, 3, 2, 1},
		"method=sync_batch":             {5, 4, 1},
		"method=sync_batch&status=none": {4},
		"path=other":                    {3},
		"path=/in":                      {5, 4, 2, 1},
		"status=200":                    {5, 1},
		"status=5XX":                    {2},
		"status=4xx":                    {3},
		"status=xx":                     nil,
		"status=teapot":                 nil,
		"rules=broken":                  {1},
		"rules=endpoint":                {1},
		"rules=caller":                  {1},
		"text=LOVELACE":                 {1},
		"text=x-odd":                    {1},
		"text=a%3Cb%3E":                 {5},
		"text=res-002":                  {1},
		"text=reset":                    {4},
		"before=3":                      {2, 1},
		"before=3&method=list_objects":  {2},
	} {
		got, text := ask(t, "GET", root+"/?"+query, nil)
		require.Equal(t, 200, got.StatusCode)
		var shown []int
		for _, part := range strings.Split(text, `<tr id="x-`)[1:] {
			var n int
			_, err := fmt.Sscanf(part, "%d", &n)
			require.NoError(t, err)
			shown = append(shown, n)
		}
		require.Equal(t, want, shown, query)
		if want == nil {
			require.Contains(t, text, "No exchange that is kept fits.")
		}
	}
	_, text := ask(t, "GET", root+"/?text="+url.QueryEscape(hostile)+"&method="+url.QueryEscape(hostile), nil)
	clean(t, text)
}

// TestOlderExchanges: the list has pages, and reports dropped exchanges.
func TestOlderExchanges(t *testing.T) {
	_, s, server := servedProxy(t, "")
	root := server.URL + console.Path
	for range 120 {
		s.add(Call{Line: proxy.Line{Method: "list_objects", Status: 200}})
	}
	_, text := ask(t, "GET", root+"/", nil)
	require.NotContains(t, text, "forgotten")
	s.calls.Kept, s.calls.Dropped = s.calls.Kept[10:], 10
	_, text = ask(t, "GET", root+"/", nil)
	require.Contains(t, text, "120 exchanges so far, of which the oldest 10 are forgotten")
	require.Contains(t, text, "The proxy keeps the latest 110 for this page; <code>--journal FILE</code> records all.")
	require.Equal(t, perPage, strings.Count(text, `<tr id="x-`))
	require.Contains(t, text, `href="?before=71">Older`)
	_, text = ask(t, "GET", root+"/?before=71", nil)
	require.Contains(t, text, `<tr id="x-70"`)
	require.NotContains(t, text, `<tr id="x-71"`)
	require.Contains(t, text, `href="?before=21">Older`)
	_, text = ask(t, "GET", root+"/?before=21", nil)
	require.Equal(t, 10, strings.Count(text, `<tr id="x-`))
	require.NotContains(t, text, ">Older<")
	require.Contains(t, text, "Back to the newest")
	got, text := ask(t, "GET", root+"/exchanges/10", nil)
	require.Equal(t, 404, got.StatusCode)
	require.Contains(t, text, "the proxy keeps the latest 110; --journal FILE records all")
}

// TestForBrowsersAndPrograms: the root is a page for clients that request one.
func TestForBrowsersAndPrograms(t *testing.T) {
	p, _, server := servedProxy(t, "")
	for _, c := range []struct {
		method, path, accept string
		want                 bool
	}{
		{"GET", "/", "text/html,application/xhtml+xml", true}, {"HEAD", "/", "text/html", true}, {"GET", "/", "application/json", false}, {"GET", "/", "", false},
		{"POST", "/", "text/html", false}, {"GET", "/exchanges", "text/html", false}, {"GET", console.Path, "", true}, {"GET", console.Path + "/findings", "", true}, {"GET", console.Path + "x", "", false},
	} {
		r := httptest.NewRequest(c.method, server.URL+c.path, nil)
		r.RemoteAddr = "127.0.0.1:9"
		r.Header.Set("Accept", c.accept)
		require.Equal(t, c.want, p.ForBrowser(r), "%+v", c)
	}
}

// TestTheEndIsShown: an open page gets the last state before its updates end.
func TestTheEndIsShown(t *testing.T) {
	p, s, server := servedProxy(t, "")
	root := server.URL + console.Path
	ctx, leave := context.WithTimeout(t.Context(), time.Minute)
	defer leave()
	r, err := http.NewRequestWithContext(ctx, "GET", root+"/live?page=%2F", nil)
	require.NoError(t, err)
	open, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer open.Body.Close()
	require.Equal(t, 200, open.StatusCode)
	s.add(aBatch())
	p.Finish()
	_, text := ask(t, "GET", root+"/", nil)
	require.Contains(t, text, "The proxy has ended")
	p.CloseConsole()
	rest, err := io.ReadAll(open.Body)
	require.NoError(t, err)
	updates := strings.Split(string(rest), "event: ")
	require.Equal(t, "end\ndata: the program stops\n\n", updates[len(updates)-1])
	last := updates[len(updates)-2]
	require.Contains(t, last, "The proxy has ended")
	require.Contains(t, last, `<tr id="x-1"`)
}
