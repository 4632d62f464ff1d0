package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/conformance/report"
	"github.com/destkit/destkit/conformance/service"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/proxy"
	"github.com/destkit/destkit/internal/testkit/browser"
)

// watchedProxy is a proxy with its second port, in front of a simulator.
type watchedProxy struct {
	t        *testing.T
	url      string // for callers
	port     *controlPort
	passive  *destination.Passive
	recorder *proxy.Recorder
	end      func() // of the calls; the second port goes on
}

// pagesAt is where the pages of a second port are.
const pagesAt = "/_control/console"

// callerToken is what callers send; no page may show it.
const callerToken = "hush-caller-token"

// watchProxy puts a proxy in front of a simulator that breaks a rule ("": none).
// controlToken names the environment variable of the second port, "" for none.
func watchProxy(t *testing.T, violation, controlToken string) *watchedProxy {
	t.Helper()
	config := destsim.Config{Token: callerToken}
	if violation != "" {
		config.Violate = []string{violation}
	}
	sim, err := destsim.New(config)
	require.NoError(t, err)
	target := httptest.NewServer(sim)
	t.Cleanup(func() { target.Close(); require.NoError(t, sim.Close()) })
	w := &watchedProxy{t: t}
	to := target.URL + "/?key=hush-query"
	w.passive, err = destination.NewPassive(destination.Target{URL: to}, conformance.Options{})
	require.NoError(t, err)
	caller, err := service.NewCaller(to, w.passive.Secrets(), conformance.Options{})
	require.NoError(t, err)
	w.recorder, err = proxy.NewRecorder(proxy.RecorderConfig{Passive: w.passive, Caller: caller, Keep: mostShown})
	require.NoError(t, err)
	p, err := proxy.New(proxy.Config{To: to, Observer: w.recorder, Secrets: w.passive.Secrets()})
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w.url = "http://" + ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- p.Serve(context.Background(), ln) }()
	var once sync.Once
	w.end = func() {
		once.Do(func() {
			ln.Close()
			p.Close()
			require.NoError(t, <-served)
			require.NoError(t, w.recorder.Close())
			w.port.finish()
		})
	}
	j := &proxying{control: "127.0.0.1:0"}
	j.controlToken = command.TokenFlag{Name: "control-token-env", Variable: controlToken}
	w.port, err = j.serveControl(t.Context(), &proxyTraffic{w.recorder, p.Counts, report.Options{}}, w.url+"/", w.passive.Secrets().String(to))
	require.NoError(t, err)
	t.Cleanup(w.port.close)
	t.Cleanup(w.end)
	return w
}

// call sends one call through the proxy and gives the response.
func (w *watchedProxy) call(method, params string) string {
	w.t.Helper()
	r, err := http.NewRequest(http.MethodPost, w.url+"/", strings.NewReader(string(rpc.EncodeRequest(nil, method, []byte(params), "id-of-"+method))))
	require.NoError(w.t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+callerToken)
	got, err := http.DefaultClient.Do(r)
	require.NoError(w.t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	require.NoError(w.t, err)
	return string(text)
}

// batch sends records of contacts, one for each last name.
func (w *watchedProxy) batch(lastNames ...string) string {
	w.t.Helper()
	var records []map[string]string
	for i, name := range lastNames {
		records = append(records, map[string]string{"email": fmt.Sprintf("p%d@example.com", i), "last_name": name})
	}
	text, err := json.Marshal(records)
	require.NoError(w.t, err)
	return w.call(rpc.MethodSyncBatch, `{"sync_plan":{"object":{"object_api_name":"contact","label":"Contact"},"operation":"upsert","sync_run_id":2,"sync_id":1,"schema":{`+
		`"email":{"active_identifier":true,"field":{"field_api_name":"email","label":"Email","identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":false}},`+
		`"last_name":{"active_identifier":false,"field":{"field_api_name":"last_name","label":"Last name","identifier":false,"required":true,"createable":true,"updateable":true,"type":"string","array":false}}}},"records":`+string(text)+`}`)
}

// plan makes the calls of a service before its batches.
func (w *watchedProxy) plan() {
	w.t.Helper()
	contact := `{"object":{"object_api_name":"contact","label":"Contact"}}`
	w.call(rpc.MethodTestConnection, "{}")
	w.call(rpc.MethodListObjects, "{}")
	w.call(rpc.MethodListFields, contact)
	w.call(rpc.MethodSupportedOperations, contact)
	w.call(rpc.MethodGetSyncSpeed, "{}")
}

// look calls the second port as a browser does, and follows redirects.
func (w *watchedProxy) look(path string, header ...string) (status int, text string) {
	w.t.Helper()
	r, err := http.NewRequest(http.MethodGet, w.port.port.URL+path, nil)
	require.NoError(w.t, err)
	r.Header.Set("Accept", "text/html")
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	got, err := http.DefaultClient.Do(r)
	require.NoError(w.t, err)
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	require.NoError(w.t, err)
	return got.StatusCode, string(body)
}

// shows waits until a page shows a text.
func (w *watchedProxy) shows(path, words string) (text string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		_, text = w.look(path)
		return strings.Contains(text, words)
	}, time.Minute, 10*time.Millisecond, "%s never says %q", path, words)
	return text
}

// TestProxyPages: what goes by is on the pages with the ids and texts of the report, and
// programs get at the same address what they always got.
func TestProxyPages(t *testing.T) {
	w := watchProxy(t, "RES-005", "")
	w.plan()
	hostile := `"><script>alert(1)</script>`
	w.batch("Lovelace", hostile)
	text := w.shows("/", "contact upsert")
	require.Contains(t, text, "6 exchanges so far")
	require.Contains(t, text, "$DESTKIT_URL", "the endpoint's address holds a secret")
	require.Contains(t, text, `<span class="tag bad">RES-005</span>`)

	result := w.recorder.Report()
	require.Equal(t, []string{"RES-005"}, shown(result))
	at := slices.IndexFunc(result.Checks, func(c conformance.CheckResult) bool { return c.ID == "RES-005" })
	finding := result.Checks[at].Findings[0]
	_, findings := w.look(pagesAt + "/findings")
	_, exchange := w.look(pagesAt + "/exchanges/6")
	for _, page := range []string{findings, exchange} {
		for _, words := range []string{"RES-005", result.Checks[at].Title, finding.Expected, finding.Actual, finding.Fix} {
			require.Contains(t, page, html.EscapeString(words))
		}
	}
	require.Contains(t, findings, "exchanges/6\">exchange 6</a>")
	require.Contains(t, findings, html.EscapeString(result.Checks[at].Reason))
	for _, words := range []string{"Lovelace", `-H &#34;Authorization: Bearer ${DESTKIT_TOKEN:?}&#34;`, "The endpoint breaks", "first byte of the response after"} {
		require.Contains(t, exchange, words)
	}
	undecided := 0
	for _, c := range result.Checks {
		if c.Status == conformance.Inconclusive || c.Status == conformance.NotRun {
			require.Contains(t, findings, "<code>"+c.ID+"</code>")
			undecided++
		}
	}
	require.Positive(t, undecided)
	_, full := w.look(pagesAt + "/report/endpoint")
	require.Contains(t, full, "Conformance report of a custom destination")
	_, full = w.look(pagesAt + "/report/caller")
	require.Contains(t, full, "Conformance report of a service")
	for _, path := range []string{"/", pagesAt + "/findings", pagesAt + "/exchanges/6", pagesAt + "/exchanges/1", pagesAt + "/report/endpoint", pagesAt + "/report/caller", "/exchanges", "/report", "/caller-report"} {
		status, text := w.look(path)
		require.Equal(t, http.StatusOK, status, path)
		require.NotContains(t, text, callerToken, path)
		require.NotContains(t, text, "hush-query", path)
		if !strings.HasPrefix(text, "{") {
			require.NotContains(t, text, hostile, path)
		}
	}

	// Programs.
	status, text := w.look("/", "Accept", "application/json")
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, text, "there are /exchanges, /report, /caller-report and /healthz")
	_, text = w.look("/exchanges?after=5", "Accept", "application/json")
	var got struct {
		Dropped   *int64
		Exchanges []proxy.Kept
	}
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	require.Len(t, got.Exchanges, 1)
	require.Equal(t, []string{"RES-005"}, got.Exchanges[0].Line.Broken)
	require.Zero(t, *got.Dropped)
	_, text = w.look("/caller-report")
	require.Contains(t, text, `"suite":"service"`)

	// Events, one for each further call.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.port.port.URL+"/exchanges?after=6", nil)
	require.NoError(t, err)
	r.Header.Set("Accept", "text/event-stream")
	events, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer events.Body.Close()
	w.call(rpc.MethodListObjects, "{}")
	line, err := bufio.NewReader(events.Body).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "id: 7\n", line)

	// The end.
	w.end()
	_, text = w.look("/")
	require.Contains(t, text, "The proxy has ended")
	require.Contains(t, text, "7 exchanges so far")
}

// TestProxyPagesAreGuarded: pages and JSON have the same rules.
func TestProxyPagesAreGuarded(t *testing.T) {
	w := watchProxy(t, "", "")
	w.call(rpc.MethodListObjects, "{}")
	w.shows("/", "list_objects")
	everything := []string{pagesAt + "/", pagesAt + "/findings", pagesAt + "/exchanges/1", pagesAt + "/report/endpoint", pagesAt + "/live?page=%2F", "/exchanges", "/report", "/caller-report"}
	for _, path := range everything {
		for _, header := range [][]string{{"Host", "evil.example"}, {"Origin", "http://evil.example"}, {"Sec-Fetch-Site", "cross-site"}, {"X-Forwarded-For", "192.0.2.1"}, {"Destkit-Outbound", "1"}} {
			status, text := w.look(path, header...)
			require.Equal(t, http.StatusForbidden, status, "%s %v", path, header)
			require.NotContains(t, text, "list_objects")
		}
	}
	t.Setenv("DESTKIT_TEST_CONTROL", "hush-control")
	w = watchProxy(t, "", "DESTKIT_TEST_CONTROL")
	w.call(rpc.MethodListObjects, "{}")
	for _, path := range everything {
		for _, header := range [][]string{nil, {"Authorization", "Bearer wrong"}} {
			status, text := w.look(path, header...)
			require.Contains(t, []int{http.StatusUnauthorized, http.StatusForbidden}, status, path)
			require.NotContains(t, text, "list_objects")
		}
	}
	require.Eventually(t, func() bool {
		status, text := w.look(pagesAt+"/", "Authorization", "Bearer hush-control", "Host", "proxy.example")
		require.NotContains(t, text, "hush-control")
		return status == http.StatusOK && strings.Contains(text, "list_objects")
	}, time.Minute, 10*time.Millisecond)
	status, _ := w.look("/exchanges", "Authorization", "Bearer hush-control", "Host", "proxy.example")
	require.Equal(t, http.StatusOK, status)
}

// TestMatrixProxyWalk walks through the pages of a proxy in a real browser while calls go
// by, of which one breaks a rule.
func TestMatrixProxyWalk(t *testing.T) {
	if !matrixtest.Whole() && !matrixtest.Named() {
		t.Skip("a real browser walks with DESTKIT_TIER=full")
	}
	w := watchProxy(t, "RES-005", "")
	b := browser.New(t, w.port.port.URL+pagesAt)
	b.Do(chromedp.Navigate(w.port.port.URL + "/"))
	b.Sees("No call has come yet.")
	b.Look("proxy-start")

	// Calls and their findings come live.
	w.plan()
	b.Sees("supported_operations")
	b.Sees("get_sync_speed")
	w.batch("Lovelace", "Hopper")
	b.Sees("RES-005")
	b.Sees("contact upsert")
	b.Sees("non-conformant")
	require.True(t, b.Until("document.getElementById('live-state').textContent === 'live'"), "the page is not live")
	b.Look("proxy-traffic")

	// A filter acts while one types, and later rows are filtered, too.
	rows := func(n int) string { return fmt.Sprintf("document.querySelectorAll('[data-row]').length === %d", n) }
	b.Do(chromedp.SendKeys("input[name=text]", "lovelace", chromedp.ByQuery))
	require.True(t, b.Until(rows(1)), "the filter does not act")
	w.call(rpc.MethodGetSyncSpeed, "{}")
	w.batch("Lovelace")
	require.True(t, b.Until(rows(2)), "the filtered list is not live")
	b.Look("proxy-filtered")
	b.Open("/?method=get_sync_speed")
	require.True(t, b.Until(rows(2)))
	b.Open("/?rules=endpoint")
	require.True(t, b.Until(rows(2)))
	b.Open("/?status=5xx")
	b.Sees("No exchange that is kept fits.")

	// The row that the keys lead to is never under the bar at the top.
	b.Open("/")
	b.Do(chromedp.EmulateViewport(900, 180), chromedp.WaitVisible("[data-row]", chromedp.ByQuery))
	for _, key := range []string{"j", "j", "j", "j", "j", "k", "k", "k", "k"} {
		b.Do(chromedp.KeyEvent(key))
		require.True(t, b.Until("(({top, bottom}) => top >= document.querySelector('.bar').getBoundingClientRect().bottom && bottom < innerHeight + 1)(document.querySelector('.at').getBoundingClientRect())"), "the row is not seen after %s", key)
	}
	b.Do(chromedp.EmulateViewport(1280, 900))

	// One exchange in full, by keys.
	b.Open("/?rules=endpoint")
	require.True(t, b.Until(rows(2)))
	b.Do(chromedp.KeyEvent("j"), chromedp.KeyEvent("j"))
	require.True(t, b.Until("document.activeElement.textContent.includes('contact upsert')"), "j leads to no row")
	b.Do(chromedp.KeyEvent("\r"))
	b.Sees("As curl")
	b.Sees("Hopper")
	b.Sees("$DESTKIT_TOKEN")
	b.Sees("The endpoint breaks")
	b.Sees("Expected")
	b.Look("proxy-exchange")

	// The findings, with the exchange that shows one.
	b.Do(chromedp.KeyEvent("g"), chromedp.KeyEvent("f"))
	b.Sees("Not decided by this traffic")
	b.Sees("The status of a record is a boolean")
	b.Do(chromedp.Evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })", nil))
	b.Look("proxy-findings")
	b.Click("#f-RES-005 a[href*='/exchanges/']")
	b.Sees("As curl")
	b.Open("/findings")
	b.Click("a[href$='/report/endpoint']")
	b.Sees("Conformance report of a custom destination")

	// The end stays on an open page when the program is gone.
	b.Open("/")
	require.True(t, b.Until("document.getElementById('live-state').textContent === 'live'"), "the page is not live")
	w.end()
	b.Sees("The proxy has ended")
	b.Look("proxy-ended")
	w.port.close()
	require.True(t, b.Until("document.getElementById('live-state').textContent === 'stopped'"), "the page does not say that it stopped")
	b.Sees("non-conformant")
}
