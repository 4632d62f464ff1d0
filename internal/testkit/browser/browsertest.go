package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
)

// axeVersion is the accessibility checker that npm fetches.
const axeVersion = "4.14.1"

// walkTime ends a walk that waits for what never comes.
const walkTime = 5 * time.Minute

// absent ends a test that lacks a program or the network.
func absent(t testing.TB, format string, args ...any) {
	t.Helper()
	matrixtest.Missing(t, "browser", format, args...)
}

// axe is the source of axe-core, fetched once for each version.
func axe(t testing.TB) string {
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

// Tab is a page of a real browser.
type Tab struct {
	t      testing.TB
	ctx    context.Context
	Root   string // of the console
	axe    string
	looked map[string]bool
}

// New starts Chromium, and ends it with the test. root is the address that paths begin with.
func New(t testing.TB, root string) *Tab {
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
	return &Tab{t: t, ctx: ctx, Root: root, axe: axe(t), looked: map[string]bool{}}
}

// Do runs actions.
func (b *Tab) Do(actions ...chromedp.Action) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Run(b.ctx, actions...))
}

// Open loads a page of the console.
func (b *Tab) Open(path string) {
	b.t.Helper()
	b.Do(chromedp.Navigate(b.Root+path), chromedp.WaitReady("main"))
}

// Until waits for an expression to hold. While another page loads it cannot be evaluated.
func (b *Tab) Until(expression string) bool {
	for b.ctx.Err() == nil {
		holds := false
		if chromedp.Run(b.ctx, chromedp.Evaluate("document.readyState === 'complete' && ("+expression+")", &holds)) == nil && holds {
			return true
		}
		_ = chromedp.Run(b.ctx, chromedp.Sleep(20*time.Millisecond))
	}
	return false
}

// Sees waits until the page shows a text.
func (b *Tab) Sees(text string) {
	b.t.Helper()
	quoted, err := json.Marshal(text)
	require.NoError(b.t, err)
	require.True(b.t, b.Until("document.body.innerText.includes("+string(quoted)+")"), "the page never says %q", text)
}

// Click presses what a selector finds and waits for the page that comes.
func (b *Tab) Click(selector string) {
	b.t.Helper()
	b.Do(chromedp.Evaluate("window.before = true", nil), chromedp.Click(selector, chromedp.ByQuery))
	require.True(b.t, b.Until("window.before === undefined"), "no page follows %s", selector)
}

// Fill writes into a field.
func (b *Tab) Fill(selector, value string) {
	b.t.Helper()
	b.Do(chromedp.SetValue(selector, value, chromedp.ByQuery))
}

// Button selects that of a form, by the end of its action.
func Button(form string) string { return fmt.Sprintf(`form[action$=%q] button`, form) }

// Look holds the page as it is against the rules of accessibility, and for nothing that
// is wider than a small screen. With DESTKIT_SCREENS=DIR the screens stay there.
func (b *Tab) Look(name string) {
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
			b.Do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
				emulation.SetDeviceMetricsOverride(width, 900, 1, false))
			var wide float64
			b.Do(chromedp.Evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth", &wide))
			require.LessOrEqual(b.t, wide, 0.0, "%s is wider than %d pixels", name, width)
			if dir := os.Getenv("DESTKIT_SCREENS"); dir != "" {
				var png []byte
				b.Do(chromedp.FullScreenshot(&png, 100))
				require.NoError(b.t, os.MkdirAll(dir, 0o755))
				require.NoError(b.t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), png, 0o600))
			}
		}
		var found string
		b.Do(chromedp.Evaluate(b.axe, nil), chromedp.Evaluate(`axe.run(document, {resultTypes: ['violations']}).then(r => JSON.stringify(
			r.violations.filter(v => v.impact === 'serious' || v.impact === 'critical').map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 300) + ' ' + n.failureSummary).join('\n'))))`,
			&found, awaitPromise))
		require.Equal(b.t, "[]", found, "%s, %s", name, scheme)
	}
	b.Do(emulation.SetDeviceMetricsOverride(1280, 900, 1, false))
}

// awaitPromise lets an evaluation wait for its promise.
func awaitPromise(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
