package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/matrixtest"
)

// axeVersion is the accessibility checker that npm fetches.
const axeVersion = "4.14.1"

// walkTime ends a walk that waits for what never comes.
const walkTime = 5 * time.Minute

// absent ends a test that lacks a program or the network: it is skipped, and in CI it
// fails.
func absent(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// axe is the source of axe-core, fetched once for each version.
func axe(t *testing.T) string {
	t.Helper()
	npm, err := exec.LookPath("npm")
	if err != nil {
		absent(t, "the walk through the console needs npm, for axe-core: %v", err)
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	dir := filepath.Join(cache, "destkit", "axe-"+axeVersion)
	file := filepath.Join(dir, "node_modules", "axe-core", "axe.min.js")
	if _, err := os.Stat(file); err != nil {
		require.NoError(t, os.MkdirAll(filepath.Dir(dir), 0o755))
		fresh, err := os.MkdirTemp(filepath.Dir(dir), "axe-")
		require.NoError(t, err)
		defer os.RemoveAll(fresh)
		install := exec.Command(npm, "install", "--prefix", fresh, "--ignore-scripts", "--no-audit", "--no-fund", "axe-core@"+axeVersion)
		if out, err := install.CombinedOutput(); err != nil {
			absent(t, "npm cannot fetch axe-core %s: %v\n%s", axeVersion, err, out)
		}
		_ = os.Rename(fresh, dir) // another process may have been faster
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// tab is a page of a real browser.
type tab struct {
	t      *testing.T
	ctx    context.Context
	root   string // of the console
	axe    string
	looked map[string]bool
}

// newTab starts Chromium.
func newTab(t *testing.T, root string) *tab {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		absent(t, "the walk through the console needs Chromium (Debian: apt-get install chromium)")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1280, 900),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(2*time.Minute))
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	ctx, done := chromedp.NewContext(allocator)
	t.Cleanup(done)
	// A walk that waits for what never comes ends here.
	ctx, stop := context.WithTimeout(ctx, walkTime)
	t.Cleanup(stop)
	return &tab{t: t, ctx: ctx, root: root, axe: axe(t), looked: map[string]bool{}}
}

func (b *tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Run(b.ctx, actions...))
}

// open loads a page of the console.
func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.root+path), chromedp.WaitReady("main"))
}

// until waits for an expression to hold. While another page loads it cannot be asked.
func (b *tab) until(expression string) bool {
	for b.ctx.Err() == nil {
		holds := false
		if chromedp.Run(b.ctx, chromedp.Evaluate("document.readyState === 'complete' && ("+expression+")", &holds)) == nil && holds {
			return true
		}
		_ = chromedp.Run(b.ctx, chromedp.Sleep(20*time.Millisecond))
	}
	return false
}

// sees waits until the page says something.
func (b *tab) sees(text string) {
	b.t.Helper()
	quoted, err := json.Marshal(text)
	require.NoError(b.t, err)
	require.True(b.t, b.until("document.body.innerText.includes("+string(quoted)+")"), "the page never says %q", text)
}

// click presses what a selector finds and waits for the page that comes.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(chromedp.Evaluate("window.before = true", nil), chromedp.Click(selector, chromedp.ByQuery))
	require.True(b.t, b.until("window.before === undefined"), "no page follows %s", selector)
}

// fill writes into a field.
func (b *tab) fill(selector, value string) {
	b.t.Helper()
	b.do(chromedp.SetValue(selector, value, chromedp.ByQuery))
}

// button is the one with a text.
func button(form string) string { return fmt.Sprintf(`form[action$=%q] button`, form) }

// look holds the page as it is against the rules of accessibility, and for nothing that
// is wider than a small screen. With DESTKIT_SCREENS=DIR the screens stay there.
func (b *tab) look(name string) {
	b.t.Helper()
	if b.looked[name] {
		return
	}
	b.looked[name] = true
	for _, dark := range []bool{false, true} {
		scheme := "light"
		if dark {
			scheme = "dark"
		}
		for _, width := range []int64{1280, 375} {
			b.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
				emulation.SetDeviceMetricsOverride(width, 900, 1, false))
			var wide float64
			b.do(chromedp.Evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth", &wide))
			require.LessOrEqual(b.t, wide, 0.0, "%s is wider than %d pixels", name, width)
			if dir := os.Getenv("DESTKIT_SCREENS"); dir != "" {
				var png []byte
				b.do(chromedp.FullScreenshot(&png, 100))
				require.NoError(b.t, os.MkdirAll(dir, 0o755))
				require.NoError(b.t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), png, 0o600))
			}
		}
		var found string
		b.do(chromedp.Evaluate(b.axe, nil), chromedp.Evaluate(`axe.run(document, {resultTypes: ['violations']}).then(r => JSON.stringify(
			r.violations.filter(v => v.impact === 'serious' || v.impact === 'critical').map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 300) + ' ' + n.failureSummary).join('\n'))))`,
			&found, awaitPromise))
		require.Equal(b.t, "[]", found, "%s, %s", name, scheme)
	}
	b.do(emulation.SetDeviceMetricsOverride(1280, 900, 1, false))
}

// TestMatrixConsoleWalk walks through every page in a real browser: makes a source, a
// destination and a sync, watches a run end, explains a record, arms a fault and sees it
// fire, advances a day, takes a snapshot and restores it; then the simulator's pages.
func TestMatrixConsoleWalk(t *testing.T) {
	if !matrixtest.Whole() && !matrixtest.Named() {
		t.Skip("a real browser walks with DESTKIT_TIER=matrix")
	}
	w := newWorld(t)
	conn, err := sqlite.OpenConn(w.sourceFile())
	require.NoError(t, err)
	require.NoError(t, sqlitex.ExecuteScript(conn, `INSERT INTO customers (id, email, name) VALUES (2, 'bob@example.com', NULL), (3, '"><script>alert(1)</script>', 'Eve');`, nil))
	require.NoError(t, conn.Close())
	service := httptest.NewServer(w.s)
	t.Cleanup(service.Close)
	t.Cleanup(w.s.CloseConsole) // before the listener waits for open pages
	b := newTab(t, service.URL+consoleAt)

	b.do(chromedp.Navigate(service.URL + "/"))
	b.sees("First organization")
	b.look("overview-empty")
	b.open("/workspaces/1/sources/new?type=sqlite")
	b.look("source")
	b.fill(`input[name=name]`, "Shop")
	b.fill(`input[name="c.path"]`, w.sourceFile())
	b.click(button("/sources/new/sqlite"))
	b.sees("Source 1 is made")
	b.open("/workspaces/1/destinations/new?type=custom_api")
	b.fill(`input[name=name]`, "Endpoint")
	b.fill(`input[name="c.webhook_url"]`, w.destination())
	b.fill(`input[name="c.auth_token"]`, "destination-token")
	b.do(chromedp.Evaluate(`document.querySelector('[name="c.api_version"]').value = '1'`, nil))
	b.look("destination")
	b.click(button("/destinations/new/custom_api"))
	b.sees("Destination 1 is made")
	b.open("/workspaces/1/syncs/new?source=1&destination=1")
	b.do(chromedp.SetValue(`select[name=target]`, "person", chromedp.ByQuery))
	b.click(`form.filter button`)
	b.sees("Mappings")
	b.fill(`input[name=label]`, "People")
	b.fill(`select[name="map.last_name"]`, "name")
	b.look("newsync")
	b.click(`form[method=post] .acts button`)
	b.sees("Sync 1 is made")
	b.look("sync")
	b.open("/workspaces/1/syncs/1/plan")
	b.sees("Dry run")
	b.look("plan")

	// The run is held at its destination: the page shows it at work, and then its end
	// without being loaded again.
	reached, release := w.hold()
	b.open("/workspaces/1/syncs/1")
	b.click(button("/syncs/1/trigger"))
	b.sees("Run 1 is started")
	<-reached
	b.sees("working")
	b.look("run-working")
	release()
	b.sees("completed")
	b.sees("bob@example.com")
	b.look("run")
	b.click(`#errors ~ .scroll a`)
	b.sees("Decision: sent")
	b.look("record")
	b.open("/calls")
	b.sees("sync_batch")
	b.look("calls")
	b.click("[data-row] a")
	b.sees("OpenRPC document")
	b.look("call")

	b.open("/faults")
	b.look("faults-empty")
	b.fill(`input[name=operation]`, "listSyncs")
	b.fill(`input[name=status]`, "503")
	b.fill(`input[name=times]`, "1")
	b.click(button("/faults"))
	b.sees("fault_1 is armed")
	b.sees("never")
	b.open("/send")
	b.look("send")
	b.click(button("/send"))
	b.sees("was answered with 503")
	b.look("request")
	b.open("/faults")
	b.do(chromedp.WaitVisible(`a[href$="requests?fault=fault_1"]`, chromedp.ByQuery))
	b.look("faults")
	b.open("/requests")
	b.look("requests")
	// The list fills by itself, and the filter acts while one types.
	w.do("GET", "/syncs", w.key, nil).want(200)
	b.do(chromedp.WaitVisible(`#x-req_000000000002`, chromedp.ByQuery))
	b.do(chromedp.SendKeys(`input[name=status]`, "503", chromedp.ByQuery), chromedp.WaitNotPresent(`#x-req_000000000002`, chromedp.ByQuery))
	// Keys: out of the field, to the next row, open it.
	b.do(chromedp.Evaluate("document.activeElement.blur()", nil), chromedp.KeyEvent("j"), chromedp.WaitVisible("tr.at", chromedp.ByQuery), chromedp.KeyEvent("?"))
	b.sees("Keys")
	b.look("keys")
	b.do(chromedp.Click("dialog button", chromedp.ByQuery))

	b.open("/clock")
	b.fill(`input[name=by]`, "24h")
	b.click(`form.inline button:not(.quiet)`)
	b.sees("The clock is 24h further")
	b.look("clock")
	w.do("POST", "/invitations", w.pat, map[string]any{"email": "bob@example.com", "role": "member"}).want(200)
	b.open("/mailbox")
	b.sees("bob@example.com")
	b.look("mailbox")
	b.open("/webhooks")
	b.look("webhooks")

	downloads := t.TempDir()
	b.do(browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(downloads))
	b.open("/world")
	b.look("world")
	b.do(chromedp.Click(`a[href$="/snapshot.tar"]`, chromedp.ByQuery))
	file := filepath.Join(downloads, "destkit-snapshot.tar")
	require.Eventually(t, func() bool { _, err := os.Stat(file); return err == nil }, 2*time.Minute, 50*time.Millisecond)
	b.open("/")
	b.do(chromedp.Evaluate(`for (const d of document.querySelectorAll('details')) d.open = true`, nil))
	b.fill(`input[name=name]`, "Later")
	b.click(button("/organizations"))
	b.sees("Shown once")
	b.look("once")
	b.open("/")
	b.sees("Later")
	b.look("overview")
	b.open("/world")
	b.do(chromedp.Evaluate("window.confirm = () => true", nil), chromedp.SetUploadFiles(`form[action$="/restore"] input[type=file]`, []string{file}, chromedp.ByQuery))
	b.click(button("/restore"))
	b.sees("The service is as it was in the snapshot")
	b.sees("First organization")
	var text string
	b.do(chromedp.Text("main", &text, chromedp.ByQuery))
	require.NotContains(t, text, "Later")
	b.open("/nothing")
	b.look("nothing")

	simulator := httptest.NewServer(w.sim)
	t.Cleanup(simulator.Close)
	t.Cleanup(w.sim.CloseConsole)
	b.root, b.looked = simulator.URL+consoleAt, map[string]bool{}
	b.do(chromedp.Navigate(simulator.URL + "/"))
	b.sees("Simulated destination")
	b.look("sim-overview")
	b.open("/records?object=person")
	b.sees("ada@example.com")
	b.look("sim-records")
	b.open("/requests")
	b.sees("sync_batch")
	b.look("sim-requests")
	b.open("/violations?text=RES-002")
	b.click(`button[value="RES-002"]`)
	b.sees("breaks RES-002 from now on")
	b.look("sim-violations")
	require.NotEmpty(t, armed(w.sim))
	b.open("/faults")
	b.fill(`select[name=kind]`, "throttle")
	b.click(button("/faults"))
	b.sees("The fault f1 is armed")
	b.look("sim-faults")
	b.open("/hooks")
	b.look("sim-hooks")
	b.click(`button[value="break_downstream begin"]`)
	b.sees("The downstream system is down")
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

// TestMatrixConsoleNeedsNoScript: a browser without one gets through the same forms.
func TestMatrixConsoleNeedsNoScript(t *testing.T) {
	if !matrixtest.Whole() && !matrixtest.Named() {
		t.Skip("a real browser walks with DESTKIT_TIER=matrix")
	}
	w := newWorld(t)
	service := httptest.NewServer(w.s)
	t.Cleanup(service.Close)
	b := newTab(t, service.URL+consoleAt)
	b.do(emulation.SetScriptExecutionDisabled(true))
	b.do(chromedp.Navigate(service.URL+"/"), chromedp.WaitVisible("h1", chromedp.ByQuery))
	b.do(chromedp.Click(`button[value=freeze]`, chromedp.ByQuery), chromedp.WaitVisible(`button[value=run]`, chromedp.ByQuery))
	var text string
	b.do(chromedp.Text("main", &text, chromedp.ByQuery))
	require.Contains(t, strings.Join(strings.Fields(text), " "), "The clock stands still.")
}

// awaitPromise lets an evaluation wait for what it begins.
func awaitPromise(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
