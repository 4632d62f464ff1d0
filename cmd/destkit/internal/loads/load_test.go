package loads

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/loadgen"
)

// someMoment is a load in the middle.
func someMoment() loadgen.Moment {
	return loadgen.Moment{
		Phase: "load", Elapsed: 12 * time.Second, Of: time.Minute, Requests: 600_000, Records: 600_000, Errors: 3, InFlight: 4, Asked: 50_000,
		Latest: loadgen.Point{RequestsPerSecond: 50_012, RecordsPerSecond: 50_012, P50: 0.31, P95: 0.8, P99: 1.7, Max: 123.4, ServiceP50: 0.2, ServiceP99: 1.1},
	}
}

func TestMetricsOfALoad(t *testing.T) {
	var screen bytes.Buffer
	meter, err := ServeMetrics(context.Background(), "127.0.0.1:0", &screen)
	require.NoError(t, err)
	defer meter.Stop()
	meter.Take(someMoment())
	url := regexp.MustCompile(`http://\S+`).FindString(screen.String())
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	for _, line := range []string{
		`destkit_load_requests_total{phase="load"} 600000`, `destkit_load_errors_total{phase="load"} 3`,
		`destkit_load_latency_seconds{phase="load",quantile="0.99"} 0.0017`, `destkit_load_asked_requests_per_second{phase="load"} 50000`,
	} {
		require.Contains(t, string(text), line)
	}
	_, err = ServeMetrics(context.Background(), "nowhere:x", &screen)
	require.Error(t, err)
}

// TestTheStatusOfALoad: thresholds and what was left behind decide it, errors alone do not.
func TestTheStatusOfALoad(t *testing.T) {
	r := &loadgen.Result{
		Ended: "duration", Requests: 100, Records: 1000, Acknowledged: 988, Errors: 12,
		Cleanup:    &loadgen.CleanupResult{Deleted: 900, Left: 100, Reasons: []string{"no"}},
		Thresholds: []loadgen.Threshold{{Text: "errors>0", Metric: "errors", Got: 12, Failed: true}},
	}
	require.Equal(t, exit.GateFailed, loadStatus(r))
	r.Thresholds = nil
	require.Equal(t, exit.Residue, loadStatus(r))
	r.Cleanup = nil
	require.Equal(t, exit.OK, loadStatus(r), "errors alone do not change it")
	r.Ended = "interrupted"
	require.Equal(t, exit.NotTested, loadStatus(r))
	r.Ended = "too many errors"
	require.Equal(t, exit.GateFailed, loadStatus(r))
	r.Search, r.Ended = &loadgen.SearchResult{}, "duration"
	require.Equal(t, exit.GateFailed, loadStatus(r))
	r.Ended = "interrupted"
	require.Equal(t, exit.NotTested, loadStatus(r), "it could not confirm anything")
}

// TestALoadThatSentNothingIsNoSuccess: not one record was acknowledged.
func TestALoadThatSentNothingIsNoSuccess(t *testing.T) {
	require.Equal(t, exit.GateFailed, loadStatus(&loadgen.Result{Ended: "keys used up"}))
	require.Equal(t, exit.NotTested, loadStatus(&loadgen.Result{Ended: "interrupted"}))
}

// TestMistakesOfALoadNameTheirFlag before the target is asked.
func TestMistakesOfALoadNameTheirFlag(t *testing.T) {
	dir := t.TempDir()
	for want, flags := range map[string][]string{
		"--max-records cannot be negative: -1":       {"--max-records", "-1"},
		"--prime cannot be negative: -1":             {"--prime", "-1"},
		"--count cannot be negative: -1":             {"--count", "-1"},
		"--warm-up cannot be negative: -1s":          {"--warm-up", "-1s"},
		"--json " + dir + ": that is a folder; name": {"--json", dir},
		"--data nofile: there is no such file":       {"--data", "nofile"},
	} {
		cmd := New(func() []string { return nil })
		cmd.SetArgs(append([]string{"http://127.0.0.1:1/", "--write", "--object", "contact"}, flags...))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.ExecuteContext(t.Context())
		require.ErrorContains(t, err, want)
		var ended *exit.Error
		require.ErrorAs(t, err, &ended)
		require.Equal(t, exit.BadUsage, ended.Status)
	}
}
