package loads

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/loadgen"
)

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
		"latency is longer than service time", "of requests: 70 waited for a free connection, 1 started late by the generator, 2 never sent",
		"the declared speed was NOT kept", "cleaned up: 900 records deleted, 100 left", "FAILED: errors 12 (limit: errors>0)",
	} {
		require.Contains(t, out.String(), words)
	}
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
