package loadgen

import (
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/destkit/destkit/internal/histogram"
	"github.com/destkit/destkit/loadgen/internal/failure"
)

// replicas makes the endpoints of the further processes. They share what counts the
// memory of replies and what hides secrets.
func (e *endpoint) replicas(t Target) ([]*endpoint, error) {
	var all []*endpoint
	for _, url := range t.Replicas {
		t.URL = url
		r, err := newEndpoint(t, e.transport)
		if err != nil {
			// The messages are about the URL of the endpoint.
			return nil, failure.Usagef("replica: %s", strings.ReplaceAll(err.Error(), "destkit load https", "--replica https"))
		}
		r.memory, r.hidden = e.memory, e.hidden
		e.seedURL(r.url, "$DESTKIT_URL")
		if r.transport.Standard {
			r.shared, _ = r.roundTripper()
		}
		all = append(all, r)
	}
	return all, nil
}

// endOf is the process that a connection goes to.
func (e *engine) endOf(number int) *endpoint {
	if at := number % (len(e.replicas) + 1); at > 0 {
		return e.replicas[at-1]
	}
	return e.end
}

// part is what is measured of one process of several.
type part struct {
	requests, failed int64
	records, good    int64
	latency          *hdrhistogram.Histogram
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
			Address: s.e.endOf(i).shown(), Connections: (s.o.Connections-i-1)/len(m.parts) + 1, Requests: p.requests,
			RequestsPerSecond: float64(p.requests) / m.seconds(), Records: p.records, Acknowledged: p.good, FailedRequests: p.failed, Latency: times(p.latency), Histogram: text,
		})
	}
	return list, nil
}
