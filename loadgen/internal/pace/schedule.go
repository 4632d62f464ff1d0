package pace

import (
	"math"
	"time"
)

// Stage is one part of a schedule: its rate goes from From to To, in requests per
// second, evenly over Duration.
type Stage struct {
	Duration time.Duration
	From     float64
	To       float64
}

// Burst adds Size requests at once, every Every, from the first moment on.
type Burst struct {
	Size  int
	Every time.Duration
}

// Schedule gives the intended times of requests, in nanoseconds from its start:
// first the stages, the last of which goes on for ever at its end rate, with
// bursts between.
type Schedule struct {
	stages []Stage
	burst  Burst

	at     int     // of the next request of the stages
	offset float64 // seconds before that stage
	count  float64 // requests before it
	n      float64 // requests so far of the stages
	bursts int64   // requests so far of the bursts
}

// NewSchedule begins a schedule.
func NewSchedule(stages []Stage, b Burst) *Schedule {
	return &Schedule{stages: stages, burst: b}
}

const never = math.MaxInt64

// next is the intended time of the next request; it never goes back.
func (s *Schedule) next() int64 {
	steady := s.steady()
	if s.burst.Size > 0 && s.burst.Every > 0 {
		at := s.bursts / int64(s.burst.Size) * int64(s.burst.Every)
		if at <= steady {
			s.bursts++
			return at
		}
	}
	if steady != never {
		s.n++
	}
	return steady
}

// skip leaves out requests that are due before a moment, in nanoseconds, all but a
// few, and returns how many: a reader cannot count a day of them one by one.
func (s *Schedule) skip(before int64) (n int64) {
	const few = 3 // of which the last figure of a float may be wrong
	if due := math.Floor(s.due(before)) - few; due > s.n {
		n = int64(due - s.n)
		s.n = due
	}
	if s.burst.Size > 0 && s.burst.Every > 0 {
		if due := before / int64(s.burst.Every) * int64(s.burst.Size); due > s.bursts {
			n += due - s.bursts
			s.bursts = due
		}
	}
	return n
}

// due is how many requests of the stages come before a moment: the area under the
// rates.
func (s *Schedule) due(before int64) (n float64) {
	left := float64(before) / 1e9
	for i, st := range s.stages {
		d := st.Duration.Seconds()
		if left < d {
			return n + left*(st.From+(st.To-st.From)*left/d/2)
		}
		n, left = n+(st.From+st.To)/2*d, left-d
		if i == len(s.stages)-1 {
			n += left * st.To
		}
	}
	return n
}

// steady is when the next request of the stages is due. Within a stage that
// goes from a to b in d seconds n requests are due at the t that solves
// a·t + (b-a)·t²/(2d) = n.
func (s *Schedule) steady() int64 {
	for s.at < len(s.stages) {
		st := s.stages[s.at]
		d := st.Duration.Seconds()
		n := s.n - s.count
		last := s.at == len(s.stages)-1
		if total := (st.From + st.To) / 2 * d; n < total {
			return seconds(s.offset + solve(st.From, (st.To-st.From)/d, n))
		} else if last {
			if st.To <= 0 {
				return never
			}
			return seconds(s.offset + d + (n-total)/st.To)
		} else {
			// A part of a request that is due at a boundary is due in the next stage.
			s.count += total
			s.offset += d
			s.at++
		}
	}
	return never
}

// solve gives the t ≥ 0 with a·t + k/2·t² = n.
func solve(a, k, n float64) float64 {
	if n <= 0 {
		return 0
	}
	if math.Abs(k) < 1e-12 {
		return n / a
	}
	root := math.Sqrt(max(0, a*a+2*k*n))
	return 2 * n / (a + root)
}

func seconds(s float64) int64 {
	if s > 1e9 {
		return never
	}
	return int64(s * 1e9)
}

// RateAt is the rate that the stages ask for at a time.
func (s *Schedule) RateAt(ns int64) float64 {
	t := float64(ns) / 1e9
	for i, st := range s.stages {
		d := st.Duration.Seconds()
		if t < d {
			return st.From + (st.To-st.From)*t/d
		}
		if t -= d; i == len(s.stages)-1 {
			return st.To
		}
	}
	return 0
}

// constant is the schedule of one rate.
func constant(rate float64) []Stage {
	return []Stage{{Duration: time.Second, From: rate, To: rate}}
}

// MeanRate is the mean of the requests per second of a schedule.
func MeanRate(stages []Stage, burst Burst, duration time.Duration) float64 {
	if duration == 0 {
		for _, st := range stages {
			duration += st.Duration
		}
	}
	total, left := 0.0, duration.Seconds()
	for i, st := range stages {
		d := st.Duration.Seconds()
		if i == len(stages)-1 && left > d {
			total += (st.From+st.To)/2*d + st.To*(left-d)
			break
		}
		part := min(d, left)
		total += st.From*part + (st.To-st.From)*part*part/(2*d)
		if left -= part; left <= 0 {
			break
		}
	}
	if burst.Size > 0 && duration > 0 {
		total += float64(burst.Size) * math.Ceil(duration.Seconds()/burst.Every.Seconds())
	}
	if duration <= 0 {
		return 0
	}
	return total / duration.Seconds()
}

// Clock counts nanoseconds from a moment, which costs less than time.Now.
type Clock struct{ base time.Time }

// NewClock begins now.
func NewClock() Clock { return Clock{time.Now()} }

// Now is the time since then.
func (c Clock) Now() int64 { return int64(time.Since(c.base)) }
