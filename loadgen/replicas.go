package loadgen

import (
	"github.com/destkit/destkit/internal/histogram"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// endOf is the process that a connection goes to.
func (e *engine) endOf(number int) *wire.Endpoint {
	if at := number % (len(e.replicas) + 1); at > 0 {
		return e.replicas[at-1]
	}
	return e.end
}

// part is what is measured of one process of several.
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
