package dashboard

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/internal/loadpage"
	"github.com/destkit/destkit/loadgen"
)

// moment is one of a load that goes on.
func moment(at time.Duration) loadgen.Moment {
	return loadgen.Moment{
		Phase: "load", Elapsed: at, Of: time.Minute, Requests: 1500, Records: 15_000, Errors: 7, InFlight: 3, Open: true, Asked: 300, CPUs: 0.25,
		Latest: loadgen.Point{
			At: at.Seconds(), RequestsPerSecond: 299, RecordsPerSecond: 2997, AcknowledgedPerSecond: 2990, Asked: 300, Errors: 7, InFlight: 3,
			P50: 1.5, P90: 4.5, P95: 5, P99: 9.5, Max: 12.5, ServiceP50: 1, ServiceP99: 9,
		},
		ErrorsByKind: map[string]int64{"timeout": 2, "http_status": 5},
		Target:       loadgen.TargetInfo{Address: "http://127.0.0.1:8090", Objects: []loadgen.Share{{Name: "<contact>", Weight: 1}}},
		Load: loadgen.LoadInfo{
			Mode: "open", Rate: 300, Connections: 64, BatchSize: 10, Records: "generated", Run: "abc123",
			Stages: []loadgen.Stage{{Duration: 10 * time.Second, From: 100, To: 100}, {Duration: 50 * time.Second, From: 100, To: 500}},
		},
	}
}

// threshold reads a limit.
func threshold(t *testing.T, text string) loadgen.Threshold {
	t.Helper()
	limit, err := loadgen.ParseThreshold(text)
	require.NoError(t, err)
	return limit
}

// served is a page of a load on a port.
func served(t *testing.T, cfg LoadConfig) (*Load, *httptest.Server) {
	t.Helper()
	if cfg.Control == nil {
		cfg.Control = &loadgen.Control{}
	}
	l := NewLoad(cfg)
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	t.Cleanup(l.CloseConsole)
	return l, server
}

// ask makes one request and follows no redirect. The form goes with POST.
func ask(t *testing.T, method, address string, form url.Values, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, address, strings.NewReader(form.Encode()))
	require.NoError(t, err)
	r.Header.Set("Accept", "text/html")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	got, err := client.Do(r)
	require.NoError(t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	return got, string(text)
}

func TestThePageOfALoad(t *testing.T) {
	limits := []loadgen.Threshold{threshold(t, "p99>5ms"), threshold(t, "errors>10"), threshold(t, "lost>0")}
	l, server := served(t, LoadConfig{Limits: limits, Count: 3000})
	root := server.URL + console.Path
	got, _ := ask(t, "GET", server.URL+"/", nil)
	require.Equal(t, 303, got.StatusCode)
	require.Equal(t, console.Path+"/", got.Header.Get("Location"))
	got, text := ask(t, "GET", root+"/", nil)
	require.Equal(t, 200, got.StatusCode)
	require.Contains(t, text, "The first figures come soon.")
	require.Contains(t, got.Header.Get("Content-Security-Policy"), "script-src 'self'")

	for at := time.Second; at <= 15*time.Second; at += time.Second {
		m := moment(at)
		if at > 2*time.Second {
			m.Limits = []loadgen.Threshold{limits[0], limits[1]}
			m.Limits[0].Got, m.Limits[0].Failed = 9.5, true
			m.Limits[1].Got = 7
		}
		l.Moment(m)
	}
	l.Note("<b>slow</b>")
	got, text = ask(t, "GET", root+"/", nil)
	require.Equal(t, 200, got.StatusCode)
	for _, words := range []string{
		"&lt;contact&gt; at http://127.0.0.1:8090", "1,500 of 3,000 requests", `value="50.0"`, // the count is nearer to its end than the time
		"<b>299</b>", "of 300 asked for", "<b>2,990</b>", "1.5 ms", "4.5 ms", "9.5 ms", "12.5 ms", "0.25 of", "<b>3</b>",
		"p99 9.5 ms (limit: p99&gt;5ms)", "errors 7 (limit: errors&gt;10)", "lost&gt;0: told by what is read back", ">broken<", ">kept<", ">after the load<",
		"http_status", "timeout", "&lt;b&gt;slow&lt;/b&gt;", `aria-current="step">50s at 100 to 500/s`, "<svg", "Requests per second",
	} {
		require.Contains(t, text, words)
	}
	require.Less(t, strings.Index(text, "http_status"), strings.Index(text, "timeout"), "the most frequent kind comes first")
	require.NotContains(t, text, " style=", "the policy forbids it")
	require.NotContains(t, text, "<contact>")
}

// TestThePageOfALoadOfAService has no records: each request counts as one.
func TestThePageOfALoadOfAService(t *testing.T) {
	l, server := served(t, LoadConfig{})
	m := moment(2 * time.Second)
	m.Service, m.Load.Scenario, m.Load.BatchSize, m.Target.Objects = true, loadgen.ScenarioList, 1, nil
	m.Errors, m.Latest.Errors, m.ErrorsByKind = 0, 0, nil
	l.Moment(m)
	got, text := ask(t, "GET", server.URL+console.Path+"/", nil)
	require.Equal(t, 200, got.StatusCode)
	for _, words := range []string{"64 clients of the REST API", "requests in flight", "<b>1,500</b><span>requests so far</span>", "every response has passed its checks"} {
		require.Contains(t, text, words)
	}
	for _, words := range []string{"record", "batch"} {
		require.NotContains(t, text, words)
	}
	m.Elapsed, m.Latest.At, m.Latest.Errors = 3*time.Second, 3, 2
	l.Moment(m)
	_, text = ask(t, "GET", server.URL+console.Path+"/", nil)
	require.Contains(t, text, "responses that did not pass their checks")
	require.NotContains(t, text, "record")
}

// TestASeriesIsOfOnePhase: the charts of the load exclude the warm-up, and those of a
// search step exclude the others.
func TestASeriesIsOfOnePhase(t *testing.T) {
	l := NewLoad(LoadConfig{Control: &loadgen.Control{}})
	for _, at := range []time.Duration{1, 2, 3} {
		l.Moment(moment(at * time.Second))
	}
	l.Moment(moment(3 * time.Second)) // the same interval, reported again
	require.Len(t, l.series, 3)
	l.Moment(moment(time.Second))
	require.Len(t, l.series, 1)
	m := moment(2 * time.Second)
	m.Phase = "verify"
	m.Latest, m.Target, m.Load = loadgen.Point{}, loadgen.TargetInfo{}, loadgen.LoadInfo{}
	l.Moment(m)
	require.Empty(t, l.series)
	require.Equal(t, "http://127.0.0.1:8090", l.latest.Target.Address)
	for at := range mostPoints + 10 {
		l.Moment(moment(time.Duration(at+10) * time.Second))
	}
	require.Len(t, l.series, mostPoints)
}

// TestWhoMayUseThePage: the rules of all consoles hold.
func TestWhoMayUseThePage(t *testing.T) {
	control := &loadgen.Control{}
	_, server := served(t, LoadConfig{Control: control})
	root := server.URL + console.Path
	for name, c := range map[string]struct {
		method, path string
		header       []string
		want         int
	}{
		"a browser":               {"GET", "/", nil, 200},
		"a name that was rebound": {"GET", "/", []string{"Host", "evil.example"}, 403},
		"through a proxy":         {"GET", "/", []string{"X-Forwarded-For", "192.0.2.1"}, 403},
		"another site looks":      {"GET", "/", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		"another site listens":    {"GET", "/live?page=%2F", []string{"Origin", "http://evil.example"}, 403},
		"no origin":               {"POST", "/pause", nil, 403},
		"another origin":          {"POST", "/pause", []string{"Origin", "http://evil.example"}, 403},
		"another port":            {"POST", "/stop", []string{"Origin", "http://127.0.0.1:1"}, 403},
		"a service's call":        {"GET", "/", []string{"Destkit-Outbound", "1"}, 403},
		"GET changes nothing":     {"GET", "/pause", nil, 404},
	} {
		got, text := ask(t, c.method, root+c.path, nil, c.header...)
		require.Equal(t, c.want, got.StatusCode, "%s: %s", name, text)
	}
	require.False(t, control.Paused())
	got, _ := ask(t, "POST", root+"/pause", nil, "Origin", server.URL)
	require.Equal(t, 303, got.StatusCode)
	require.True(t, control.Paused())
	_, text := ask(t, "GET", root+"/", nil)
	require.Contains(t, text, "Go on")
	got, _ = ask(t, "POST", root+"/resume", nil, "Sec-Fetch-Site", "same-origin")
	require.Equal(t, 303, got.StatusCode)
	require.False(t, control.Paused())
}

// TestAControlTokenOpensThePage, and the page does not show it.
func TestAControlTokenOpensThePage(t *testing.T) {
	control := &loadgen.Control{}
	l, server := served(t, LoadConfig{Control: control, Token: "control-secret"})
	l.Moment(moment(time.Second))
	root := server.URL + console.Path
	for _, path := range []string{"/", "/report", "/live?page=%2F"} {
		got, text := ask(t, "GET", root+path, nil)
		require.Equal(t, 401, got.StatusCode, path)
		require.NotContains(t, text, "127.0.0.1:8090")
		got, _ = ask(t, "GET", root+path, nil, "Authorization", "Bearer wrong")
		require.Equal(t, 401, got.StatusCode, path)
	}
	got, _ := ask(t, "POST", root+"/sign-in", url.Values{"token": {"control-secret"}}, "Origin", server.URL)
	require.Equal(t, 303, got.StatusCode)
	cookie := got.Cookies()[0]
	session := cookie.Name + "=" + cookie.Value
	got, text := ask(t, "GET", root+"/", nil, "Cookie", session)
	require.Equal(t, 200, got.StatusCode)
	require.Contains(t, text, "127.0.0.1:8090")
	require.NotContains(t, text, "control-secret")
	got, _ = ask(t, "POST", root+"/pause", nil, "Cookie", session, "Origin", server.URL)
	require.Equal(t, 303, got.StatusCode)
	require.True(t, control.Paused())
}

// TestRatesThatCannotBe are refused with the reason, and the input stays.
func TestRatesThatCannotBe(t *testing.T) {
	l, server := served(t, LoadConfig{})
	root := server.URL + console.Path
	l.Moment(moment(time.Second))
	for text, why := range map[string]string{
		"":        "must be a number of requests per second",
		"many":    "must be a number of requests per second",
		"-5":      "a rate must be above 0",
		"1e9":     "a rate must be above 0 and at most",
		"NaN":     "a rate must be above 0",
		"500":     "nothing is sent now", // no run has this control
		`"><b>x`:  "must be a number of requests per second",
		"1,000.5": "nothing is sent now",
	} {
		got, page := ask(t, "POST", root+"/rate", url.Values{"rate": {text}}, "Origin", server.URL)
		require.Equal(t, 400, got.StatusCode, text)
		require.Contains(t, page, why, text)
		require.NotContains(t, page, "><b>x")
	}
	m := moment(2 * time.Second)
	m.Load.Mode, m.Phase = "search", "search"
	l.Moment(m)
	_, page := ask(t, "POST", root+"/rate", url.Values{"rate": {"500"}}, "Origin", server.URL)
	require.Contains(t, page, "a search chooses its rates itself")
	_, page = ask(t, "GET", root+"/", nil)
	require.NotContains(t, page, "Change the rate")
}

// TestAPauseKeepsTheLevers: nothing is requested in it, and no button moves from under
// the pointer when its first figures come.
func TestAPauseKeepsTheLevers(t *testing.T) {
	control := &loadgen.Control{}
	l, server := served(t, LoadConfig{Control: control})
	l.Moment(moment(time.Second))
	control.Pause()
	levers := func() string {
		_, page := ask(t, "GET", server.URL+console.Path+"/", nil)
		_, page, found := strings.Cut(page, `<div class="levers">`)
		require.True(t, found)
		page, _, _ = strings.Cut(page, "</div>")
		return strings.ReplaceAll(page, `placeholder="300" `, "")
	}
	before := levers()
	require.Contains(t, before, "Change the rate")
	m := moment(2 * time.Second)
	m.Asked, m.Paused = 0, true
	l.Moment(m)
	require.Equal(t, before, levers())
	m.Open = false
	l.Moment(m)
	require.NotContains(t, levers(), "Change the rate", "a closed loop has no rate")
}

// TestThePageBecomesTheReport: the same bytes as those of the file.
func TestThePageBecomesTheReport(t *testing.T) {
	l, server := served(t, LoadConfig{})
	root := server.URL + console.Path
	l.Moment(moment(time.Second))
	got, _ := ask(t, "GET", root+"/report", nil)
	require.Equal(t, 303, got.StatusCode)
	require.Equal(t, console.Path+"/", got.Header.Get("Location"))

	// An open page is led there without being loaded again.
	ctx, leave := context.WithTimeout(t.Context(), time.Minute)
	defer leave()
	r, err := http.NewRequestWithContext(ctx, "GET", root+"/live?page=%2F", nil)
	require.NoError(t, err)
	open, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer open.Body.Close()
	require.Equal(t, 200, open.StatusCode)

	result := &loadgen.Result{
		Tool: "destkit test", Ended: "stopped", Seconds: 15, Requests: 4500, Records: 45_000, Acknowledged: 45_000, RequestsPerSecond: 300,
		Target: moment(0).Target, Load: moment(0).Load, Series: []loadgen.Point{moment(time.Second).Latest},
	}
	require.NoError(t, l.Finish(result))
	var file strings.Builder
	require.NoError(t, loadpage.Write(&file, result))
	got, _ = ask(t, "GET", root+"/", nil)
	require.Equal(t, 303, got.StatusCode)
	require.Equal(t, console.Path+"/report", got.Header.Get("Location"))
	got, text := ask(t, "GET", root+"/report", nil)
	require.Equal(t, 200, got.StatusCode)
	require.Equal(t, file.String(), text)
	require.Contains(t, got.Header.Get("Content-Security-Policy"), "default-src 'none'")
	require.Contains(t, got.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
	require.NotContains(t, got.Header.Get("Content-Security-Policy"), "script-src")
	buffer, seen := make([]byte, 4096), ""
	for !strings.Contains(seen, "event: next\ndata: "+console.Path+"/report\n") {
		n, err := open.Body.Read(buffer)
		seen += string(buffer[:n])
		require.NoError(t, err, seen)
	}
	for _, action := range []string{"/pause", "/resume", "/rate", "/stop"} {
		got, text = ask(t, "POST", root+action, url.Values{"rate": {"5"}}, "Origin", server.URL)
		require.Equal(t, 409, got.StatusCode, action)
		require.Contains(t, text, "the load has ended")
	}
}

func TestSecondsAreShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 2249 * time.Millisecond: "2.2s", 10 * time.Second: "10s", time.Minute: "1m", 70 * time.Second: "1m10s", 10 * time.Minute: "10m",
		time.Hour: "1h", time.Hour + time.Minute: "1h1m", 90*time.Minute + time.Second: "1h30m1s", 24 * time.Hour: "24h", time.Hour + time.Second: "1h0m1s",
	} {
		require.Equal(t, want, seconds(d))
	}
}
