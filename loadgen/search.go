package loadgen

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/loadgen/internal/wire"
)

// Search looks for the highest rate at which a target holds a goal: first the
// batch size and the number of connections that give most records per second,
// then by doubling, bisecting and confirming the rate. The zero value works.
type Search struct {
	// Goals must hold; ParseGoals makes them. Unless one is about errors, at most 0.1 %
	// of the records may fail. In any case 99 % of the rate must be completed within the
	// try, and latency must not rise through it.
	Goals []Threshold
	// Probe, Step and Confirm are how long one try lasts; 700 ms, 3 s and 10 s
	// when 0.
	Probe, Step, Confirm time.Duration
	// Precision is how close the rate is bracketed; 0.02 when 0.
	Precision float64
	// Margin is what the suggested numbers stay below; 0.2 when 0.
	Margin float64
	// FixedBatch and FixedConnections are kept, and not looked for.
	FixedBatch, FixedConnections bool
}

// SearchResult is what a search has found.
type SearchResult struct {
	Goal string `json:"goal"`
	// Rate is the highest that held, in requests per second, and held again in the
	// confirming run where Confirmed.
	Rate             float64 `json:"requests_per_second"`
	RecordsPerSecond float64 `json:"records_per_second"`
	Confirmed        bool    `json:"confirmed"`
	BatchSize        int     `json:"batch_size"`
	Connections      int     `json:"connections"`
	// Knee is the fewest connections that reach 95 % of the closed-loop maximum:
	// more only wait for each other.
	Knee          int     `json:"knee_connections"`
	ClosedMaximum float64 `json:"closed_loop_requests_per_second"`
	// Suggested are numbers for get_sync_speed, Margin below what was found; nil where
	// nothing was.
	Suggested *SuggestedSpeed `json:"suggested,omitempty"`
	// Alike are further batch sizes with at least 95 % of the records per second.
	Alike  []int        `json:"alike_batch_sizes,omitempty"`
	Margin float64      `json:"margin"`
	Steps  []SearchStep `json:"steps"`

	taken float64 // acknowledged requests per second, of a closed loop that was refused too much
}

// SuggestedSpeed is a result of get_sync_speed.
type SuggestedSpeed struct {
	BatchSize        int64 `json:"maximum_batch_size"`
	Parallel         int64 `json:"maximum_parallel_batches"`
	RecordsPerSecond int64 `json:"maximum_records_per_second"`
}

// SearchStep is one try.
type SearchStep struct {
	Kind        string  `json:"kind"` // closed, double, bisect, confirm
	Rate        float64 `json:"rate"` // asked for, 0 in a closed loop
	BatchSize   int     `json:"batch_size"`
	Connections int     `json:"connections"`
	Reached     float64 `json:"requests_per_second"`
	P99         float64 `json:"latency_p99"`
	Errors      int64   `json:"errors"`
	Held        bool    `json:"held"`
	Why         string  `json:"why,omitempty"` // it did not

	refused bool    // the goal that it broke is about errors
	taken   float64 // requests per second, counted by their acknowledged records
	busy    float64 // mean number of connections that waited for a reply
}

func (s Search) withDefaults() (Search, error) {
	set := func(d *time.Duration, v time.Duration) {
		*d = cmp.Or(*d, v)
	}
	set(&s.Probe, 700*time.Millisecond)
	set(&s.Step, 3*time.Second)
	set(&s.Confirm, 10*time.Second)
	s.Precision = cmp.Or(s.Precision, 0.02)
	s.Margin = cmp.Or(s.Margin, 0.2)
	if s.Probe < 0 || s.Step < 0 || s.Confirm < 0 || !(s.Precision > 0 && s.Precision < 0.5) || !(s.Margin > 0 && s.Margin < 1) {
		return s, wire.Usagef("a search wants times above 0, a precision below 0.5 and a margin below 1")
	}
	if !slices.ContainsFunc(s.Goals, func(g Threshold) bool { return g.Metric == "errors" }) {
		s.Goals = append(slices.Clip(s.Goals), Threshold{Text: "errors=0.1%", Metric: "errors", Op: ">", Value: 0.001, Share: true})
	}
	return s, nil
}

// trial is what a search needs of a target; a test puts a made-up one there.
type trial interface {
	// closed runs a closed loop and gives requests per second.
	closed(batch, connections int, d time.Duration) (SearchStep, error)
	// rate runs an open loop at a rate.
	rate(rate float64, batch, connections int, d time.Duration, kind string) (SearchStep, error)
}

// reachedShare of the rate must have been sent and answered.
const reachedShare = 0.99

// find searches. mostBatch and most connections bound the attempts.
func (s Search) find(t trial, batch, mostBatch, connections int) (*SearchResult, error) {
	r := &SearchResult{Margin: s.Margin, BatchSize: batch, Connections: connections, Knee: connections, Steps: []SearchStep{}}
	for _, g := range s.Goals {
		r.Goal = strings.TrimPrefix(r.Goal+", "+g.Text, ", ")
	}
	if err := s.shape(t, r, mostBatch); err != nil {
		return r, err
	}
	low, high, err := s.double(t, r)
	if err != nil {
		return r, err
	}
	for i := 0; high > 0 && high-low > s.Precision*low && i < 12; i++ {
		middle := (low + high) / 2
		held, err := r.holds(t, middle, s.Step, "bisect")
		if err != nil {
			return r, err
		}
		if held {
			low = middle
		} else {
			high = middle
		}
	}
	return r, s.confirm(t, r, low)
}

// shape looks for the batch size and the connections with most records per
// second. It ends at the first number of connections that breaks the error limit.
func (s Search) shape(t trial, r *SearchResult, mostBatch int) error {
	best := map[int]float64{} // requests per second by connections
	top := 0.0
	for c := map[bool]int{true: r.Connections, false: 1}[s.FixedConnections]; ; c = min(2*c, ServiceParallel) {
		step, err := t.closed(r.BatchSize, c, s.Probe)
		r.Steps = append(r.Steps, step)
		if err != nil {
			return err
		}
		if step.refused {
			r.taken = max(r.taken, step.taken)
			break
		}
		best[c] = step.Reached
		// Twice as many connections without any gain, twice: more will not help.
		if s.FixedConnections || c == ServiceParallel || step.Reached < 1.05*top && c >= 4 && best[c/2] < 1.05*best[c/4] {
			break
		}
		top = max(top, step.Reached)
	}
	r.knee(best)
	if s.FixedBatch || len(best) == 0 {
		return nil
	}
	return s.batches(t, r, mostBatch)
}

// batches looks for the size that brings most records per second.
func (s Search) batches(t trial, r *SearchResult, most int) error {
	type tried struct {
		batch         int
		rate, records float64
	}
	list := []tried{{r.BatchSize, r.ClosedMaximum, r.ClosedMaximum * float64(r.BatchSize)}}
	for _, batch := range batchSizes(r.BatchSize, most) {
		step, err := t.closed(batch, r.Connections, s.Probe)
		r.Steps = append(r.Steps, step)
		if err != nil {
			return err
		}
		if !step.refused {
			list = append(list, tried{batch, step.Reached, step.Reached * float64(batch)})
		}
	}
	first := slices.MaxFunc(list, func(a, b tried) int { return cmp.Compare(a.records, b.records) })
	r.BatchSize, r.ClosedMaximum = first.batch, first.rate
	for _, other := range list {
		if other.batch != first.batch && other.records >= alike*first.records {
			r.Alike = append(r.Alike, other.batch)
		}
	}
	slices.Sort(r.Alike)
	return nil
}

// alike is the share of the most records per second from which on a batch size counts as
// equally fast: short tries differ by as much.
const alike = 0.95

// knee finds the fewest connections with 95 % of the most requests, and chooses those
// with which the rate is looked for: the fewest with nearly all of them. Where even one
// connection is refused too much, the knee follows from the confirmed rate.
func (r *SearchResult) knee(best map[int]float64) {
	if len(best) == 0 {
		r.Knee = 0
		return
	}
	for _, rate := range best {
		r.ClosedMaximum = max(r.ClosedMaximum, rate)
	}
	fewest := func(share float64) int {
		least := math.MaxInt
		for c, rate := range best {
			if rate >= share*r.ClosedMaximum {
				least = min(least, c)
			}
		}
		return least
	}
	r.Knee = fewest(0.95)
	if len(best) > 1 {
		// Half as many again as the knee: between two replies a connection is idle for a
		// moment. At a rate below the limit more of them are idle and cost nothing.
		r.Connections = min(max(fewest(0.99), r.Knee+max(2, r.Knee/2)), ServiceParallel)
	}
}

// batchSizes are other sizes worth trying.
func batchSizes(now, most int) []int {
	var list []int
	for _, b := range []int{most, now / 2, now / 4, now / 10} {
		if b >= 1 && b <= most && b != now && !slices.Contains(list, b) {
			list = append(list, b)
		}
	}
	return list
}

// enough requests make a try: of fewer, the 99th percentile is their slowest, and
// one hiccup decides. It lasts up to longestTry times as long for them.
const (
	enough     = 100
	longestTry = 5
)

// clearlyBelow is the share of a rate that no hiccup explains.
const clearlyBelow = 0.9

// holds reports whether a rate holds. A failed rate is tried once more, unless the
// rate was missed by far: a machine that was busy for a moment is no limit of the
// target, and what holds here by luck fails when it is confirmed.
func (r *SearchResult) holds(t trial, rate float64, d time.Duration, kind string) (bool, error) {
	d = max(d, min(longestTry*d, time.Duration(enough/rate*float64(time.Second))))
	for range 2 {
		step, err := t.rate(rate, r.BatchSize, r.Connections, d, kind)
		if err != nil {
			return false, err
		}
		if r.Steps = append(r.Steps, step); step.Held {
			return true, nil
		}
		if step.Reached < clearlyBelow*rate {
			break
		}
	}
	return false, nil
}

// double doubles the rate until it does not hold, or halves it until it does.
func (s Search) double(t trial, r *SearchResult) (low, high float64, err error) {
	rate := max(r.ClosedMaximum/4, r.taken/4, 1)
	for range 30 {
		held, err := r.holds(t, rate, min(s.Step, 2*s.Probe), "double")
		if err != nil {
			return low, high, err
		}
		if held {
			low = rate
			if high > 0 {
				return low, high, nil
			}
			rate *= 2
		} else {
			high = rate
			if low > 0 {
				return low, high, nil
			}
			rate /= 2
		}
		if rate < 0.1 || rate > mostRate {
			break
		}
	}
	return low, high, nil
}

// confirm runs longer at the found rate, and lower where it does not hold.
func (s Search) confirm(t trial, r *SearchResult, rate float64) error {
	for range 6 {
		if rate <= 0 {
			break
		}
		step, err := t.rate(rate, r.BatchSize, r.Connections, s.Confirm, "confirm")
		if err != nil {
			return err
		}
		r.Steps = append(r.Steps, step)
		r.Rate, r.Confirmed = rate, step.Held
		if step.Held {
			r.Knee = cmp.Or(r.Knee, int(math.Ceil(step.busy)))
			break
		}
		// The reached rate is the best guess of the limit, and never quite held.
		rate = min(rate, max(step.Reached, rate/2)) * (1 - s.Precision)
	}
	if r.Rate <= 0 {
		return nil
	}
	r.RecordsPerSecond = r.Rate * float64(r.BatchSize)
	r.Suggested = &SuggestedSpeed{
		BatchSize: int64(r.BatchSize), Parallel: int64(max(min(r.Knee, ServiceParallel), 1)),
		RecordsPerSecond: max(int64(r.RecordsPerSecond*(1-s.Margin)), 1),
	}
	return nil
}
