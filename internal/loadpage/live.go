package loadpage

import "github.com/destkit/destkit/loadgen"

// Live are the plots of a run that goes on, from its moments. A pointer over
// them shows nothing: they are redrawn every second.
func Live(load loadgen.LoadInfo, series []loadgen.Point) []Chart {
	if len(series) == 0 {
		return nil
	}
	r := &loadgen.Result{Load: load, Series: series}
	for _, p := range series {
		r.Errors += p.Errors
		r.Latency.Max, r.ServiceTime.P50 = max(r.Latency.Max, p.Max), max(r.ServiceTime.P50, p.ServiceP50)
	}
	latency := Chart{Title: "Latency", Why: "None so far: no request was answered with results."}
	noErrors := "None so far: every record that was answered has one result, with success."
	if load.Scenario != "" {
		latency.Why = "None so far: no request was answered as it must be."
		noErrors = "None so far: every response has passed its checks."
	}
	if timed(r) {
		latency = charted("Of the requests that ended in each interval, from the moment at which they were to be sent.", still(timesOver(silences(r), "Latency",
			curveOf(r, "max", "c4", false, timeOf(func(p loadgen.Point) float64 { return p.Max })),
			curveOf(r, "p99", "c3", false, timeOf(func(p loadgen.Point) float64 { return p.P99 })),
			curveOf(r, "p90", "c2", false, timeOf(func(p loadgen.Point) float64 { return p.P90 })),
			curveOf(r, "p50", "c1", false, timeOf(func(p loadgen.Point) float64 { return p.P50 })))))
	}
	errors := Chart{Title: "Errors", Why: noErrors}
	if r.Errors > 0 {
		errors = charted(whyErrors(r), still(errorsPlot(r)))
	}
	return []Chart{charted(whyThroughput(r), still(throughputPlot(r))), latency, errors, charted(whyFlight, still(flightPlot(r)))}
}

// still is a plot without the values under a pointer, which are most of its bytes. Its x
// axis begins where its points do.
func still(p plot) plot {
	p.still = true
	for _, c := range p.curves {
		p.fromZero = p.fromZero && (len(c.x) < 2 || c.x[0] < 2*(c.x[1]-c.x[0]))
	}
	return p
}
