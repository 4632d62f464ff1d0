package server

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	chromium "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/testkit/browser"
)

// TestMatrixConsoleWalk walks through every page in a real browser: makes a source, a
// destination and a sync, watches a run end, explains a record, arms a fault and sees it
// fire, advances a day, takes a snapshot and restores it; then the simulator's pages.
func TestMatrixConsoleWalk(t *testing.T) {
	if !matrixtest.Whole() && !matrixtest.Named() {
		t.Skip("a real browser walks with DESTKIT_TIER=full")
	}
	w := newWorld(t)
	w.changeSource(`INSERT INTO customers (id, email, name) VALUES (2, 'bob@example.com', NULL), (3, '"><script>alert(1)</script>', 'Eve')`)
	service := httptest.NewServer(w.s)
	t.Cleanup(service.Close)
	t.Cleanup(w.s.CloseConsole) // before the listener waits for open pages
	b := browser.New(t, service.URL+consoleAt)

	look := func(name string, sees []string) {
		for _, text := range sees {
			b.Sees(text)
		}
		if name != "" {
			b.Look(name)
		}
	}
	open := func(path, name string, sees ...string) { b.Open(path); look(name, sees) }
	click := func(selector, name string, sees ...string) { b.Click(selector); look(name, sees) }
	b.Do(chromedp.Navigate(service.URL + "/"))
	b.Sees("First organization")
	b.Look("overview-empty")
	open("/workspaces/1/sources/new?type=sqlite", "source")
	b.Fill(`input[name=name]`, "Shop")
	b.Fill(`input[name="c.path"]`, w.sourceFile())
	click(browser.Button("/sources/new/sqlite"), "", "Source 1 is made")
	b.Open("/workspaces/1/destinations/new?type=custom_api")
	b.Fill(`input[name=name]`, "Endpoint")
	b.Fill(`input[name="c.webhook_url"]`, w.destination())
	b.Fill(`input[name="c.auth_token"]`, "destination-token")
	b.Do(chromedp.Evaluate(`document.querySelector('[name="c.api_version"]').value = '1'`, nil))
	b.Look("destination")
	click(browser.Button("/destinations/new/custom_api"), "", "Destination 1 is made")
	b.Open("/workspaces/1/syncs/new?source=1&destination=1")
	b.Do(chromedp.SetValue(`select[name=target]`, "person", chromedp.ByQuery))
	click(`form.filter button`, "", "Mappings")
	b.Fill(`input[name=label]`, "People")
	b.Fill(`select[name="map.last_name"]`, "name")
	b.Look("newsync")
	click(`form[method=post] .acts button`, "sync", "Sync 1 is made")
	open("/workspaces/1/syncs/1/plan", "plan", "Dry run")

	// The run is held at its destination: the page shows it at work, and then its end
	// without being loaded again.
	reached, release := w.hold()
	b.Open("/workspaces/1/syncs/1")
	click(browser.Button("/syncs/1/trigger"), "", "Run 1 is started")
	<-reached
	b.Sees("working")
	b.Look("run-working")
	release()
	b.Sees("completed")
	b.Sees("bob@example.com")
	b.Look("run")
	click(`#errors ~ .scroll a`, "record", "Decision: sent")
	open("/calls", "calls", "sync_batch")
	click("[data-row] a", "call", "OpenRPC document")

	open("/faults", "faults-empty")
	b.Fill(`input[name=operation]`, "listSyncs")
	b.Fill(`input[name=status]`, "503")
	b.Fill(`input[name=times]`, "1")
	click(browser.Button("/faults"), "", "fault_1 is armed", "never")
	open("/send", "send")
	click(browser.Button("/send"), "request", "was answered with 503")
	b.Open("/faults")
	b.Do(chromedp.WaitVisible(`a[href$="requests?fault=fault_1"]`, chromedp.ByQuery))
	b.Look("faults")
	open("/requests", "requests")
	// The list fills by itself, and the filter acts while one types.
	w.do("GET", "/syncs", w.key, nil).want(200)
	b.Do(chromedp.WaitVisible(`#x-req_000000000002`, chromedp.ByQuery))
	// New rows leave the row with the keyboard focus marked.
	b.Do(chromedp.KeyEvent("j"), chromedp.WaitVisible("#x-req_000000000002.at", chromedp.ByQuery))
	w.do("GET", "/syncs", w.key, nil).want(200)
	b.Do(chromedp.WaitVisible(`#x-req_000000000003`, chromedp.ByQuery))
	var marked string
	b.Do(chromedp.Evaluate("[...document.querySelectorAll('.at')].map(row => row.id).join()", &marked))
	require.Equal(t, "x-req_000000000002", marked)
	b.Do(chromedp.SendKeys(`input[name=status]`, "503", chromedp.ByQuery), chromedp.WaitNotPresent(`#x-req_000000000002`, chromedp.ByQuery))
	// Keys: out of the field, to the next row, open it.
	b.Do(chromedp.Evaluate("document.activeElement.blur()", nil), chromedp.KeyEvent("j"), chromedp.WaitVisible("tr.at", chromedp.ByQuery), chromedp.KeyEvent("?"))
	b.Sees("Keys")
	b.Look("keys")
	b.Do(chromedp.Click("dialog button", chromedp.ByQuery))

	b.Open("/clock")
	b.Fill(`input[name=by]`, "24h")
	click(`form.inline button:not(.quiet)`, "clock", "The clock is 24h further")
	w.do("POST", "/invitations", w.pat, map[string]any{"email": "bob@example.com", "role": "member"}).want(200)
	open("/mailbox", "mailbox", "bob@example.com")
	open("/webhooks", "webhooks")

	downloads := t.TempDir()
	b.Do(chromium.SetDownloadBehavior(chromium.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(downloads))
	open("/world", "world")
	b.Do(chromedp.Click(`a[href$="/snapshot.tar"]`, chromedp.ByQuery))
	file := filepath.Join(downloads, "destkit-snapshot.tar")
	require.Eventually(t, func() bool { _, err := os.Stat(file); return err == nil }, 2*time.Minute, 50*time.Millisecond)
	b.Open("/")
	b.Do(chromedp.Evaluate(`for (const d of document.querySelectorAll('details')) d.open = true`, nil))
	b.Fill(`input[name=name]`, "Later")
	click(browser.Button("/organizations"), "once", "Shown once")
	open("/", "overview", "Later")
	b.Open("/world")
	b.Do(chromedp.Evaluate("window.confirm = () => true", nil), chromedp.SetUploadFiles(`form[action$="/restore"] input[type=file]`, []string{file}, chromedp.ByQuery))
	click(browser.Button("/restore"), "", "The service is as it was in the snapshot", "First organization")
	var text string
	b.Do(chromedp.Text("main", &text, chromedp.ByQuery))
	require.NotContains(t, text, "Later")
	open("/nothing", "nothing")

	simulator := httptest.NewServer(w.sim)
	t.Cleanup(simulator.Close)
	t.Cleanup(w.sim.CloseConsole)
	b.Root = simulator.URL + consoleAt
	b.Do(chromedp.Navigate(simulator.URL + "/"))
	b.Sees("Simulated destination")
	b.Look("sim-overview")
	open("/records?object=person", "sim-records", "ada@example.com")
	open("/requests", "sim-requests", "sync_batch")
	click(browser.Button("/bodies"), "", "Stop keeping bodies")
	call, err := http.NewRequest(http.MethodPost, w.destination(), strings.NewReader(`{"jsonrpc":"2.0","method":"list_objects","params":{},"id":"1"}`))
	require.NoError(t, err)
	call.Header.Set("Authorization", "Bearer destination-token")
	call.Header.Set("Content-Type", "application/json")
	called := must(http.DefaultClient.Do(call))(t)
	require.NoError(t, called.Body.Close())
	b.Open("/requests")
	click(`main a[href*="/requests/"]`, "sim-request", "Nothing in this breaks", "Use it again")
	b.Open("/violations?text=RES-002")
	click(`button[value="RES-002"]`, "sim-violations", "breaks RES-002 from now on")
	require.NotEmpty(t, armed(w.sim))
	b.Open("/faults")
	b.Fill(`select[name=kind]`, "throttle")
	click(browser.Button("/faults"), "sim-faults", "The fault f1 is armed")
	open("/hooks", "sim-hooks")
	click(`button[value="break_downstream begin"]`, "", "The downstream system is down")
}

// armed are the ids of the violations that are on.
func armed(sim *destsim.Sim) (ids []string) {
	for _, v := range sim.Armed() {
		if v.Armed {
			ids = append(ids, v.ID)
		}
	}
	return ids
}
