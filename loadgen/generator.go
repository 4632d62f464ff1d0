package loadgen

import (
	"fmt"
	"runtime"
	"time"

	"github.com/destkit/destkit/internal/histogram"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// generator reports whether the generator was the limit and not the target. It is, where
// a free connection was not used on time or it had no processor left, and the result shows
// it: a rate that was missed, or lateShare of the latency; and without descriptors or ports.
func (m *measure) generator() Generator {
	wall := max(float64(m.ended-m.began), float64(m.stopped-m.began)) / 1e9
	g := Generator{
		Unsent: m.unsent, Late: m.late, Queued: m.queued, Unanswered: m.cut, Connections: m.connects,
		CPUSeconds: m.cpu.Own.Seconds(), CPUs: runtime.NumCPU(),
	}
	if wall > 0 {
		g.OwnCPUs = m.cpu.Own.Seconds() / wall
		if m.cpu.Known {
			g.MachineCPUs = min(m.cpu.Machine.Seconds()/wall, float64(g.CPUs))
		}
	}
	add := func(format string, args ...any) {
		g.Limited = true
		g.Reasons = append(g.Reasons, fmt.Sprintf(format, args...))
	}
	late := float64(m.lateBy) > lateShare*m.latency.Mean()*float64(m.latency.TotalCount())
	missed := m.missed()
	if late || missed && m.late*100 > m.requests {
		add("%d of %s %s sent more than 1 ms late although a connection was free", m.late, quantity.Count(m.requests, "request"), quantity.Verb(m.late, "was", "were"))
	}
	cpus := float64(g.CPUs)
	switch {
	case m.asked != nil && !late && !missed: // full processors have changed nothing
	case g.OwnCPUs > 0.9*cpus:
		add("the generator kept %.1f of %s busy", g.OwnCPUs, quantity.Count(g.CPUs, "processor"))
	case g.MachineCPUs > 0.95*cpus && g.OwnCPUs > cpus/4:
		add("%s of this machine %s busy, %.1f of %s with the generator: target and generator share %[4]s, or others do", allOf(g.CPUs, "processor"), quantity.Verb(g.CPUs, "was", "were"), g.OwnCPUs, quantity.Verb(g.CPUs, "it", "them"))
	}
	kinds := map[string]int64{}
	for _, t := range m.tallies {
		kinds[t.Kind] += t.Count
	}
	if n := kinds[wire.KindDescriptors]; n > 0 {
		add("%s this machine had no file descriptor left", quantity.Count(n, "time"))
	}
	if n := kinds[wire.KindPorts]; n > 0 {
		add("%s this machine had no local port left", quantity.Count(n, "time"))
	}
	return g
}

// lateShare is the share of all latency from which on it changes a percentile.
const lateShare = 0.05

// missed reports whether fewer requests have ended than were asked for.
func (m *measure) missed() bool {
	if m.asked == nil {
		return false
	}
	const looks = 100
	asked := 0.0
	for i := range int64(looks) {
		asked += m.asked((m.stopped-m.began)*(2*i+1)/(2*looks)) / looks
	}
	return float64(m.inside.requests) < reachedShare*asked*m.seconds()-float64(m.active)-1
}

// processorTimes is the time that processors have worked: for this process, and for
// the whole machine where known.
type processorTimes struct {
	At           time.Time
	Own, Machine time.Duration
	Known        bool
}

// Since is the usage between two readings; at is then the end.
func (c processorTimes) Since(before processorTimes) processorTimes {
	return processorTimes{At: c.At, Own: c.Own - before.Own, Machine: c.Machine - before.Machine, Known: c.Known && before.Known}
}

// endOf is the process that a connection goes to.
func (e *engine) endOf(number int) *wire.Endpoint {
	if at := number % (len(e.replicas) + 1); at > 0 {
		return e.replicas[at-1]
	}
	return e.end
}

// part holds the measurements of one process of several.
type part struct {
	requests, failed int64
	records, good    int64
	latency          *histogram.Histogram
}

func (p *part) add(samples []sample) {
	for i := range samples {
		s := &samples[i]
		p.requests++
		p.records += int64(s.records)
		p.good += int64(s.good)
		if s.failed {
			p.failed++
		}
		if !s.untimed {
			histogram.Record(p.latency, s.end-s.intended)
		}
	}
}

// perReplica are the figures of each process; nil where there is one.
func (s *session) perReplica(m *measure) (list []ReplicaFigures, err error) {
	for i, p := range m.parts {
		text, err := histogram.Encode(p.latency)
		if err != nil {
			return nil, err
		}
		list = append(list, ReplicaFigures{
			Address: s.e.endOf(i).Shown(), Connections: (s.o.Connections-i-1)/len(m.parts) + 1, Requests: p.requests,
			RequestsPerSecond: float64(p.requests) / m.seconds(), Records: p.records, Acknowledged: p.good, FailedRequests: p.failed, Latency: times(p.latency), Histogram: text,
		})
	}
	return list, nil
}
