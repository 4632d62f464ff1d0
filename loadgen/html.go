package loadgen

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"
)

//go:embed html/load.gohtml
var pageText string

var page = template.Must(template.New("load").Funcs(template.FuncMap{
	"grouped": grouped, "rate": rateText, "ms": msText, "percent": func(v float64) string { return fmt.Sprintf("%.3g %%", v*100) },
	"join": func(s []Share) string { return strings.Join(names(s), ", ") },
}).Parse(pageText))

// chart is a plot on the page with what its colours mean.
type chart struct {
	Title, Unit, Why string
	SVG              template.HTML
	Legend           []legend
}

type legend struct{ Name, Class string }

// view is what the page shows.
type view struct {
	*Result
	How     string
	When    string
	Lost    float64
	Charts  []chart
	Times   []namedTimes
	Verdict string
	Good    bool
}

type namedTimes struct {
	Name string
	Times
}

// WriteHTML writes the report as one page that needs no other file, no script
// and no network.
func WriteHTML(w io.Writer, r *Result) error {
	v := view{
		Result: r, How: howText(r), When: r.Started.Format("2 January 2006, 15:04:05 UTC"), Lost: shares["errors"](r),
		Times: []namedTimes{{"latency", r.Latency}, {"service time", r.ServiceTime}},
	}
	v.Verdict, v.Good = verdictText(r)
	v.Charts = []chart{throughputChart(r), latencyChart(r), percentileChart(r), errorsChart(r), flightChart(r)}
	if err := page.Execute(w, v); err != nil {
		return fmt.Errorf("write HTML: %w", err)
	}
	return nil
}

func howText(r *Result) string {
	switch r.Load.Mode {
	case "closed":
		return fmt.Sprintf("closed loop, %d connections", r.Load.Connections)
	case "as-declared":
		return "exactly as fast as the destination declares"
	case "search":
		return "search of the highest rate"
	}
	return fmt.Sprintf("open loop, %s requests/s asked for, %d connections", rateText(r.Load.Rate), r.Load.Connections)
}

// verdictText is the first sentence that a reader wants.
func verdictText(r *Result) (string, bool) {
	for _, t := range r.Thresholds {
		if t.Failed {
			return "A limit was broken: " + t.Text, false
		}
	}
	switch {
	case r.Ended == "too many errors":
		return "Stopped: too many errors", false
	case r.Search != nil && r.Search.Confirmed:
		return fmt.Sprintf("%s requests/s, %s records/s hold %s", rateText(r.Search.Rate), rateText(r.Search.RecordsPerSecond), r.Search.Goal), true
	case r.Search != nil:
		return "No rate was confirmed", false
	case r.Errors > 0:
		return grouped(r.Errors) + " errors", false
	case len(r.Thresholds) > 0:
		return "Every limit was kept", true
	}
	return "Every record was acknowledged", true
}

func series(r *Result, y func(Point) float64) (xs, ys []float64) {
	for _, p := range r.Series {
		xs, ys = append(xs, p.At), append(ys, y(p))
	}
	return xs, ys
}

func curveOf(r *Result, name, class string, area bool, y func(Point) float64) curve {
	xs, ys := series(r, y)
	return curve{name: name, class: class, x: xs, y: ys, area: area}
}

func charted(why string, p plot) chart {
	c := chart{Title: p.title, Unit: p.unit, Why: why, SVG: p.svg()}
	for _, k := range p.curves {
		c.Legend = append(c.Legend, legend{k.name, k.class})
	}
	return c
}

func throughputChart(r *Result) chart {
	p := plot{title: "Throughput", unit: "records per second", xUnit: "s", fromZero: true,
		curves: []curve{curveOf(r, "records/s", "c1", true, func(p Point) float64 { return p.RecordsPerSecond })}}
	if r.Load.BatchSize == 1 {
		p.unit, p.curves[0].name = "requests per second", "requests/s"
	}
	if r.Load.Rate > 0 && r.Load.Mode == "open" || r.Load.Mode == "as-declared" {
		s := newSchedule(r.Load.Stages, Burst{})
		p.curves = append(p.curves, curveOf(r, "asked for", "c0", false, func(p Point) float64 {
			return s.rateAt(int64(p.At*1e9)-1) * float64(r.Load.BatchSize)
		}))
	}
	return charted("What came back in each interval.", p)
}

func latencyChart(r *Result) chart {
	p := plot{title: "Latency over time", unit: "milliseconds", xUnit: "s", fromZero: true, curves: []curve{
		curveOf(r, "max", "c4", false, func(p Point) float64 { return p.Max }),
		curveOf(r, "p99", "c3", false, func(p Point) float64 { return p.P99 }),
		curveOf(r, "p95", "c2", false, func(p Point) float64 { return p.P95 }),
		curveOf(r, "p50", "c1", false, func(p Point) float64 { return p.P50 }),
		curveOf(r, "p99 of service time", "c0", false, func(p Point) float64 { return p.ServiceP99 }),
	}}
	return charted("From the moment at which a request was to be sent. Where it lies above the service time, requests waited for the target.", p)
}

// percentileChart has the nines along x, at equal distances.
func percentileChart(r *Result) chart {
	p := plot{title: "Latency by percentile", unit: "milliseconds"}
	for _, nines := range []struct {
		p     float64
		label string
	}{{0, "0 %"}, {50, "50 %"}, {75, "75 %"}, {90, "90 %"}, {99, "99 %"}, {99.9, "99.9 %"}, {99.99, "99.99 %"}, {99.999, "99.999 %"}} {
		p.ticks = append(p.ticks, tickAt{nineScale(nines.p), nines.label})
	}
	for _, h := range []struct{ name, class, text string }{{"latency", "c1", r.Histograms.Latency}, {"service time", "c0", r.Histograms.ServiceTime}} {
		histogram, err := decodeHistogram(h.text)
		if err != nil || histogram.TotalCount() == 0 {
			continue
		}
		c := curve{name: h.name, class: h.class}
		deepest := 1 - 1/float64(histogram.TotalCount()+1)
		for x := 0.0; x <= nineScale(100*deepest); x += 0.02 {
			c.x, c.y = append(c.x, x), append(c.y, milliseconds(histogram.ValueAtQuantile(100*(1-math.Pow(10, -x)))))
		}
		p.curves = append(p.curves, c)
	}
	return charted("How long the slowest requests took: at 99 %, one in a hundred was slower.", p)
}

// nineScale places a percentile: 0, 90, 99, 99.9 at 0, 1, 2, 3.
func nineScale(percent float64) float64 { return -math.Log10(1 - percent/100) }

func errorsChart(r *Result) chart {
	if r.Errors == 0 {
		return chart{Title: "Errors", Why: "None: every record has one result, with success."}
	}
	return charted("Failed requests, and records that were refused or got no result.", plot{
		title: "Errors", unit: "in each interval", xUnit: "s", fromZero: true,
		curves: []curve{curveOf(r, "errors", "c4", true, func(p Point) float64 { return float64(p.Errors) })},
	})
}

func flightChart(r *Result) chart {
	return charted("Requests that were sent and not answered, at the end of each interval.", plot{
		title: "In flight", unit: "requests", xUnit: "s", fromZero: true,
		curves: []curve{curveOf(r, "in flight", "c2", true, func(p Point) float64 { return float64(p.InFlight) })},
	})
}

// SortedKinds lists the kinds of errors, the most frequent first.
func (r *Result) SortedKinds() []string {
	var kinds []string
	for k := range r.ErrorsByKind {
		kinds = append(kinds, k)
	}
	sort.Slice(kinds, func(i, j int) bool {
		if a, b := r.ErrorsByKind[kinds[i]], r.ErrorsByKind[kinds[j]]; a != b {
			return a > b
		}
		return kinds[i] < kinds[j]
	})
	return kinds
}

func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

func rateText(v float64) string {
	if v >= 100 {
		return grouped(int64(v + 0.5))
	}
	return fmt.Sprintf("%.3g", v)
}

func msText(ms float64) string {
	switch {
	case ms >= 1000:
		return time.Duration(ms * 1e6).Round(10 * time.Millisecond).String()
	case ms >= 100:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.3g ms", ms)
}
