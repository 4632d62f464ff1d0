package loadgen

import (
	"time"

	"github.com/destkit/destkit/loadgen/internal/pace"
)

// Stage is one part of a schedule: its rate goes from From to To, in requests
// per second, evenly over Duration.
type Stage struct {
	Duration time.Duration `json:"duration_ns"`
	From     float64       `json:"from"`
	To       float64       `json:"to"`
}

// Burst adds Size requests at once, every Every, from the first moment on.
type Burst struct {
	Size  int           `json:"size"`
	Every time.Duration `json:"every_ns"`
}

// newSchedule begins a schedule.
func newSchedule(stages []Stage, b Burst) *pace.Schedule {
	return pace.NewSchedule(paceOf(stages), pace.Burst(b))
}

func paceOf(stages []Stage) []pace.Stage {
	own := make([]pace.Stage, len(stages))
	for i, s := range stages {
		own[i] = pace.Stage(s)
	}
	return own
}

// meanRate is the mean of the requests per second of a schedule.
func meanRate(stages []Stage, burst Burst, duration time.Duration) float64 {
	return pace.MeanRate(paceOf(stages), pace.Burst(burst), duration)
}

// constant is the schedule of one rate.
func constant(rate float64) []Stage {
	return []Stage{{Duration: time.Second, From: rate, To: rate}}
}

// length is how long the stages last.
func length(stages []Stage) time.Duration {
	var sum time.Duration
	for _, s := range stages {
		sum += s.Duration
	}
	return sum
}

// changedRate is the mean of the requested rates where the rate was replaced on the way.
func changedRate(ph phase, changes []pace.Change, lasted time.Duration) float64 {
	until := func(i int) int64 {
		if i < len(changes) {
			return min(changes[i].At, int64(lasted))
		}
		return int64(lasted)
	}
	sent := meanRate(ph.stages, ph.burst, time.Duration(until(0))) * float64(until(0))
	for i, c := range changes {
		sent += c.Rate * float64(max(until(i+1)-c.At, 0))
	}
	return sent / float64(lasted)
}
