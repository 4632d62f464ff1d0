package zoo_test

import (
	"bytes"
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/proxy"
)

// parityEachDay are the rows that are judged in each sample.
var parityEachDay = []string{
	"Python/identifier-misnamed", "Python/ok-for-success", "Python/average-of-nothing", "Python/one-status-for-all",
	"Python-SQLite/status-422-with-results", "Python-SQLite/one-503-in-sixty",
}

// TestZooParity: a live run is recorded, and the recording judged as by 'conform --from': what
// traffic shows is found in both, or in neither. One report may show it under another check.
func TestZooParity(t *testing.T) {
	matrixtest.NotEveryDay(t)
	for _, m := range alternating(Mistakes()) {
		name := m.Language + "/" + m.Name
		if !matrixtest.Whole() && !slices.Contains(parityEachDay, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live, recorded := judgeAndRecord(t, m)
			for _, c := range brokenIn(recorded) {
				require.True(t, shows(live, c), "%s %q of the recording is not in the live run\n%s", c.ID, c.Symptoms, explain(recorded, append(broken, conformance.Warn)...))
			}
			for _, c := range brokenIn(live) {
				require.True(t, !decidedByTraffic(c) || shows(recorded, c), "%s %q of the live run is not in the recording\n%s", c.ID, c.Symptoms, explain(live, append(broken, conformance.Warn)...))
			}
		})
	}
}

// brokenIn are the checks that a report shows broken; deadlines are judged by calls that a live run
// makes alone.
func brokenIn(r *conformance.Report) []conformance.CheckResult {
	return lists.Where(r.Checks, func(c conformance.CheckResult) bool {
		return slices.Contains(append(broken, conformance.Warn), c.Status) && !strings.HasPrefix(c.ID, "TIM-")
	})
}

// shows reports whether a report has a finding of another, under this check or with all its symptoms
// under others; it may explain the check by others.
func shows(r *conformance.Report, c conformance.CheckResult) bool {
	var symptoms []string
	for _, o := range brokenIn(r) {
		if o.ID == c.ID {
			return true
		}
		symptoms = append(symptoms, o.Symptoms...)
	}
	return slices.ContainsFunc(r.Checks, func(o conformance.CheckResult) bool { return o.ID == c.ID && len(o.BlockedBy) > 0 }) ||
		!slices.ContainsFunc(c.Symptoms, func(s string) bool { return s == "" || !slices.Contains(symptoms, s) })
}

// decidedByTraffic reports whether single exchanges with the endpoint show what a check has found.
// What is stored, a comparison with a call that passes alone, and the answer of the proxy for an endpoint that is down do not.
func decidedByTraffic(c conformance.CheckResult) bool {
	ofExchange := func(s string) bool { return strings.Contains(s, ": ") || slices.Contains(ofResults, s) }
	return rules.Decides(c.ID) && slices.ContainsFunc(c.Symptoms, ofExchange) &&
		!slices.ContainsFunc(c.Findings, func(f conformance.Finding) bool {
			return strings.Contains(f.Actual, "destkit proxy: ") || strings.HasPrefix(f.Expected, "calls that are answered the same way")
		})
}

// ofResults are the symptoms of replies that are no refusal.
var ofResults = []string{
	"", "another id", "rate limit header", rules.SymptomNoResult, rules.SymptomNoIdentifier, rules.SymptomAltered, rules.SymptomNoneAtAll, rules.SymptomContradict,
}

// judgeAndRecord judges an endpoint through a proxy that records, and then the recording.
func judgeAndRecord(t *testing.T, m Mistake) (live, recorded *conformance.Report) {
	var journal bytes.Buffer
	var stop func()
	endpoint := ""
	opts := conformance.Options{PlanningTimeout: 5 * time.Second, BatchTimeout: 10 * time.Second}
	live = judgeBehind(t, m.Language, m.Name, m.Setting, true, func(url string) string {
		endpoint = wire.HideQuery(url)
		if m.Code != "" {
			opts.URLSecret = "query:code"
		}
		passive, err := destination.NewPassive(destination.Target{URL: url}, opts)
		require.NoError(t, err)
		recorder, err := proxy.NewRecorder(proxy.RecorderConfig{Passive: passive, Journal: &journal})
		require.NoError(t, err)
		p, err := proxy.New(proxy.Config{To: url, Observer: recorder, Secrets: passive.Secrets()})
		require.NoError(t, err)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		served := make(chan error, 1)
		go func() { served <- p.Serve(context.Background(), ln) }()
		stop = func() {
			ln.Close()
			require.NoError(t, <-served)
			p.Close()
			require.NoError(t, recorder.Close())
		}
		return "http://" + ln.Addr().String() + p.CallerPath()
	})
	stop()
	passive, err := destination.NewPassive(destination.Target{URL: endpoint}, opts)
	require.NoError(t, err)
	_, err = proxy.ReadRecording(strings.NewReader(journal.String()), func(x *conformance.Sight) error {
		passive.Observe(x)
		return nil
	})
	require.NoError(t, err)
	return live, passive.Report()
}
