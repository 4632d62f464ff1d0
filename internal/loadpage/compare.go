package loadpage

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen"
)

// side is one of the two runs of a comparison, in its colour.
type side struct {
	*loadgen.Result
	Name, Class, How, When, Silence string
}

func newSide(r *loadgen.Result, name, class string) side {
	return side{Result: r, Name: name, Class: class, How: howText(r), When: whenText(r), Silence: silenceText(r)}
}

// comparisonView is what the page of a comparison shows.
type comparisonView struct {
	*loadgen.Comparison
	Title, Verdict string
	Sides          []side
	Tiles          []comparedTile
	Charts         []Chart
	Facts          []comparedFact
}

// comparedTile is a figure that is looked at first.
type comparedTile struct {
	loadgen.Difference
	Label string
}

// comparedFact is a fact about a run other than its measurements.
type comparedFact struct{ Name, Before, After string }

// WriteComparison compares two results as Compare does, and writes one page in the
// manner of Write: the curves of both runs in one plot each, and every figure of both.
func WriteComparison(w io.Writer, before, after *loadgen.Result, tolerance float64) error {
	if before == nil || after == nil {
		return fmt.Errorf("write HTML: the comparison holds no results")
	}
	c := loadgen.Compare(before, after, tolerance)
	sides := []side{newSide(before, "before", "c3"), newSide(after, "after", "c1")}
	v := comparisonView{
		Comparison: c, Title: oneOrBoth(targetText(before), targetText(after)), Verdict: comparedText(c, tolerance),
		Sides: sides, Tiles: comparedTiles(c), Charts: comparisonCharts(sides), Facts: comparedFacts(before, after),
	}
	if err := pages().ExecuteTemplate(w, "compare.gohtml", v); err != nil {
		return fmt.Errorf("write HTML: %w", err)
	}
	return nil
}

func targetText(r *loadgen.Result) string {
	return r.Subject() + " at " + r.Target.Address
}

func oneOrBoth(before, after string) string {
	if before == after {
		return before
	}
	return before + ", then " + after
}

// comparedText is the first sentence that a reader wants.
func comparedText(c *loadgen.Comparison, tolerance float64) string {
	worse, better := 0, 0
	for _, d := range c.Differences {
		worse, better = worse+b2i(d.Worse), better+b2i(d.Better)
	}
	by := fmt.Sprintf("by more than %.3g %%", 100*tolerance)
	switch {
	case worse > 0 && better > 0:
		return fmt.Sprintf("%s worse %s, %d better", figuresAre(worse), by, better)
	case worse > 0:
		return fmt.Sprintf("%s worse %s, none better", figuresAre(worse), by)
	case better > 0:
		return fmt.Sprintf("%s better %s, none worse", figuresAre(better), by)
	}
	return "No figure is worse or better " + by
}

func figuresAre(figures int) string {
	return quantity.Count(figures, "figure") + quantity.Verb(figures, " is", " are")
}

// comparedTiles are the figures at the top, under the names that a reader has for them.
func comparedTiles(c *loadgen.Comparison) (list []comparedTile) {
	for _, tile := range []struct{ name, label string }{
		{"records acknowledged per second", "records acknowledged per second"}, {"requests per second", "requests per second"},
		{"latency p50", "latency, half of the requests"}, {"latency p99", "latency, 99 of 100"}, {"errors", "errors"},
	} {
		if at := slices.IndexFunc(c.Differences, func(d loadgen.Difference) bool { return d.Name == tile.name }); at >= 0 {
			list = append(list, comparedTile{c.Differences[at], tile.label})
		}
	}
	return list
}

// comparisonCharts draw both runs over each other, each in its colour. A plot of
// which neither run has anything is left out.
func comparisonCharts(sides []side) (list []Chart) {
	var stalls []band
	for i := range sides {
		shown := *sides[i].Result
		shown.Series = wholeIntervals(shown.Series)
		sides[i].Result = &shown
		for _, s := range silences(&shown) {
			stalls = append(stalls, band{s.from, s.to, "no reply came, " + sides[i].Name, "stall " + sides[i].Class})
		}
	}
	over := func(why string, p plot, area bool, y func(loadgen.Point) float64) {
		for _, s := range sides {
			p.curves = append(p.curves, curveOf(s.Result, s.Name, s.Class, area, y))
		}
		list = append(list, charted(why, p))
	}
	if slices.ContainsFunc(sides, func(s side) bool { return len(s.Series) > 0 }) {
		list = append(list, comparedThroughput(sides, stalls))
		if timed(sides[0].Result) || timed(sides[1].Result) {
			over("Half of the requests took no longer, from the moment at which they were to be sent.",
				timesOver(stalls, "Latency over time, p50"), false, timeOf(func(p loadgen.Point) float64 { return p.P50 }))
			over("One in a hundred took longer.", timesOver(stalls, "Latency over time, p99"), false, timeOf(func(p loadgen.Point) float64 { return p.P99 }))
		}
	}
	list = append(list, comparedPercentiles(sides)...)
	if sides[0].Errors+sides[1].Errors > 0 && len(list) > 0 {
		over(whyErrors(sides[0].Result), overTime(stalls, "Errors", "in each interval"), false,
			func(p loadgen.Point) float64 { return float64(p.Errors) })
	}
	return list
}

func comparedThroughput(sides []side, stalls []band) Chart {
	p := overTime(stalls, "Throughput", "acknowledged records per second")
	var wanted []curve
	for _, s := range sides {
		p.curves = append(p.curves, curveOf(s.Result, s.Name, s.Class, s.Name == "after", throughput(s.Result)))
		if rate := asked(s.Result, "asked for, "+s.Name, s.Class+" dashed"); len(rate.x) > 0 {
			wanted = append(wanted, rate)
		}
	}
	if sides[0].Load.Scenario != "" || sides[0].Load.BatchSize == 1 && sides[1].Load.BatchSize == 1 {
		p.unit = "requests per second"
	}
	if len(wanted) == 2 && slices.Equal(wanted[0].y, wanted[1].y) {
		wanted = wanted[1:]
		wanted[0].name, wanted[0].class = "asked for", "c0"
	}
	p.curves = append(p.curves, wanted...)
	return charted(whyThroughput(sides[0].Result), p)
}

// comparedPercentiles are those of the latency and, where it may differ from that,
// of the service time.
func comparedPercentiles(sides []side) (list []Chart) {
	var latency, service []curve
	open := false
	for _, s := range sides {
		open = open || s.Load.Mode != "closed"
		latency = append(latency, percentilesOf(s.Histograms.Latency, s.Name, s.Class))
		service = append(service, percentilesOf(s.Histograms.ServiceTime, s.Name, s.Class))
	}
	plots := []plot{percentilePlot("Latency by percentile", latency...)}
	if open {
		plots = append(plots, percentilePlot("Service time by percentile", service...))
	}
	for _, p := range plots {
		if len(p.curves) > 0 {
			list = append(list, charted(whyPercentiles, p))
		}
	}
	return list
}

// comparedFacts are those that differ, and a few that a reader wants in any case.
func comparedFacts(before, after *loadgen.Result) (list []comparedFact) {
	for _, fact := range []struct {
		name   string
		always bool
		of     func(*loadgen.Result) string
	}{
		{"target", true, targetText},
		{"load", true, howText},
		{"batches of", true, func(r *loadgen.Result) string {
			if r.Service != nil {
				return ""
			}
			return fmt.Sprint(r.Load.BatchSize)
		}},
		{"scenario", false, func(r *loadgen.Result) string { return r.Load.Scenario }},
		{"operations", true, func(r *loadgen.Result) string { return namesOf(r.Load.Operations) }},
		{"records", false, func(r *loadgen.Result) string { return r.Load.Records }},
		{"client", false, func(r *loadgen.Result) string { return r.Load.Client }},
		{"started", true, whenText},
		{"seconds", true, func(r *loadgen.Result) string { return fmt.Sprintf("%.4g", r.Seconds) }},
		{"requests", true, func(r *loadgen.Result) string { return quantity.Grouped(r.Requests) }},
		{"records sent", true, func(r *loadgen.Result) string { return quantity.Grouped(r.Records) }},
		{"ended by", false, func(r *loadgen.Result) string { return r.Ended }},
		{"seed", false, func(r *loadgen.Result) string { return fmt.Sprint(r.Load.Seed) }},
		{"run", true, func(r *loadgen.Result) string { return r.Load.Run }},
		{"processors of the generator", false, func(r *loadgen.Result) string { return fmt.Sprint(r.Generator.CPUs) }},
		{"limit of the generator", false, func(r *loadgen.Result) string { return strings.Join(r.Generator.Reasons, "; ") }},
		{"written by", false, func(r *loadgen.Result) string { return r.Tool }},
	} {
		f := comparedFact{fact.name, fact.of(before), fact.of(after)}
		if fact.always && f.Before+f.After != "" || f.Before != f.After {
			list = append(list, f)
		}
	}
	return list
}
