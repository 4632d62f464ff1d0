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
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/proxy"
)

// parityEachDay are the rows that are judged in each sample; others are judged when they are
// named with -run.
var parityEachDay = []string{
	"Python/identifier-misnamed", "Python/ok-for-success", "Python/average-of-nothing", "Python/one-status-for-all",
	"Python-SQLite/status-422-with-results", "Python-SQLite/one-503-in-sixty",
}

// TestZooParity: a live run is recorded, and the recording judged as by
// 'conform --from': the rules that traffic decides are broken in both, or in neither.
func TestZooParity(t *testing.T) {
	matrixtest.NotEveryDay(t)
	for _, m := range alternating(Mistakes()) {
		name := m.Language + "/" + m.Name
		if !matrixtest.Named() && !slices.Contains(parityEachDay, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live, recorded := judgeAndRecord(t, m)
			require.Subset(t, brokenBy(live, nil), brokenBy(recorded, live), explain(recorded, append(broken, conformance.Warn)...))
			require.Subset(t, brokenBy(recorded, nil), slices.DeleteFunc(brokenBy(live, nil), func(id string) bool {
				return !rules.Decides(id)
			}), explain(live, append(broken, conformance.Warn)...))
		})
	}
}

// brokenBy are the rules that a report shows broken, without those that another report
// explains by others.
func brokenBy(r, explained *conformance.Report) (ids []string) {
	for _, c := range r.Checks {
		if !slices.Contains(append(broken, conformance.Warn), c.Status) {
			continue
		}
		if explained != nil && slices.ContainsFunc(explained.Checks, func(o conformance.CheckResult) bool { return o.ID == c.ID && len(o.BlockedBy) > 0 }) {
			continue
		}
		ids = append(ids, c.ID)
	}
	return ids
}

// judgeAndRecord judges an endpoint through a proxy that records, and then the recording.
func judgeAndRecord(t *testing.T, m Mistake) (live, recorded *conformance.Report) {
	var journal bytes.Buffer
	var stop func()
	endpoint := ""
	live = judgeBehind(t, m.Language, m.Name, m.Setting, true, func(url string) string {
		endpoint = url
		passive, err := destination.NewPassive(destination.Target{URL: url}, conformance.Options{})
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
	passive, err := destination.NewPassive(destination.Target{URL: endpoint}, conformance.Options{PlanningTimeout: 5 * time.Second, BatchTimeout: 10 * time.Second})
	require.NoError(t, err)
	_, err = proxy.ReadRecording(strings.NewReader(journal.String()), func(x *conformance.Sight) error {
		passive.Observe(x)
		return nil
	})
	require.NoError(t, err)
	return live, passive.Report()
}
