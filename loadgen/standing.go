package loadgen

import (
	"slices"
	"time"
)

// standing is how a phase stands, for those who watch it. It belongs to the goroutine
// that attends to the phase.
type standing struct {
	target TargetInfo
	load   LoadInfo
	wanted []Threshold // nil: none is held against this phase
	ph     phase

	said    int64 // the last moment that was shown
	checked int64 // the last time that limits were checked
	checks  []Threshold
}

// newStanding begins to watch a phase. What it shows is a copy: at the end of a run its
// result is written to.
func (s *session) newStanding(name string, ph phase) *standing {
	st := &standing{target: s.result.Target, load: s.result.Load, ph: ph}
	st.target.Objects, st.target.Replicas = slices.Clone(st.target.Objects), slices.Clone(st.target.Replicas)
	st.load.Operations, st.load.Stages = slices.Clone(st.load.Operations), slices.Clone(st.load.Stages)
	s.e.end.Hidden.Value(&st.target)
	s.e.end.Hidden.Value(&st.load)
	if name == "load" {
		st.wanted = s.o.Limits
	}
	return st
}

// due reports whether a moment is to be shown: at the end of an interval, and every
// second where intervals are longer.
func (st *standing) due(m *measure, now int64, fresh bool) bool {
	if !fresh || len(m.points) == 0 {
		if m.width <= int64(time.Second) || now-max(st.said, m.began) < int64(time.Second) {
			return false
		}
	}
	st.said = now
	return true
}

// limits holds the figures so far against the limits, at most once a second: the
// percentiles of a whole run take a part of a millisecond.
func (st *standing) limits(m *measure, now int64) []Threshold {
	if len(st.wanted) == 0 || now-max(st.checked, m.began) < int64(time.Second) {
		return st.checks
	}
	st.checked = now
	elapsed := time.Duration(now - m.began)
	r := &Result{
		Requests: m.requests, Records: m.records, Acknowledged: m.good, FailedRequests: m.failed, Errors: m.errors(),
		RequestsPerSecond: float64(m.requests) / elapsed.Seconds(), RecordsPerSecond: float64(m.records) / elapsed.Seconds(),
		Latency: times(m.latency), ServiceTime: times(m.service),
		Load: LoadInfo{Rate: meanRate(st.ph.stages, st.ph.burst, elapsed)},
	}
	st.checks = slices.Clone(st.wanted) // those before may be on a page
	for i := range st.checks {
		st.checks[i].Check(r)
	}
	return st.checks
}
