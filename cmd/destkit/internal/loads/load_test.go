package loads

import (
	"bytes"
	"context"
	"encoding/xml"
	"io"
	"net/http"
	"regexp"
	"strings"
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

// TestTheStatusOfALoad: thresholds and leftovers decide it, errors alone do not.
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

// TestMistakesOfALoadNameTheirFlag before the target is called.
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

func TestSummary(t *testing.T) {
	kept := false
	r := &loadgen.Result{
		Seconds: 10, Ended: "duration", Requests: 100, Records: 1000, Acknowledged: 988, Errors: 12, RequestsPerSecond: 10,
		Target: loadgen.TargetInfo{Address: "https://x", Objects: []loadgen.Share{{Name: "contact"}}},
		Load:   loadgen.LoadInfo{Mode: "as-declared", Rate: 10, BatchSize: 10, Connections: 2},
		ErrorMessages: []loadgen.ErrorMessage{
			{Kind: "record_refused", Message: "full", Count: 12, Example: loadgen.Example{Identifier: `"a"`}},
		},
		Latency:     loadgen.Times{P99: 900, Max: 950},
		ServiceTime: loadgen.Times{P99: 100},
		Generator:   loadgen.Generator{Queued: 70, Late: 1, Unsent: 2},
		Declared:    &loadgen.DeclaredInfo{BatchSize: 10, Parallel: 2, RecordsPerSecond: 100, RateLimit: 50_000, Kept: &kept},
		Cleanup:     &loadgen.CleanupResult{Deleted: 900, Left: 100, Reasons: []string{"no"}},
		Thresholds:  []loadgen.Threshold{{Text: "errors>0", Metric: "errors", Got: 12, Failed: true}},
	}
	var out bytes.Buffer
	WriteSummary(&out, r)
	for _, words := range []string{
		"https://x, contact: as declared at 10 requests/s", "12 x record_refused: full, for example \"a\"",
		"without 2 requests that were due and never sent or never answered", "latency is longer than service time", "of requests: 70 waited for a free connection, 1 started late by the generator, 2 never sent",
		"the declared speed was NOT kept", "cleaned up: 900 records deleted, 100 left", "FAILED: errors 12 (limit: errors>0)",
	} {
		require.Contains(t, out.String(), words)
	}
}

// TestJUnitHasEachLimit: a pipeline sees each limit as a test, and what else fails a load.
func TestJUnitHasEachLimit(t *testing.T) {
	r := &loadgen.Result{
		Seconds: 10, Ended: "duration", Requests: 10, Acknowledged: 10, Target: loadgen.TargetInfo{Address: "https://x"},
		Thresholds:   []loadgen.Threshold{{Text: "errors>0", Metric: "errors", Got: 12, Failed: true}, {Text: "p99>1s", Metric: "p99"}},
		Verification: &loadgen.Verification{Keys: 10, Chosen: 10, Verified: 10, Lost: 1},
	}
	var out bytes.Buffer
	require.NoError(t, writeJUnit(r, &out))
	var read junitSuites
	require.NoError(t, xml.Unmarshal(out.Bytes(), &read))
	require.Len(t, read.Suites, 1)
	suite := read.Suites[0]
	require.Equal(t, 4, suite.Tests)
	require.Equal(t, 2, suite.Failures)
	require.Nil(t, suite.Cases[0].Failure, "the load takes place")
	require.Equal(t, "FAILED: errors 12 (limit: errors>0)", suite.Cases[1].Failure.Message)
	require.Nil(t, suite.Cases[2].Failure)
	require.Contains(t, suite.Cases[3].Failure.Message, "1 lost")
}

func TestDisplay(t *testing.T) {
	text := block(someMoment(), 60)
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		require.Less(t, len([]rune(line)), 60, "a line that is broken cannot be drawn over")
	}
	require.Contains(t, text, "load 12s of 1m0s [####")
	require.Contains(t, text, "50,012 requests/s")
	require.Contains(t, text, "p99 1.70  max 123 ms")

	var screen bytes.Buffer
	view := NewDisplay(&screen, false)
	m := someMoment()
	for range 30 {
		view.Moment(m)
		m.Elapsed += 500 * time.Millisecond
	}
	view.Note("careful")
	view.Done()
	require.Equal(t, 3, strings.Count(screen.String(), "load "), "a line every six seconds of a minute")
	require.NotContains(t, screen.String(), "\x1b", "nothing is drawn over where no terminal is")
	require.Contains(t, screen.String(), "note: careful")
	screen.Reset()
	NewDisplay(&screen, true).Moment(m)
	require.Empty(t, screen.String())
}

// TestLoadReports: --report of a load names the same files as its other flags.
func TestLoadReports(t *testing.T) {
	l := files{reports: []string{"out.html", "r.json", "hdr=a.log", "intervals.csv"}}
	require.NoError(t, l.resolve())
	require.Equal(t, files{reports: l.reports, html: "out.html", json: "r.json", hdr: "a.log", csv: "intervals.csv"}, l)

	for want, l := range map[string]files{
		"formats are json (.json), html (.html, .htm), csv (.csv), hdr (.hlog)": {reports: []string{"out.pdf"}},
		"did you mean html?":                   {reports: []string{"htlm=r"}},
		"there is a json file already: r.json": {reports: []string{"s.json"}, json: "r.json"},
		"there is a html file already: a.html": {reports: []string{"a.html", "html=b.html"}},
	} {
		err := l.resolve()
		require.ErrorContains(t, err, want)
		var ended *exit.Error
		require.ErrorAs(t, err, &ended)
		require.Equal(t, exit.BadUsage, ended.Status)
	}
}
