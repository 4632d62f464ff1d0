package loadpage

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"

	"github.com/destkit/destkit/internal/histogram"
	"github.com/destkit/destkit/loadgen"
)

// Chart is a plot on a page. SVG has two drawings, of which Style shows the one that fits the
// screen; "" where there is nothing to draw, with the reason in Why.
type Chart struct {
	Title, Unit, Why string
	SVG              template.HTML
	Legend           []Legend
}

// Legend is what a colour of a chart means. Class is that of its curve.
type Legend struct{ Name, Class string }

// charts are the plots of a result, in the order of the page.
func charts(r *loadgen.Result) []Chart {
	if r.Search != nil {
		list := slices.DeleteFunc([]Chart{searchChart(r.Search), kneeChart(r.Search)}, func(c Chart) bool { return c.SVG == "" })
		return append(list, timeCharts(r)...)
	}
	return timeCharts(r)
}

func timeCharts(r *loadgen.Result) []Chart {
	if len(r.Series) == 0 {
		return nil
	}
	shown := *r
	shown.Series = wholeIntervals(r.Series)
	r = &shown
	latency := []Chart{{Title: "Latency", Why: "None: no request was answered with results."}}
	if timed(r) {
		latency = []Chart{latencyChart(r), percentileChart(r)}
	}
	return slices.Concat([]Chart{charted(whyThroughput(r), throughputPlot(r))}, latency, []Chart{errorsChart(r), charted(whyFlight, flightPlot(r))})
}

// wholeIntervals leaves a short rest of an interval out at the end: its rate is
// that of the last replies alone.
func wholeIntervals(points []loadgen.Point) []loadgen.Point {
	n := len(points)
	if n > 2 && points[n-1].At-points[n-2].At < points[0].At/2 {
		return points[:n-1]
	}
	return points
}

// silences are the times without any reply though requests were under way,
// where they are much longer than a request usually takes: there the target
// stood still.
func silences(r *loadgen.Result) (list []band) {
	long := max(4*r.ServiceTime.P50/1000, 0.3)
	from, before := -1.0, 0.0
	for i, p := range append(slices.Clone(r.Series), loadgen.Point{RequestsPerSecond: 1}) {
		silent := p.RequestsPerSecond == 0 && p.Errors == 0 && p.InFlight > 0
		switch {
		case silent && from < 0:
			from = before
		case !silent && from >= 0:
			if i > 0 && before-from >= long {
				list = append(list, band{from: from, to: before})
			}
			from = -1
		}
		before = p.At
	}
	return list
}

// silenceText describes the longest silence; "" without one.
func silenceText(r *loadgen.Result) string {
	var longest band
	for _, s := range silences(r) {
		if s.to-s.from > longest.to-longest.from {
			longest = s
		}
	}
	if longest.to == 0 {
		return ""
	}
	return fmt.Sprintf("For about %.2g s no reply came, from %.3g s on", longest.to-longest.from, longest.from)
}

func curveOf(r *loadgen.Result, name, class string, area bool, y func(loadgen.Point) float64) curve {
	c := curve{name: name, class: class, area: area}
	for _, p := range r.Series {
		c.x, c.y = append(c.x, p.At), append(c.y, y(p))
	}
	return c
}

// timeOf leaves a gap where no request was answered with results.
func timeOf(y func(loadgen.Point) float64) func(loadgen.Point) float64 {
	return func(p loadgen.Point) float64 {
		if p.Max == 0 {
			return math.NaN()
		}
		return y(p)
	}
}

func charted(why string, p plot) Chart {
	c := Chart{Title: p.title, Unit: p.unit, Why: why, SVG: p.svg()}
	for _, k := range p.curves {
		c.Legend = append(c.Legend, Legend{k.name, k.class})
	}
	for _, b := range p.bands {
		if l := (Legend{cmp.Or(b.name, "no reply came"), b.look()}); !slices.Contains(c.Legend, l) {
			c.Legend = append(c.Legend, l)
		}
	}
	return c
}

// overTime is a plot of the series.
func overTime(bands []band, title, unit string, curves ...curve) plot {
	return plot{title: title, unit: unit, xTitle: "time since the start", timed: true, fromZero: true, curves: curves, bands: bands}
}

// timesOver is a plot of times over time. Its axis is logarithmic: half of the requests
// and the slowest of them are often a hundred times apart.
func timesOver(bands []band, title string, curves ...curve) plot {
	p := overTime(bands, title, logUnit, curves...)
	p.log = true
	return p
}

// logUnit is the axis in the heading of a plot of times.
const logUnit = "milliseconds, logarithmic"

// throughput is what a load is about: requests of the REST API, or records.
func throughput(r *loadgen.Result) func(loadgen.Point) float64 {
	if r.Load.Scenario != "" {
		return func(p loadgen.Point) float64 { return p.RequestsPerSecond }
	}
	return func(p loadgen.Point) float64 { return p.AcknowledgedPerSecond }
}

func sent(p loadgen.Point) float64 { return p.RecordsPerSecond }

// asked is the target rate of a run; without points where it had none.
func asked(r *loadgen.Result, name, class string) curve {
	if !(r.Load.Rate > 0 && r.Load.Mode == "open" || r.Load.Mode == "as-declared") {
		return curve{name: name, class: class}
	}
	return curveOf(r, name, class, false, func(p loadgen.Point) float64 { return p.Asked * float64(r.Load.BatchSize) })
}

// whyThroughput is what the curves count: a load on the REST API has no records.
func whyThroughput(r *loadgen.Result) string {
	if r.Load.Scenario != "" {
		return "Of the requests that ended in each interval, also of those that failed."
	}
	return "Records with success, of the requests that ended in each interval."
}

func throughputPlot(r *loadgen.Result) plot {
	p := overTime(silences(r), "Throughput", "records per second", curveOf(r, "acknowledged", "c1", true, throughput(r)))
	switch {
	case r.Load.Scenario != "":
		p.unit = "requests per second"
		p.curves[0].name = "requests/s"
	case r.Acknowledged < r.Records:
		p.curves = append(p.curves, curveOf(r, "sent", "c3", false, sent))
	case r.Load.BatchSize == 1:
		p.unit, p.curves[0].name = "requests per second", "requests/s"
	}
	if rate := asked(r, "asked for", "c0"); len(rate.x) > 0 {
		p.curves = append(p.curves, rate)
	}
	return p
}

func latencyChart(r *loadgen.Result) Chart {
	return charted("From the moment at which a request was to be sent. Where it lies above the service time, requests waited to be sent.", timesOver(silences(r),
		"Latency over time",
		curveOf(r, "max", "c4", false, timeOf(func(p loadgen.Point) float64 { return p.Max })),
		curveOf(r, "p99", "c3", false, timeOf(func(p loadgen.Point) float64 { return p.P99 })),
		curveOf(r, "p95", "c2", false, timeOf(func(p loadgen.Point) float64 { return p.P95 })),
		curveOf(r, "p50", "c1", false, timeOf(func(p loadgen.Point) float64 { return p.P50 })),
		curveOf(r, "p99 of service time", "c0", false, timeOf(func(p loadgen.Point) float64 { return p.ServiceP99 })),
	))
}

// percentilePlot has the nines along x, at equal distances. Histograms that are
// empty or cannot be read have no curve.
func percentilePlot(title string, curves ...curve) plot {
	p := plot{title: title, unit: logUnit, log: true, nines: true, xTitle: "share of the requests that took no longer"}
	for _, nines := range []struct {
		p     float64
		label string
	}{{0, "0 %"}, {50, "50 %"}, {75, "75 %"}, {90, "90 %"}, {99, "99 %"}, {99.9, "99.9 %"}, {99.99, "99.99 %"}, {99.999, "99.999 %"}, {99.9999, "99.9999 %"}} {
		p.ticks = append(p.ticks, tickAt{nineScale(nines.p), nines.label})
	}
	p.curves = slices.DeleteFunc(curves, func(c curve) bool { return len(c.x) == 0 })
	return p
}

// percentilesOf is a curve of a histogram, as deep as its requests allow.
func percentilesOf(text, name, class string) curve {
	c := curve{name: name, class: class}
	h, err := histogram.Decode(text)
	if err != nil || h.TotalCount() == 0 {
		return c
	}
	deepest := 1 - 1/float64(h.TotalCount()+1)
	for x := 0.0; x <= nineScale(100*deepest); x += 0.02 {
		c.x, c.y = append(c.x, x), append(c.y, histogram.Milliseconds(histogram.At(h, 100*(1-math.Pow(10, -x)))))
	}
	return c
}

const whyPercentiles = "How long the slowest requests took: at 99 %, one in a hundred was slower."

func percentileChart(r *loadgen.Result) Chart {
	return charted(whyPercentiles, percentilePlot("Latency by percentile",
		percentilesOf(r.Histograms.Latency, "latency", "c1"), percentilesOf(r.Histograms.ServiceTime, "service time", "c0")))
}

// nineScale places a percentile: 0, 90, 99, 99.9 at 0, 1, 2, 3.
func nineScale(percent float64) float64 { return -math.Log10(1 - percent/100) }

func errorsChart(r *loadgen.Result) Chart {
	if r.Errors == 0 {
		if r.Load.Scenario != "" {
			return Chart{Title: "Errors", Why: "None: every response has passed its checks."}
		}
		return Chart{Title: "Errors", Why: "None: every record has one result, with success."}
	}
	return charted(whyErrors(r), errorsPlot(r))
}

// whyErrors is what counts as an error: of a load on the REST API, which has no
// records, or on a destination.
func whyErrors(r *loadgen.Result) string {
	if r.Load.Scenario != "" {
		return "Failed requests, and responses that did not pass their checks."
	}
	return "Failed requests, and records that were refused or got no result."
}

func errorsPlot(r *loadgen.Result) plot {
	return overTime(silences(r), "Errors", "in each interval", curveOf(r, "errors", "c4", true, func(p loadgen.Point) float64 { return float64(p.Errors) }))
}

const whyFlight = "Requests that were sent and not answered, at the end of each interval."

func flightPlot(r *loadgen.Result) plot {
	return overTime(silences(r), "In flight", "requests", curveOf(r, "in flight", "c2", true, func(p loadgen.Point) float64 { return float64(p.InFlight) }))
}

// searchChart shows how the search came to its rate, step by step.
func searchChart(s *loadgen.SearchResult) Chart {
	held, broke := curve{name: "the goal held", class: "c2", dots: true}, curve{name: "the goal broke", class: "c4", dots: true}
	reached := curve{name: "reached", class: "c0"}
	steps := 0.0
	for _, step := range s.Steps {
		if step.Kind == "closed" {
			continue
		}
		steps++
		into := &broke
		if step.Held {
			into = &held
		}
		into.x, into.y = append(into.x, steps), append(into.y, step.Rate)
		reached.x, reached.y = append(reached.x, steps), append(reached.y, step.Reached)
	}
	if steps == 0 {
		return Chart{}
	}
	return charted("Each dot is a rate that was tried: doubled until the goal "+s.Goal+" broke, then bisected, then confirmed.", plot{
		title: "The search", unit: "requests per second", xTitle: "step", whole: true, fromZero: true, curves: []curve{reached, held, broke},
	})
}

// kneeChart shows what more connections bring, in the closed loops that a search
// begins with.
func kneeChart(s *loadgen.SearchResult) Chart {
	var c curve
	size := 0
	for _, step := range s.Steps {
		// Other batch sizes are tried after the connections.
		if step.Kind != "closed" || (size != 0 && step.BatchSize != size) {
			continue
		}
		size = step.BatchSize
		if at := slices.Index(c.x, float64(step.Connections)); at >= 0 {
			c.y[at] = max(c.y[at], step.Reached)
			continue
		}
		c.x, c.y = append(c.x, float64(step.Connections)), append(c.y, step.Reached)
	}
	if len(c.x) < 2 {
		return Chart{}
	}
	c.name, c.class, c.area = fmt.Sprintf("closed loop, batches of %d", size), "c1", true
	p := plot{title: "The knee", unit: "requests per second", xTitle: "connections", whole: true, fromZero: true, curves: []curve{c}}
	if at := slices.Index(c.x, float64(s.Knee)); at >= 0 {
		p.curves = append(p.curves, curve{name: fmt.Sprintf("knee, at %d", s.Knee), class: "c3", dots: true, x: c.x[at : at+1], y: c.y[at : at+1]})
	}
	return charted("More connections than at the knee only wait for each other.", p)
}
