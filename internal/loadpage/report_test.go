package loadpage

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/histogram"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen"
)

// stalled is a result whose target gave no reply from 0.4 to 1.4 s.
func stalled(t *testing.T) *loadgen.Result {
	r := loaded(t, 1, 2, 3, 4)
	r.Series, r.ServiceTime.P50 = nil, 5
	for i := range 10 {
		p := loadgen.Point{At: float64(i+1) / 5, RequestsPerSecond: 100, RecordsPerSecond: 100, P50: 5, P99: 9, Max: 9, ServiceP99: 8, InFlight: 2}
		if i >= 2 && i < 7 {
			p = loadgen.Point{At: p.At, InFlight: 16}
		}
		r.Series = append(r.Series, p)
	}
	return r
}

// TestAStallIsSeen: the page reports it at the top and marks it, and draws
// no latency where none was measured.
func TestAStallIsSeen(t *testing.T) {
	r := stalled(t)
	require.Equal(t, []band{{from: 0.4, to: 1.4}}, silences(r))
	html := pageOf(t, r)
	require.Less(t, strings.Index(html, "For about 1 s no reply came, from 0.4 s on"), strings.Index(html, "<svg"))
	require.Contains(t, html, `<rect class="band"`)
	require.NotContains(t, html, "NaN")
	c := curveOf(r, "p99", "c3", false, timeOf(func(p loadgen.Point) float64 { return p.P99 }))
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
	r.ErrorMessages = []loadgen.ErrorMessage{{Kind: "record_refused", Message: hostile, Count: 1, Example: loadgen.Example{Identifier: hostile}}}
	r.Keys = []loadgen.WrittenKeys{{Object: hostile, Field: hostile, First: hostile, Last: hostile}}
	r.Target.Objects = []loadgen.Share{{Name: hostile, Weight: 1}}
	r.Notes = []string{hostile}
	r.Target.Address = "https://<script>.example"
	html := pageOf(t, r)
	for _, c := range []string{"<script", "<img", "http://www", "\u202e", "\x1b", "\x00", "NaN"} { // nor another file
		require.NotContains(t, html, c)
	}
	for _, c := range []string{"&lt;script&gt;alert(1)&lt;/script&gt;" + `\u202e\x1b[31m\x00` + "&#34;&#39;", "prefers-color-scheme: dark", "@media print"} {
		require.Contains(t, html, c)
	}
	require.GreaterOrEqual(t, strings.Count(html, "<svg"), 4)
}

// TestARestOfAnInterval: the rate of a few milliseconds would be a spike.
func TestARestOfAnInterval(t *testing.T) {
	points := []loadgen.Point{{At: 0.2}, {At: 0.4}, {At: 0.41}}
	require.Len(t, wholeIntervals(points), 2)
	points[2].At = 0.55
	require.Len(t, wholeIntervals(points), 3)
	require.Empty(t, wholeIntervals(nil))
}

func TestVerdictOnThePage(t *testing.T) {
	limit, err := loadgen.ParseThreshold("p99>1s")
	require.NoError(t, err)
	broken := limit
	broken.Failed = true
	for want, change := range map[string]func(*loadgen.Result){
		"Every record was acknowledged":        func(*loadgen.Result) {},
		"No record was acknowledged: 9 errors": func(r *loadgen.Result) { r.Errors, r.Acknowledged = 9, 0 },
		"12 errors":                            func(r *loadgen.Result) { r.Errors = 12 },
		"Every limit was kept":                 func(r *loadgen.Result) { r.Thresholds = []loadgen.Threshold{limit} },
		"Every limit was kept, with 3 errors":  func(r *loadgen.Result) { r.Thresholds, r.Errors = []loadgen.Threshold{limit}, 3 },
		"A limit was broken: p99>1s":           func(r *loadgen.Result) { r.Thresholds = []loadgen.Threshold{limit, broken} },
		"Interrupted after 1 s":                func(r *loadgen.Result) { r.Ended, r.Seconds = "interrupted", 1 },
		"The rate was not reached: 80 of 100 requests/s": func(r *loadgen.Result) {
			r.Load.Mode, r.Load.Rate, r.RequestsPerSecond, r.Ended = "open", 100, 80, "duration"
		},
		"Nothing was answered":  func(r *loadgen.Result) { r.Requests = 0 },
		"No rate was confirmed": func(r *loadgen.Result) { r.Search = &loadgen.SearchResult{} },
	} {
		r := loaded(t, 1, 2)
		r.Requests, r.Errors = 2, 0
		change(r)
		got, _ := verdictText(r)
		require.Equal(t, want, got)
	}
}

// TestSearchOnThePage: how it came to its rate, and where the knee is.
func TestSearchOnThePage(t *testing.T) {
	r := loaded(t, 1, 2)
	r.Search = &loadgen.SearchResult{
		Goal: "p99=20ms", Rate: 90, RecordsPerSecond: 900, Confirmed: true, BatchSize: 10, Connections: 4, Knee: 4, ClosedMaximum: 110,
		Steps: []loadgen.SearchStep{
			{Kind: "closed", BatchSize: 10, Connections: 2, Reached: 60}, {Kind: "closed", BatchSize: 10, Connections: 4, Reached: 108},
			{Kind: "closed", BatchSize: 10, Connections: 8, Reached: 110}, {Kind: "closed", BatchSize: 20, Connections: 4, Reached: 70},
			{Kind: "double", Rate: 50, Reached: 50, Held: true}, {Kind: "double", Rate: 100, Reached: 97},
			{Kind: "bisect", Rate: 90, Reached: 90, Held: true}, {Kind: "confirm", Rate: 90, Reached: 90, Held: true},
		},
	}
	html := pageOf(t, r)
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
	require.Equal(t, "1.041 s", quantity.Time(1040.6))
	require.Equal(t, "994 ms", quantity.Time(994))
}

// TestLabelsKeepApart: of labels that would touch one another the later is left out.
func TestLabelsKeepApart(t *testing.T) {
	p := plot{ticks: []tickAt{{0, "first label"}, {0.01, "second label"}, {1, "last"}}, curves: []curve{{x: []float64{0, 1}, y: []float64{1, 2}}}}
	drawn := string(p.svg())
	require.Contains(t, drawn, "first label")
	require.NotContains(t, drawn, "second label")
	require.Contains(t, drawn, "last")
}

// pageOf is the page of a result.
func pageOf(t *testing.T, r *loadgen.Result) string {
	t.Helper()
	var page bytes.Buffer
	require.NoError(t, Write(&page, r))
	return page.String()
}

func TestAPageOfNothing(t *testing.T) {
	html := pageOf(t, loaded(t))
	require.NotContains(t, html, "NaN")
	require.NotContains(t, html, "Inf")
}

// TestThePageSaysWhatHappened on the way: pauses, and another speed.
func TestThePageSaysWhatHappened(t *testing.T) {
	r := loaded(t, 1, 2)
	require.NotContains(t, pageOf(t, r), "The declared speed")
	r.Notes = []string{"paused by hand after 0.2 s"}
	r.Declared = &loadgen.DeclaredInfo{BatchSize: 10, Parallel: 2, RecordsPerSecond: 1000, SpeedChanges: []loadgen.SpeedChange{{At: 0.5, BatchSize: 5, Parallel: 1, RecordsPerSecond: 200}}}
	html := pageOf(t, r)
	require.Contains(t, html, "paused by hand after")
	require.Contains(t, html, "The declared speed")
}

// TestAPageWithoutTimes: a target that refuses everything at once has no latency.
func TestAPageWithoutTimes(t *testing.T) {
	r := loaded(t, 1, 2)
	r.Acknowledged, r.Errors, r.FailedRequests, r.Latency, r.ServiceTime = 0, 2, 2, loadgen.Times{}, loadgen.Times{}
	verdict, good := verdictText(r)
	require.False(t, good)
	require.Contains(t, verdict, "No record was acknowledged")
	require.Contains(t, pageOf(t, r), "None: no request was answered with results.")
}

// TestPagesOfAService: a load on the REST API has calls and runs in the place of batches.
func TestPagesOfAService(t *testing.T) {
	r := loaded(t, 1, 2)
	r.Load.Scenario, r.Load.BatchSize, r.Errors, r.ErrorMessages = "trigger", 1, 0, nil
	r.Service = &loadgen.ServiceFigures{
		Calls: []loadgen.CallFigures{{Call: "POST /syncs/{id}/trigger", Requests: 4}, {Call: "GET /sync_runs/{id}", Requests: 4}},
		Runs:  &loadgen.RunFigures{Started: 4, Completed: 4},
	}
	html := pageOf(t, r)
	for _, words := range []string{"Load of the REST API (trigger)", "Calls of the API", "GET /sync_runs/{id}", "4 started: 4 completed", "Every reply was as it must be"} {
		require.Contains(t, html, words)
	}
	require.NotContains(t, html, "batches of")
	require.Contains(t, html, "None: every response has passed its checks.")
	require.Contains(t, comparedPage(t, r, r), "scenario trigger")

	r.Errors = 3
	for _, html := range []string{pageOf(t, r), comparedPage(t, r, r)} {
		require.Contains(t, html, "responses that did not pass their checks")
		require.NotContains(t, html, "records that were refused")
	}
}

// loaded is the result of a closed loop of a second, of one request every 10 ms, each
// with ten records of which nine were acknowledged, that took so many milliseconds.
func loaded(t *testing.T, milliseconds ...int64) *loadgen.Result {
	t.Helper()
	n := int64(len(milliseconds))
	r := &loadgen.Result{
		SchemaVersion: 1, Started: time.Unix(1_800_000_000, 0).UTC(), Seconds: 1, Ended: "duration",
		Load:     loadgen.LoadInfo{Mode: "closed", BatchSize: 10, Run: "r"},
		Requests: n, Records: 10 * n, Acknowledged: 9 * n, RequestsPerSecond: float64(n), RecordsPerSecond: float64(10 * n),
		Errors: n, ErrorsByKind: map[string]int64{"record_refused": n},
		ErrorMessages: []loadgen.ErrorMessage{{Kind: "record_refused", Message: "full", Count: n}},
	}
	const width = 100 * time.Millisecond
	h := histogram.New()
	buckets := map[time.Duration]*hdrhistogram.Histogram{}
	for i, ms := range milliseconds {
		took := time.Duration(ms) * time.Millisecond
		end := time.Duration(i)*10*time.Millisecond + took
		if buckets[end/width] == nil {
			buckets[end/width] = histogram.New()
		}
		histogram.Record(h, int64(took))
		histogram.Record(buckets[end/width], int64(took))
	}
	times := func(h *hdrhistogram.Histogram) loadgen.Times {
		if h.TotalCount() == 0 {
			return loadgen.Times{}
		}
		at := func(q float64) float64 { return histogram.Milliseconds(h.ValueAtQuantile(q)) }
		return loadgen.Times{
			Min: histogram.Milliseconds(h.Min()), Mean: h.Mean() / 1e6, P50: at(50), P75: at(75), P90: at(90), P95: at(95),
			P99: at(99), P999: at(99.9), P9999: at(99.99), Max: histogram.Milliseconds(h.Max()),
		}
	}
	for i := range time.Second / width {
		p := loadgen.Point{At: (time.Duration(i+1) * width).Seconds()}
		if b := buckets[time.Duration(i)]; b != nil {
			of := times(b)
			p.RequestsPerSecond, p.RecordsPerSecond = 10*float64(b.TotalCount()), 100*float64(b.TotalCount())
			p.P50, p.P90, p.P95, p.P99, p.Max, p.ServiceP50, p.ServiceP99 = of.P50, of.P90, of.P95, of.P99, of.Max, of.P50, of.P99
		}
		r.Series = append(r.Series, p)
	}
	r.Latency, r.ServiceTime = times(h), times(h)
	text, err := histogram.Encode(h)
	require.NoError(t, err)
	r.Histograms = loadgen.Histograms{Latency: text, ServiceTime: text}
	return r
}
