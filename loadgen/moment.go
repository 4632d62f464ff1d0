package loadgen

import (
	"slices"
	"time"
)

// Moment is the state of a run, for a live view.
type Moment struct {
	// Phase is prepare, warm-up, load, settle, search, verify or clean-up; Of how long it lasts, 0
	// where that is not known.
	Phase       string
	Elapsed, Of time.Duration
	// Latest is the last whole interval; zero before its end.
	Latest            Point
	Requests, Records int64
	Errors            int64
	InFlight          int
	Open              bool    // the loop is open: requests follow a rate
	Asked             float64 // requests per second, 0 in a closed loop and in a pause
	// CPUs is how many processors the generator kept busy since the moment before.
	CPUs float64
	// Service: of a load on a service, where every request counts as one record.
	Service bool
	// ErrorsByKind and Paused are for those who control the run; nil without Control.
	ErrorsByKind map[string]int64
	Paused       bool
	// Target and Load are what was requested. Limits is the state of Options.Limits,
	// nil before the first second is over and between phases that are measured.
	Target TargetInfo
	Load   LoadInfo
	Limits []Threshold
}

// watcher shows the figures of every new interval and aborts on errors.
func (s *session) watcher(name string, of time.Duration, ph phase) func(*measure, int64) {
	shown := -1
	var marks []totals
	before := readCPU()
	live := s.newStanding(name, ph)
	return func(m *measure, now int64) {
		s.journal.advance(s.e.plan)
		s.tell()
		if s.o.AbortShare > 0 && len(m.points) != shown {
			marks = append(marks, totals{now, m.records, m.good})
			for len(marks) > 2 && now-marks[1].at >= int64(abortWindow) {
				marks = marks[1:]
			}
			sent, good := m.records-marks[0].records, m.good-marks[0].good
			if now-m.began >= int64(time.Second) && sent >= abortAtLeast && float64(sent-good) > s.o.AbortShare*float64(sent) {
				s.e.stopFor(stopErrors)
			}
		}
		if s.o.Progress == nil || !live.due(m, now, len(m.points) != shown) {
			return
		}
		shown = len(m.points)
		moment := Moment{
			Phase: name, Elapsed: time.Duration(now - m.began), Of: of,
			Requests: m.requests, Records: m.records, Errors: m.errors(), InFlight: m.active, Service: s.e.service != nil,
			Target: live.target, Load: live.load, Limits: live.limits(m, now),
		}
		if shown > 0 {
			moment.Latest = m.points[shown-1]
		}
		if m.asked != nil {
			moment.Open, moment.Asked = true, m.asked(now-m.began)
		}
		latest := readCPU()
		if wall := latest.At.Sub(before.At).Seconds(); wall > 0 {
			moment.CPUs = latest.Since(before).Own.Seconds() / wall
		}
		before = latest
		if s.o.Control != nil {
			moment.Paused, moment.ErrorsByKind = s.o.Control.Paused(), map[string]int64{}
			for _, t := range m.tallies {
				moment.ErrorsByKind[t.Kind] += t.Count
			}
		}
		s.o.Progress(moment)
	}
}

// totals are how many records were sent and acknowledged at a moment.
type totals struct{ at, records, good int64 }

// standing is the state of a phase, for those who watch it. It belongs to the
// goroutine that attends to the phase.
type standing struct {
	target TargetInfo
	load   LoadInfo
	wanted []Threshold // nil: none is held against this phase
	ph     phase

	said    int64 // the last moment that was shown
	checked int64 // the last time that limits were checked
	checks  []Threshold
}

// newStanding begins to watch a phase. It shows a copy: at the end of a run its result
// is written to.
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
		AcknowledgedPerSecond: float64(m.good) / elapsed.Seconds(),
		Latency:               times(m.latency), ServiceTime: times(m.service),
		Load: LoadInfo{Rate: meanRate(st.ph.stages, st.ph.burst, elapsed)},
	}
	st.checks = slices.Clone(st.wanted) // those before may be on a page
	for i := range st.checks {
		st.checks[i].Check(r)
	}
	return st.checks
}
