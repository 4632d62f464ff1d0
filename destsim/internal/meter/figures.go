package meter

import (
	"maps"
	"slices"
	"time"
)

// Figures are rates and latencies since Since.
type Figures struct {
	Since                time.Time
	Calls, PeakCalls     int64 // at once
	Batches, PeakBatches int64 // at once
	Methods              []Method
}

// Method are the figures of one method; "other" gathers unknown ones.
type Method struct {
	Name                                      string
	Calls, Errors, Records, Succeeded, Failed int64
	// Rates over the last ten whole seconds, and the most in one second.
	CallsPerSecond, RecordsPerSecond float64
	PeakCalls, PeakRecords           int64
	Latency                          Latency
}

// Latency is in milliseconds.
type Latency struct{ Mean, P50, P90, P99, P999, Max float64 }

// Figures gives rates, latencies and parallelism since the start or the last
// reset, methods in the order of their names.
func (m *Meter) Figures() Figures {
	m.mu.Lock()
	f := Figures{Since: m.since}
	m.mu.Unlock()
	f.Calls, f.PeakCalls = m.calls.now(), m.calls.most.Load()
	f.Batches, f.PeakBatches = m.batches.now(), m.batches.most.Load()
	second := m.clock().Unix()
	all := m.snapshot()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f.Methods = append(f.Methods, m.methods[name].figures(name, all[name], second))
	}
	return f
}

func (one *method) figures(name string, s sums, second int64) Method {
	f := Method{Name: name, Calls: s.calls, Errors: s.errors, Records: s.records, Succeeded: s.succeeded, Failed: s.failed}
	// The second that is under way would make every rate too low.
	one.mu.Lock()
	for _, slot := range one.slots {
		if slot.second < second && slot.second >= second-rateSpan {
			f.CallsPerSecond += float64(slot.calls) / rateSpan
			f.RecordsPerSecond += float64(slot.records) / rateSpan
		}
	}
	f.PeakCalls, f.PeakRecords = one.peak.calls, one.peak.records
	one.mu.Unlock()
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	f.Latency = Latency{
		Mean: s.seconds * 1000 / float64(s.calls), P50: ms(s.quantile(.5)), P90: ms(s.quantile(.9)),
		P99: ms(s.quantile(.99)), P999: ms(s.quantile(.999)), Max: ms(s.longest),
	}
	return f
}
