package loadgen

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/destkit/destkit/internal/histogram"
)

// measure is what a phase has measured. Only the goroutine that attends to the
// phase touches it; connections hand over their samples.
type measure struct {
	began, stopped int64 // nothing new was sent after stopped
	ended          int64 // of the last reply

	requests, failed int64
	records, good    int64
	inside           struct{ requests, records, good int64 } // ended before stopped
	connects         int64
	late, lateBy     int64 // sent late though a connection was free, and by how much in all
	queued           int64 // sent late since none was
	latency, service *histogram.Histogram
	tallies          map[string]*tally
	unsent, cut      int64
	reason           stopReason
	cpu              processorTimes

	width   int64 // of an interval
	points  []Point
	buckets []*bucket // those that may still grow, in order
	spare   []sample
	free    []*bucket
	active  int // connections with a call under way, at the last look
	// asked is the requested rate at a moment from the start; nil: in a closed loop
	// there is none.
	asked func(ns int64) float64
	parts []*part // by the process, where there are several
	calls []*part // by restload.Kind, of a load on a service
}

// Point is one interval of the series.
type Point struct {
	// At is the end of the interval in seconds from the start.
	At                float64 `json:"at_seconds"`
	RequestsPerSecond float64 `json:"requests_per_second"`
	RecordsPerSecond  float64 `json:"records_per_second"`
	// AcknowledgedPerSecond counts the records with success alone.
	AcknowledgedPerSecond float64 `json:"acknowledged_per_second"`
	// Asked is the rate of requests that was asked for; 0 in a closed loop.
	Asked    float64 `json:"asked_requests_per_second,omitempty"`
	Errors   int64   `json:"errors"`
	InFlight int     `json:"in_flight"`
	// Latency from the intended time, service time from the send, in milliseconds.
	P50        float64 `json:"latency_p50"`
	P90        float64 `json:"latency_p90,omitempty"` // 0 in results of older versions, too
	P95        float64 `json:"latency_p95"`
	P99        float64 `json:"latency_p99"`
	Max        float64 `json:"latency_max"`
	ServiceP50 float64 `json:"service_p50"`
	ServiceP99 float64 `json:"service_p99"`
}

// bucket is an interval that is not over.
type bucket struct {
	index             int64
	requests, records int64
	good, errors      int64
	latency, service  *histogram.Histogram
}

// lateness is how late a start may be before it is counted.
const lateness = int64(time.Millisecond)

// newMeasure begins a measurement; the intervals of its series suit its length.
func newMeasure(now int64, duration time.Duration) *measure {
	return &measure{
		began: now, latency: histogram.New(), service: histogram.New(), tallies: map[string]*tally{}, width: int64(interval(duration)),
	}
}

// interval is a round time of which about 60 to 1,800 make the duration.
func interval(duration time.Duration) time.Duration {
	for _, w := range []time.Duration{100, 200, 500, 1000, 2000, 5000, 10_000, 30_000} {
		w *= time.Millisecond
		if duration <= 60*w || w >= time.Second && duration <= 1800*w && duration > 0 {
			if duration > 0 {
				return w
			}
			return time.Second
		}
	}
	return time.Minute
}

// collect takes over what the connections have measured by now.
func (m *measure) collect(active []*worker, now int64) {
	m.active = 0
	for _, w := range active {
		if w.started.Load() != 0 {
			m.active++
		}
		w.mu.Lock()
		taken := w.samples
		w.samples = m.spare[:0]
		var tallies map[string]*tally
		if len(w.tally) > 0 {
			tallies, w.tally = w.tally, map[string]*tally{}
		}
		w.mu.Unlock()
		for i := range taken {
			m.add(&taken[i])
			if m.calls != nil {
				m.calls[taken[i].call].add(taken[i : i+1])
			}
		}
		if m.parts != nil {
			m.parts[w.number%len(m.parts)].add(taken)
		}
		m.spare = taken
		for key, t := range tallies {
			if own := m.tallies[key]; own != nil {
				own.Count += t.Count
			} else {
				m.tallies[key] = t
			}
			m.bucketAt(now).errors += t.Count
		}
	}
	m.settle(now - int64(2*look))
}

func (m *measure) add(s *sample) {
	latency, service := s.end-s.intended, s.end-s.start
	if !s.untimed {
		histogram.Record(m.latency, latency)
		histogram.Record(m.service, service)
	}
	m.requests++
	m.records += int64(s.records)
	m.good += int64(s.good)
	if s.failed {
		m.failed++
	}
	if s.connected {
		m.connects++
	}
	if s.start-s.intended > lateness {
		if s.waited {
			m.late++
			m.lateBy += s.start - s.intended
		} else {
			m.queued++
		}
	}
	if m.stopped == 0 || s.end <= m.stopped {
		m.inside.requests++
		m.inside.records += int64(s.records)
		m.inside.good += int64(s.good)
	}
	m.ended = max(m.ended, s.end)
	b := m.bucketAt(s.end)
	b.requests++
	b.records += int64(s.records)
	b.good += int64(s.good)
	if !s.untimed {
		histogram.Record(b.latency, latency)
		histogram.Record(b.service, service)
	}
}

// bucketAt finds the interval of a moment; moments before those that are
// settled count with the oldest that is left.
func (m *measure) bucketAt(ns int64) *bucket {
	index := max(ns-m.began, 0) / m.width
	for i := len(m.buckets) - 1; i >= 0; i-- {
		if m.buckets[i].index <= index || i == 0 && index < m.buckets[0].index {
			if m.buckets[i].index >= index {
				return m.buckets[i]
			}
			break
		}
	}
	var b *bucket
	if n := len(m.free); n > 0 {
		b, m.free = m.free[n-1], m.free[:n-1]
		b.latency.Reset()
		b.service.Reset()
		b.requests, b.records, b.good, b.errors = 0, 0, 0, 0
	} else {
		b = &bucket{latency: histogram.New(), service: histogram.New()}
	}
	b.index = max(index, int64(len(m.points)))
	m.buckets = append(m.buckets, b)
	slices.SortFunc(m.buckets, func(a, b *bucket) int { return int(a.index - b.index) })
	return b
}

// settle turns the intervals that ended before a moment into points; one in
// which nothing happened is a point as well.
func (m *measure) settle(before int64) {
	for int64(len(m.points)+1)*m.width <= before-m.began {
		index := int64(len(m.points))
		p := Point{At: float64((index+1)*m.width) / 1e9, InFlight: m.active}
		if m.asked != nil {
			p.Asked = m.asked(index*m.width + m.width/2)
		}
		if len(m.buckets) > 0 && m.buckets[0].index <= index {
			m.buckets[0].point(&p, m.width)
			m.free = append(m.free, m.buckets[0])
			m.buckets = slices.Delete(m.buckets, 0, 1)
		}
		m.points = append(m.points, p)
	}
}

func (b *bucket) point(p *Point, width int64) {
	p.RequestsPerSecond = float64(b.requests) * 1e9 / float64(width)
	p.RecordsPerSecond = float64(b.records) * 1e9 / float64(width)
	p.AcknowledgedPerSecond = float64(b.good) * 1e9 / float64(width)
	p.Errors = b.errors
	at := func(q float64) float64 { return histogram.Milliseconds(histogram.At(b.latency, q)) }
	p.P50, p.P90, p.P95, p.P99 = at(50), at(90), at(95), at(99)
	p.Max = histogram.Milliseconds(b.latency.Max())
	p.ServiceP50, p.ServiceP99 = histogram.Milliseconds(histogram.At(b.service, 50)), histogram.Milliseconds(histogram.At(b.service, 99))
}

// finish closes the series. The last interval is as long as it was.
func (m *measure) finish(now int64) {
	m.stopped = cmp.Or(m.stopped, now)
	last := max(m.stopped, m.ended)
	m.settle(last)
	for _, b := range m.buckets {
		from := m.began + b.index*m.width
		if b.requests == 0 && b.errors == 0 {
			continue
		}
		width := min(max(last-from, int64(time.Millisecond)), m.width)
		p := Point{At: float64(from-m.began+width) / 1e9}
		if m.asked != nil {
			p.Asked = m.asked(from - m.began + width/2)
		}
		b.point(&p, width)
		m.points = append(m.points, p)
	}
	m.buckets = nil
}

// seconds is how long the phase sent.
func (m *measure) seconds() float64 { return max(float64(m.stopped-m.began), 1) / 1e9 }

// errors counts failed requests and records without a good result (and results
// that were not requested), each once.
func (m *measure) errors() int64 {
	n := int64(0)
	for _, t := range m.tallies {
		n += t.Count
	}
	return n
}

// sortedTallies are the errors, the most frequent first.
func (m *measure) sortedTallies() []*tally {
	return slices.SortedFunc(maps.Values(m.tallies), func(a, b *tally) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Message, b.Message))
	})
}
