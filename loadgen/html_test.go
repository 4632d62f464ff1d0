package loadgen

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// stalled is a result whose target gave no reply from 0.4 to 1.4 s.
func stalled(t *testing.T) *Result {
	r := measured(t, 1, 2, 3, 4)
	r.Series, r.ServiceTime.P50 = nil, 5
	for i := range 10 {
		p := Point{At: float64(i+1) / 5, RequestsPerSecond: 100, RecordsPerSecond: 100, P50: 5, P99: 9, Max: 9, ServiceP99: 8, InFlight: 2}
		if i >= 2 && i < 7 {
			p = Point{At: p.At, InFlight: 16}
		}
		r.Series = append(r.Series, p)
	}
	return r
}

// TestAStallIsSeen: the page says it at the top and marks it, and draws no
// latency where none was measured.
func TestAStallIsSeen(t *testing.T) {
	r := stalled(t)
	require.Equal(t, []band{{from: 0.4, to: 1.4}}, silences(r))
	var page bytes.Buffer
	require.NoError(t, WriteHTML(&page, r))
	html := page.String()
	require.Less(t, strings.Index(html, "For about 1 s no reply came, from 0.4 s on"), strings.Index(html, "<svg"))
	require.Contains(t, html, `<rect class="band"`)
	require.NotContains(t, html, "NaN")
	c := curveOf(r, "p99", "c3", false, timeOf(func(p Point) float64 { return p.P99 }))
	require.True(t, math.IsNaN(c.y[2]) && math.IsNaN(c.y[6]))
	require.Equal(t, 9.0, c.y[7])

	r.ServiceTime.P50 = 800
	require.Empty(t, silences(r), "a target that is always so slow does not stall")
	r.ServiceTime.P50 = 5
	for i := range r.Series {
		r.Series[i].InFlight = 0
	}
	require.Empty(t, silences(r), "nothing was asked")
}

// TestThePageShowsTextsOfOthers: no markup, and nothing that turns a line around.
func TestThePageShowsTextsOfOthers(t *testing.T) {
	r := stalled(t)
	const hostile = "<script>alert(1)</script>\u202e\x1b[31m\x00\"'"
	r.ErrorMessages = []ErrorMessage{{Kind: KindRecordRefused, Message: hostile, Count: 1, Example: Example{Identifier: hostile}}}
	r.Keys = []WrittenKeys{{Object: hostile, Field: hostile, First: hostile, Last: hostile}}
	r.Target.Objects = []Share{{Name: hostile, Weight: 1}}
	r.Notes = []string{hostile}
	var page bytes.Buffer
	require.NoError(t, WriteHTML(&page, r))
	require.NotContains(t, page.String(), "<script>alert")
	for _, c := range []string{"\u202e", "\x1b", "\x00"} {
		require.NotContains(t, page.String(), c)
	}
	require.Contains(t, page.String(), "&lt;script&gt;alert(1)&lt;/script&gt;"+`\u202e\x1b[31m\x00`+"&#34;&#39;")
}

// TestARestOfAnInterval: the rate of a few milliseconds would be a spike.
func TestARestOfAnInterval(t *testing.T) {
	points := []Point{{At: 0.2}, {At: 0.4}, {At: 0.41}}
	require.Len(t, wholeIntervals(points), 2)
	points[2].At = 0.55
	require.Len(t, wholeIntervals(points), 3)
	require.Empty(t, wholeIntervals(nil))
}

func TestVerdictOnThePage(t *testing.T) {
	limit, err := ParseThreshold("p99>1s")
	require.NoError(t, err)
	broken := limit
	broken.Failed = true
	for want, change := range map[string]func(*Result){
		"Every record was acknowledged":        func(*Result) {},
		"No record was acknowledged: 9 errors": func(r *Result) { r.Errors, r.Acknowledged = 9, 0 },
		"12 errors":                            func(r *Result) { r.Errors = 12 },
		"Every limit was kept":                 func(r *Result) { r.Thresholds = []Threshold{limit} },
		"Every limit was kept, with 3 errors":  func(r *Result) { r.Thresholds, r.Errors = []Threshold{limit}, 3 },
		"A limit was broken: p99>1s":           func(r *Result) { r.Thresholds = []Threshold{limit, broken} },
		"Interrupted after 1 s":                func(r *Result) { r.Ended, r.Seconds = "interrupted", 1 },
		"Nothing was answered":                 func(r *Result) { r.Requests = 0 },
		"No rate was confirmed":                func(r *Result) { r.Search = &SearchResult{} },
	} {
		r := measured(t, 1, 2)
		r.Requests, r.Errors = 2, 0
		change(r)
		got, _ := verdictText(r)
		require.Equal(t, want, got)
	}
}

// TestSearchOnThePage: how it came to its rate, and where the knee is.
func TestSearchOnThePage(t *testing.T) {
	r := measured(t, 1, 2)
	r.Search = &SearchResult{
		Goal: "p99=20ms", Rate: 90, RecordsPerSecond: 900, Confirmed: true, BatchSize: 10, Connections: 4, Knee: 4, ClosedMaximum: 110,
		Steps: []SearchStep{
			{Kind: "closed", BatchSize: 10, Connections: 2, Reached: 60}, {Kind: "closed", BatchSize: 10, Connections: 4, Reached: 108},
			{Kind: "closed", BatchSize: 10, Connections: 8, Reached: 110}, {Kind: "closed", BatchSize: 20, Connections: 4, Reached: 70},
			{Kind: "double", Rate: 50, Reached: 50, Held: true}, {Kind: "double", Rate: 100, Reached: 97},
			{Kind: "bisect", Rate: 90, Reached: 90, Held: true}, {Kind: "confirm", Rate: 90, Reached: 90, Held: true},
		},
	}
	var page bytes.Buffer
	require.NoError(t, WriteHTML(&page, r))
	html := page.String()
	for _, words := range []string{"90 requests/s, 900 records/s hold p99=20ms", "The search", "The knee", "knee, at 4", "closed loop, batches of 10", "the goal broke"} {
		require.Contains(t, html, words)
	}
	knee := string(kneeChart(r.Search).SVG)
	require.Equal(t, len(frames), strings.Count(knee, "<circle"))
}

func TestTicks(t *testing.T) {
	labels := func(ticks []tickAt) string {
		var words []string
		for _, tick := range ticks {
			words = append(words, tick.label)
		}
		return strings.Join(words, ", ")
	}
	require.Equal(t, "0, 5 k, 10 k, 15 k, 20 k", labels(niceTicks(0, 21000, 5)))
	require.Equal(t, "0, 0.2, 0.4, 0.6, 0.8, 1", labels(niceTicks(0, 1.05, 6)))
	require.Equal(t, "0 s, 2 s, 4 s, 6 s, 8 s, 10 s", labels(timeTicks(0, 10, 5)))
	require.Equal(t, "0, 2 min, 4 min, 6 min, 8 min, 10 min", strings.Replace(labels(timeTicks(0, 600, 5)), "0 min", "0", 1))
	require.Equal(t, "0 h, 1 h, 2 h, 3 h, 4 h, 5 h", labels(timeTicks(0, 20000, 6)))
	require.Empty(t, niceTicks(0, math.Inf(1), 5))
	require.Equal(t, "1.041 s", msText(1040.6))
	require.Equal(t, "994 ms", msText(994))
}

// TestLabelsKeepApart: of labels that would touch one another the later is left out.
func TestLabelsKeepApart(t *testing.T) {
	p := plot{ticks: []tickAt{{0, "first label"}, {0.01, "second label"}, {1, "last"}}, curves: []curve{{x: []float64{0, 1}, y: []float64{1, 2}}}}
	drawn := string(p.svg())
	require.Contains(t, drawn, "first label")
	require.NotContains(t, drawn, "second label")
	require.Contains(t, drawn, "last")
}
