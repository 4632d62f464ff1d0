package loadpage

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/loadgen"
)

// comparedPage is the page of two results, beyond 5 %.
func comparedPage(t *testing.T, before, after *loadgen.Result) string {
	t.Helper()
	var page bytes.Buffer
	require.NoError(t, WriteComparison(&page, before, after, 0.05))
	html := page.String()
	require.NotContains(t, html, "NaN")
	require.NotContains(t, html, "ZgotmplZ")
	require.NotRegexp(t, `(?i)<(script|link|img|iframe|object)|url\(|@import|src=`, html, "no script, no other file, no network")
	return html
}

// drawn are the classes of the lines in the plot with that title.
func drawn(t *testing.T, html, title string) (classes []string) {
	t.Helper()
	_, plot, found := strings.Cut(html, "<h2>"+title+" ")
	require.True(t, found, title)
	plot, _, _ = strings.Cut(plot, "</svg>")
	for _, part := range strings.Split(plot, `<path class="line `)[1:] {
		class, _, _ := strings.Cut(part, `"`)
		classes = append(classes, class)
	}
	return classes
}

func TestComparedPage(t *testing.T) {
	before, after := stalled(t), stalled(t)
	for i := range before.Series { // that one did not stall
		before.Series[i] = loadgen.Point{At: float64(i+1) / 5, RequestsPerSecond: 120, RecordsPerSecond: 1200, P50: 3, P99: 6, Max: 9, ServiceP99: 6, InFlight: 2}
	}
	before.RequestsPerSecond, after.Errors = 120, after.Errors+5
	before.Target.Objects, after.Target.Objects = []loadgen.Share{{Name: "contact"}}, []loadgen.Share{{Name: "contact"}}
	before.Target.Address, after.Target.Address = "https://a.example.com", "https://a.example.com"
	html := comparedPage(t, before, after)
	for _, title := range []string{"Throughput", "Latency over time, p50", "Latency over time, p99", "Latency by percentile", "Errors"} {
		require.Equal(t, "c3", drawn(t, html, title)[0], title)
		require.Equal(t, "c1", drawn(t, html, title)[1], title)
	}
	require.NotContains(t, html, "Service time by percentile", "in a closed loop it is the latency")
	require.NotContains(t, html, "Not the same load")
	require.Contains(t, html, `<p class="target">contact at https://a.example.com</p>`)
	require.Contains(t, html, `<rect class="stall c1"`)
	require.NotContains(t, html, `<rect class="stall c3"`)
	require.Contains(t, html, "no reply came, after")
	require.Contains(t, html, "For about 1 s no reply came, from 0.4 s on, in the run after")
	require.Regexp(t, `<tr><td>requests per second</td><td>120</td><td>4</td><td class="bad">-96\.7 % <em>worse</em></td></tr>`, html)

	after.Load.Mode, after.Load.Rate, after.Load.Stages = "open", 100, []loadgen.Stage{{From: 100, To: 100, Duration: time.Second}}
	html = comparedPage(t, before, after)
	require.Contains(t, html, "<li>mode: closed, then open</li>")
	require.Contains(t, html, "asked for, after")
	require.Equal(t, []string{"c3", "c1"}, drawn(t, html, "Service time by percentile"))
	before.Load = after.Load
	html = comparedPage(t, before, after)
	require.Contains(t, html, "</i>asked for</li>", "the same was asked for")
}

// TestComparedPageOfLittle: results of which there is little to draw.
func TestComparedPageOfLittle(t *testing.T) {
	empty := &loadgen.Result{}
	html := comparedPage(t, empty, empty)
	require.NotContains(t, html, "<svg")
	require.Contains(t, html, "No figure is worse or better by more than 5 %")
	require.Contains(t, html, "none")

	some := loaded(t, 1, 2, 3)
	some.Target.Objects = []loadgen.Share{{Name: "</h1><script>alert(1)</script>"}}
	html = comparedPage(t, empty, some)
	require.Equal(t, []string{"c1"}, drawn(t, html, "Latency by percentile"))
}

func TestComparedPageOfNothing(t *testing.T) {
	require.ErrorContains(t, WriteComparison(&bytes.Buffer{}, nil, nil, 0.05), "holds no results")
}

func TestComparedVerdict(t *testing.T) {
	for want, figures := range map[string][2]int{
		"No figure is worse or better by more than 5 %":     {0, 0},
		"1 figure is worse by more than 5 %, none better":   {1, 0},
		"2 figures are worse by more than 5 %, 1 better":    {2, 1},
		"3 figures are better by more than 5 %, none worse": {0, 3},
	} {
		c := &loadgen.Comparison{}
		for range figures[0] {
			c.Differences = append(c.Differences, loadgen.Difference{Worse: true})
		}
		for range figures[1] {
			c.Differences = append(c.Differences, loadgen.Difference{Better: true})
		}
		require.Equal(t, want, comparedText(c, 0.05))
	}
}
