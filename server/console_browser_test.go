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
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

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
	conn, err := sqlite.OpenConn(w.sourceFile())
	require.NoError(t, err)
	require.NoError(t, sqlitex.ExecuteScript(conn, `INSERT INTO customers (id, email, name) VALUES (2, 'bob@example.com', NULL), (3, '"><script>alert(1)</script>', 'Eve');`, nil))
	require.NoError(t, conn.Close())
	service := httptest.NewServer(w.s)
	t.Cleanup(service.Close)
	t.Cleanup(w.s.CloseConsole) // before the listener waits for open pages
	b := browser.New(t, service.URL+consoleAt)

	b.Do(chromedp.Navigate(service.URL + "/"))
	b.Sees("First organization")
	b.Look("overview-empty")
	b.Open("/workspaces/1/sources/new?type=sqlite")
	b.Look("source")
	b.Fill(`input[name=name]`, "Shop")
	b.Fill(`input[name="c.path"]`, w.sourceFile())
	b.Click(browser.Button("/sources/new/sqlite"))
	b.Sees("Source 1 is made")
	b.Open("/workspaces/1/destinations/new?type=custom_api")
	b.Fill(`input[name=name]`, "Endpoint")
	b.Fill(`input[name="c.webhook_url"]`, w.destination())
	b.Fill(`input[name="c.auth_token"]`, "destination-token")
	b.Do(chromedp.Evaluate(`document.querySelector('[name="c.api_version"]').value = '1'`, nil))
	b.Look("destination")
	b.Click(browser.Button("/destinations/new/custom_api"))
	b.Sees("Destination 1 is made")
	b.Open("/workspaces/1/syncs/new?source=1&destination=1")
	b.Do(chromedp.SetValue(`select[name=target]`, "person", chromedp.ByQuery))
	b.Click(`form.filter button`)
	b.Sees("Mappings")
	b.Fill(`input[name=label]`, "People")
	b.Fill(`select[name="map.last_name"]`, "name")
	b.Look("newsync")
	b.Click(`form[method=post] .acts button`)
	b.Sees("Sync 1 is made")
	b.Look("sync")
	b.Open("/workspaces/1/syncs/1/plan")
	b.Sees("Dry run")
	b.Look("plan")

	// The run is held at its destination: the page shows it at work, and then its end
	// without being loaded again.
	reached, release := w.hold()
	b.Open("/workspaces/1/syncs/1")
	b.Click(browser.Button("/syncs/1/trigger"))
	b.Sees("Run 1 is started")
	<-reached
	b.Sees("working")
	b.Look("run-working")
	release()
	b.Sees("completed")
	b.Sees("bob@example.com")
	b.Look("run")
	b.Click(`#errors ~ .scroll a`)
	b.Sees("Decision: sent")
	b.Look("record")
	b.Open("/calls")
	b.Sees("sync_batch")
	b.Look("calls")
	b.Click("[data-row] a")
	b.Sees("OpenRPC document")
	b.Look("call")

	b.Open("/faults")
	b.Look("faults-empty")
	b.Fill(`input[name=operation]`, "listSyncs")
	b.Fill(`input[name=status]`, "503")
	b.Fill(`input[name=times]`, "1")
	b.Click(browser.Button("/faults"))
	b.Sees("fault_1 is armed")
	b.Sees("never")
	b.Open("/send")
	b.Look("send")
	b.Click(browser.Button("/send"))
	b.Sees("was answered with 503")
	b.Look("request")
	b.Open("/faults")
	b.Do(chromedp.WaitVisible(`a[href$="requests?fault=fault_1"]`, chromedp.ByQuery))
	b.Look("faults")
	b.Open("/requests")
	b.Look("requests")
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
	b.Click(`form.inline button:not(.quiet)`)
	b.Sees("The clock is 24h further")
	b.Look("clock")
	w.do("POST", "/invitations", w.pat, map[string]any{"email": "bob@example.com", "role": "member"}).want(200)
	b.Open("/mailbox")
	b.Sees("bob@example.com")
	b.Look("mailbox")
	b.Open("/webhooks")
	b.Look("webhooks")

	downloads := t.TempDir()
	b.Do(chromium.SetDownloadBehavior(chromium.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(downloads))
	b.Open("/world")
	b.Look("world")
	b.Do(chromedp.Click(`a[href$="/snapshot.tar"]`, chromedp.ByQuery))
	file := filepath.Join(downloads, "destkit-snapshot.tar")
	require.Eventually(t, func() bool { _, err := os.Stat(file); return err == nil }, 2*time.Minute, 50*time.Millisecond)
	b.Open("/")
	b.Do(chromedp.Evaluate(`for (const d of document.querySelectorAll('details')) d.open = true`, nil))
	b.Fill(`input[name=name]`, "Later")
	b.Click(browser.Button("/organizations"))
	b.Sees("Shown once")
	b.Look("once")
	b.Open("/")
	b.Sees("Later")
	b.Look("overview")
	b.Open("/world")
	b.Do(chromedp.Evaluate("window.confirm = () => true", nil), chromedp.SetUploadFiles(`form[action$="/restore"] input[type=file]`, []string{file}, chromedp.ByQuery))
	b.Click(browser.Button("/restore"))
	b.Sees("The service is as it was in the snapshot")
	b.Sees("First organization")
	var text string
	b.Do(chromedp.Text("main", &text, chromedp.ByQuery))
	require.NotContains(t, text, "Later")
	b.Open("/nothing")
	b.Look("nothing")

	simulator := httptest.NewServer(w.sim)
	t.Cleanup(simulator.Close)
	t.Cleanup(w.sim.CloseConsole)
	b.Root = simulator.URL + consoleAt
	b.Do(chromedp.Navigate(simulator.URL + "/"))
	b.Sees("Simulated destination")
	b.Look("sim-overview")
	b.Open("/records?object=person")
	b.Sees("ada@example.com")
	b.Look("sim-records")
	b.Open("/requests")
	b.Sees("sync_batch")
	b.Look("sim-requests")
	b.Click(browser.Button("/bodies"))
	b.Sees("Stop keeping bodies")
	call, err := http.NewRequest(http.MethodPost, w.destination(), strings.NewReader(`{"jsonrpc":"2.0","method":"list_objects","params":{},"id":"1"}`))
	require.NoError(t, err)
	call.Header.Set("Authorization", "Bearer destination-token")
	call.Header.Set("Content-Type", "application/json")
	called, err := http.DefaultClient.Do(call)
	require.NoError(t, err)
	require.NoError(t, called.Body.Close())
	b.Open("/requests")
	b.Click(`main a[href*="/requests/"]`)
	b.Sees("Nothing in this breaks")
	b.Sees("Use it again")
	b.Look("sim-request")
	b.Open("/violations?text=RES-002")
	b.Click(`button[value="RES-002"]`)
	b.Sees("breaks RES-002 from now on")
	b.Look("sim-violations")
	require.NotEmpty(t, armed(w.sim))
	b.Open("/faults")
	b.Fill(`select[name=kind]`, "throttle")
	b.Click(browser.Button("/faults"))
	b.Sees("The fault f1 is armed")
	b.Look("sim-faults")
	b.Open("/hooks")
	b.Look("sim-hooks")
	b.Click(`button[value="break_downstream begin"]`)
	b.Sees("The downstream system is down")
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
