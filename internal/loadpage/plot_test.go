package loadpage

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/loadgen"
)

// TestLogarithmicAxis: round values around the drawn range, each with a label where
// there is room for all.
func TestLogarithmicAxis(t *testing.T) {
	times := func(y ...float64) plot {
		c := curve{name: "p99", class: "c1", y: y}
		for i := range y {
			c.x = append(c.x, float64(i))
		}
		return plot{log: true, curves: []curve{c}}
	}
	for _, tc := range []struct {
		y         []float64
		low, high float64
	}{
		{[]float64{3, 7, 40}, 2, 50}, {[]float64{1, 1000}, 1, 1000}, {[]float64{0.03, math.NaN(), 12}, 0.02, 20},
		{[]float64{5, 5}, 5, 10}, {[]float64{0, math.NaN()}, 1, 10}, {nil, 1, 10},
	} {
		low, high := times(tc.y...).decades()
		require.InDelta(t, tc.low, low, 1e-9, "%v", tc.y)
		require.InDelta(t, tc.high, high, 1e-9, "%v", tc.y)
	}
	labels := func(low, high, height float64) string {
		var words []string
		for _, tick := range logTicks(low, high, height) {
			words = append(words, tick.label)
		}
		return strings.Join(words, ",")
	}
	require.Equal(t, "2 ms,5 ms,10 ms,20 ms,50 ms", labels(2, 50, 200))
	require.Equal(t, "500 ms,1 s,2 s,5 s", labels(500, 5000, 200))
	require.Equal(t, "50 µs,0.1 ms,0.2 ms", labels(0.05, 0.2, 200))
	require.Equal(t, "1 ms,,,10 ms,,,100 ms,,,1 s", labels(1, 1000, 100), "no two labels touch")
	require.NotContains(t, string(times(0, 3, 40).svg()), "NaN")
	require.NotContains(t, string(times(0, 3, 40).svg()), "Inf")
}

// TestValuesCanBeRead: at each place all curves, and no more places than there is room
// for.
func TestValuesCanBeRead(t *testing.T) {
	p := timesOver(nil, "Latency", curve{name: "p50", class: "c1", x: []float64{1, 2}, y: []float64{3, math.NaN()}},
		curve{name: "p99 <b>", class: "c3", x: []float64{1, 2}, y: []float64{1200, 5}})
	drawn := string(p.svg())
	require.Equal(t, 2*len(frames), strings.Count(drawn, `class="hit"`))
	require.Contains(t, drawn, ">1 s</text>")
	require.Contains(t, drawn, `<text class="said c1" `)
	require.Contains(t, drawn, ">p50: 3 ms</text>")
	require.Contains(t, drawn, ">p99 &lt;b&gt;: 1.2 s</text>")
	require.Equal(t, len(frames), strings.Count(drawn, ">p50: "), "a gap has no value")

	long := curve{name: "records/s", class: "c1"}
	for i := range 5000 {
		long.x, long.y = append(long.x, float64(i)), append(long.y, float64(i))
	}
	places := overTime(nil, "Throughput", "records per second", long).places(60)
	require.Len(t, places, 60)
	require.Equal(t, []float64{0, 4999}, []float64{places[0], places[59]})
	for want, got := range map[string]string{
		"83 min 19 s": plot{timed: true}.placeText(4999), "2.4 s": plot{timed: true}.placeText(2.4),
		"99 %": plot{nines: true}.placeText(2), "step 4": plot{whole: true, xTitle: "step"}.placeText(4),
	} {
		require.Equal(t, want, got)
	}
}

// TestLiveCharts draws what there is, and reports what is missing.
func TestLive(t *testing.T) {
	load := loadgen.LoadInfo{Mode: "open", Rate: 100, BatchSize: 10, Stages: []loadgen.Stage{{Duration: time.Second, From: 100, To: 100}}}
	require.Empty(t, Live(load, nil))
	points := []loadgen.Point{{At: 1, InFlight: 2}, {At: 2, RequestsPerSecond: 90, RecordsPerSecond: 900, Asked: 100, InFlight: 1}}
	charts := Live(load, points)
	require.Len(t, charts, 4)
	require.Empty(t, charts[1].SVG)
	require.Contains(t, charts[1].Why, "None so far")
	require.Empty(t, charts[2].SVG)
	points = append(points, loadgen.Point{At: 3, RequestsPerSecond: 90, RecordsPerSecond: 900, Asked: 100, Errors: 4, P50: 1, P90: 2, P95: 3, P99: 4, Max: 5, ServiceP50: 1, ServiceP99: 3})
	for _, c := range Live(load, points) {
		require.Contains(t, string(c.SVG), `<svg class="small"`, c.Title)
		require.NotContains(t, string(c.SVG), "style=", c.Title)
		require.NotContains(t, string(c.SVG), `class="hit"`, c.Title)
		require.NotEmpty(t, c.Legend, c.Title)
	}
	// Older points were left out: the axis begins where the rest does.
	late := still(timesOver(nil, "", curve{x: []float64{500, 501}, y: []float64{1, 2}}))
	from, _, _ := late.extent()
	require.EqualValues(t, 500, from)
}
