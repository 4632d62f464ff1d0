package loadgen

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/quantity"
)

// Difference is one figure of two results.
type Difference struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit,omitempty"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	// Change is the share by which After is more than Before; 0 where Before is 0.
	Change float64 `json:"change"`
	// Tolerance is the share by which it may change: as given, or more where two equal loads
	// differ by as much.
	Tolerance float64 `json:"tolerance"`
	// Worse and Better say that the change is beyond the tolerance, and which way.
	Worse  bool `json:"worse"`
	Better bool `json:"better"`
	// NotComparable is why the two figures are not of the same thing, "" where they
	// are. Such a figure is neither worse nor better.
	NotComparable string `json:"not_comparable,omitempty"`
}

// Verdict is "worse", "better", "not comparable" or, within the tolerance, "".
func (d Difference) Verdict() string {
	switch {
	case d.NotComparable != "":
		return "not comparable"
	case d.Worse:
		return "worse"
	case d.Better:
		return "better"
	}
	return ""
}

// ChangeText is the change in words, such as "+4.0 %"; "new" where nothing was
// before, and "" where nothing is now either.
func (d Difference) ChangeText() string {
	switch {
	case d.Before != 0:
		return fmt.Sprintf("%+.1f %%", d.Change*100)
	case d.After != 0:
		return "new"
	}
	return ""
}

// Comparison is two results side by side.
type Comparison struct {
	Differences []Difference `json:"differences"`
	// Apart lists what the two runs did not have in common. Where that is the load
	// itself, throughput and times are not of the same thing; another or a slower
	// machine is only said.
	Apart []string `json:"apart,omitempty"`
	Worse bool     `json:"worse"`

	tolerance float64
	machine   float64 // see machineRatio
	busy      bool    // the machine, in both runs
}

// NotComparable lists the reasons why figures are not comparable, each once; none
// when all figures are.
func (c *Comparison) NotComparable() []string {
	var reasons []string
	for _, d := range c.Differences {
		if d.NotComparable != "" && !slices.Contains(reasons, d.NotComparable) {
			reasons = append(reasons, d.NotComparable)
		}
	}
	return reasons
}

// Compare puts two results side by side. tolerance is the share by which a figure may
// change at least without being called worse or better, such as 0.05. Rates, the mean, p50
// and p90 may change by up to mostSpread, and p99 by any share, where their series show that
// equal loads would. The maximum and p99.9 are of so few requests that they only inform.
func Compare(before, after *Result, tolerance float64) *Comparison {
	c := &Comparison{Differences: []Difference{}, tolerance: tolerance}
	apart := func(what string, a, b any) {
		if x, y := fmt.Sprint(a), fmt.Sprint(b); x != y {
			c.Apart = append(c.Apart, fmt.Sprintf("%s: %s, then %s", what, x, y))
		}
	}
	apart("mode", before.Load.Mode, after.Load.Mode)
	apart("scenario", scenarioText(before), scenarioText(after))
	apart("batch size", before.Load.BatchSize, after.Load.BatchSize)
	apart("connections", before.Load.Connections, after.Load.Connections)
	apart("operations", names(before.Load.Operations), names(after.Load.Operations))
	apart("objects", names(before.Target.Objects), names(after.Target.Objects))
	apart("rate", fmt.Sprintf("%.6g", before.Load.Rate), fmt.Sprintf("%.6g", after.Load.Rate))
	apart("client", before.Load.Client, after.Load.Client)
	load := ""
	if len(c.Apart) > 0 {
		load = "not the same load: " + strings.Join(c.Apart, "; ")
	}
	apart("processors", before.Generator.CPUs, after.Generator.CPUs)
	c.busy = before.Generator.busy() && after.Generator.busy()
	switch c.machine = machineRatio(before, after); {
	case c.machine > 1:
		c.Apart = append(c.Apart, fmt.Sprintf("the generator needed %.0f %% more processor time for a request, so rates and times that are worse by as much are not comparable", 100*(c.machine-1)))
	case c.machine < 1:
		c.Apart = append(c.Apart, fmt.Sprintf("the generator needed %.0f %% less processor time for a request, so rates and times that are not better may be worse", 100*(1-c.machine)))
	}
	times := load
	for _, side := range []struct {
		name   string
		result *Result
	}{{"first", before}, {"second", after}} {
		if times == "" && side.result.Latency == (Times{}) {
			times = "the " + side.name + " load has no complete reply to measure"
		}
	}

	half := -1 // p50 of a busy machine is the time of either of two crowds, so that the mean says more
	if c.busy {
		half = 0
	}
	steady := func(figure func(Point) float64) float64 { return min(spread(before, after, figure), mostSpread) }
	c.add(load, +1, "requests per second", "", before.RequestsPerSecond, after.RequestsPerSecond, steady(func(p Point) float64 { return p.RequestsPerSecond }))
	lost := "requests failed"
	if before.Service == nil || after.Service == nil {
		lost = "records lost"
		c.add(load, +1, "records acknowledged per second", "", before.AcknowledgedPerSecond, after.AcknowledgedPerSecond, steady(func(p Point) float64 { return p.AcknowledgedPerSecond }))
		c.add(load, 0, "records sent per second", "", before.RecordsPerSecond, after.RecordsPerSecond)
	}
	c.add("", -1, lost, "%", 100*before.LostShare(), 100*after.LostShare())
	c.add(load, -1, "errors", "", float64(before.Errors), float64(after.Errors))
	if a, b := before.Verification, after.Verification; a != nil || b != nil {
		reason := ""
		if a == nil || b == nil {
			reason = "only one of the two loads was verified"
		}
		x, y := before.verification(), after.verification()
		c.add(reason, 0, "keys verified", "", float64(x.Verified), float64(y.Verified))
		c.add(reason, -1, "keys lost, wrong or doubled", "", float64(x.Findings()), float64(y.Findings()))
	}
	for _, t := range []struct {
		name          string
		before, after Times
		p50, p90, p99 func(Point) float64
	}{
		{"latency", before.Latency, after.Latency, func(p Point) float64 { return p.P50 }, func(p Point) float64 { return p.P90 }, func(p Point) float64 { return p.P99 }},
		{"service time", before.ServiceTime, after.ServiceTime, func(p Point) float64 { return p.ServiceP50 }, func(p Point) float64 { return p.ServiceP50 }, func(p Point) float64 { return p.ServiceP99 }},
	} {
		figure := func(p string, good int, tolerance float64) {
			c.add(times, good, t.name+" "+p, "ms", latencies[p](t.before), latencies[p](t.after), tolerance)
		}
		figure("mean", -1, steady(t.p50))
		figure("p50", half, steady(t.p50))
		figure("p90", -1, max(steady(t.p90), leastTail))
		figure("p99", -1, max(spread(before, after, t.p99), 2*leastTail))
		figure("p99.9", 0, 0)
		figure("max", 0, 0)
	}
	c.addService(times, before.Service, after.Service)
	c.add("", 0, "processors used by the generator", "", before.Generator.OwnCPUs, after.Generator.OwnCPUs)
	return c
}

const (
	// mostSpread is what a rate, the mean, p50 and p90 may change by at most: a regression of
	// 20 % is seen, however unsteady the runs were. Where the machine itself was slower or
	// faster it is worse, or not comparable: see machineRatio.
	mostSpread = 0.15
	// leastTail is what p90 may change by at least, and twice as much p99: machines differ by
	// it from one minute to the next.
	leastTail = 0.08
	// leastFollows is the power of machineRatio by which every target follows at least. Measured
	// on busy machines: rates with the power of 0.4 to 0.7, times of 0.3 to 0.8.
	leastFollows = 0.5
	// busyMachine is the share of its processors from which on a machine says by its own speed
	// how fast target and generator are, and leastApart what runs on one machine differ by.
	busyMachine, leastApart = 0.7, 0.05
)

func (g *Generator) busy() bool {
	return g.MachineCPUs > 0 && g.MachineCPUs >= busyMachine*float64(g.CPUs)
}

// machineRatio is the processor time that the generator needed for a request, which is always the
// same work, as a share of what it needed before; 1: hardly other, or the machine was not busy, so
// that it does not matter. On shared machines it changes by up to a half from one minute to the
// next. How far a target follows depends on the target, so that a figure that is worse, or not
// better, by about as much says nothing.
func machineRatio(before, after *Result) float64 {
	cost := func(r *Result) float64 {
		if r.Requests == 0 || !r.Generator.busy() {
			return 0
		}
		return r.Generator.CPUSeconds / float64(r.Requests)
	}
	a, b := cost(before), cost(after)
	if a == 0 || b == 0 || math.Abs(math.Log(b/a)) < math.Log1p(leastApart) {
		return 1
	}
	return b / a
}

// WorseText names what is worse, by how much, and what would have been tolerated.
func (c *Comparison) WorseText() string {
	var list []string
	for _, d := range c.Differences {
		if d.Worse {
			list = append(list, fmt.Sprintf("%s %s (tolerated: %.1f %%)", d.Name, d.ChangeText(), 100*d.Tolerance))
		}
	}
	return strings.Join(list, ", ")
}

// scenarioText is the scenario of a load on a service.
func scenarioText(r *Result) string {
	if r.Load.Scenario == "" {
		return "batches"
	}
	return r.Load.Scenario
}

// addService compares the calls that both loads on a service have, and the time that
// runs took.
func (c *Comparison) addService(reason string, before, after *ServiceFigures) {
	if before == nil || after == nil {
		return
	}
	for _, a := range before.Calls {
		at := slices.IndexFunc(after.Calls, func(b CallFigures) bool { return b.Call == a.Call })
		if at < 0 || a.Latency == (Times{}) || after.Calls[at].Latency == (Times{}) {
			continue
		}
		for _, p := range []string{"p50", "p99"} {
			c.add(reason, -1, a.Call+" "+p, "ms", latencies[p](a.Latency), latencies[p](after.Calls[at].Latency))
		}
	}
	if a, b := before.Runs, after.Runs; a != nil && b != nil {
		c.add("", -1, "runs failed", "", float64(a.Failed), float64(b.Failed))
		c.add("", -1, "runs not ended in time", "", float64(a.Unfinished), float64(b.Unfinished))
		if a.Completed > 0 && b.Completed > 0 {
			c.add(reason, -1, "time to the end of a run p50", "ms", a.TimeToEnd.P50, b.TimeToEnd.P50)
		}
	}
}

// add compares one figure, unless there is a reason why it is not comparable; good is
// +1 where more is better, -1 where less is, and 0 where it only informs. The largest
// tolerance counts.
func (c *Comparison) add(reason string, good int, name, unit string, before, after float64, tolerances ...float64) {
	d := Difference{Name: name, Unit: unit, Before: before, After: after, NotComparable: reason, Tolerance: slices.Max(append(tolerances, c.tolerance))}
	if before != 0 {
		d.Change = after/before - 1
	}
	least, most := 1.0, 1.0 // by which the figure follows the speed of the machine
	if unit == "ms" || strings.HasSuffix(name, "per second") {
		least, most = math.Pow(c.machine, leastFollows), max(c.machine, 1)
	}
	// From nothing to something has no share, and is a change all the same.
	more := func(tolerance, follows float64) bool {
		return d.Change > (1+tolerance)*follows-1 || before == 0 && after > 0
	}
	less := func(tolerance, follows float64) bool { return d.Change < (1-tolerance)/follows-1 }
	worse := func(follows float64) bool {
		return good > 0 && less(d.Tolerance, follows) || good < 0 && more(d.Tolerance, follows)
	}
	switch {
	case reason != "":
	case worse(least) && !worse(most):
		d.NotComparable = "not the same machine: slower by about as much as this is worse"
		if c.machine < 1 {
			d.NotComparable = "not the same machine: faster, and this did not follow it"
		}
	default:
		d.Worse, d.Better = worse(most), good > 0 && more(d.Tolerance, 1) || good < 0 && less(d.Tolerance, 1)
	}
	c.Worse = c.Worse || d.Worse
	c.Differences = append(c.Differences, d)
}

// Shown writes a value of the figure; a time of 0 is of no request.
func (d Difference) Shown(v float64) string {
	switch {
	case d.Unit == "ms" && v == 0:
		return "none"
	case d.Unit == "ms":
		return quantity.Time(v)
	case d.Unit == "%":
		return fmt.Sprintf("%.3g %%", v)
	}
	return quantity.Rate(v)
}

// spread is by how much a figure of two equal loads may differ by chance, as a share: three
// standard errors of the difference, by a bootstrap over blocks of the series. A block keeps
// what belongs together, such as a stall over several intervals.
func spread(before, after *Result, figure func(Point) float64) float64 {
	a, b := standardError(before.Series, figure), standardError(after.Series, figure)
	return 3 * math.Sqrt(a*a+b*b)
}

// resamples of a series; the error of the error is a twentieth.
const resamples = 200

// standardError of the mean of a figure over a series, as a share of the mean; 0 where
// fewer than four intervals have one.
func standardError(series []Point, figure func(Point) float64) float64 {
	var all []float64
	for _, p := range series {
		if v := figure(p); v > 0 {
			all = append(all, v)
		}
	}
	n := len(all)
	if n < 4 {
		return 0
	}
	block := int(math.Sqrt(float64(n)))
	random := rand.New(rand.NewPCG(1, uint64(n)))
	sum, squares := 0.0, 0.0
	for range resamples {
		mean := 0.0
		for taken := 0; taken < n; {
			from := random.IntN(n - block + 1)
			for i := from; i < from+block && taken < n; i++ {
				mean += all[i] / float64(n)
				taken++
			}
		}
		sum += mean
		squares += mean * mean
	}
	mean := sum / resamples
	return math.Sqrt(max(squares/resamples-mean*mean, 0)) / mean
}
