package destsim

import (
	"maps"
	"slices"
	"time"
)

// Figures are rates and latencies since Since.
type Figures struct {
	Since       time.Time       `json:"since"`
	InFlight    int64           `json:"calls_in_flight"`
	PeakCalls   int64           `json:"peak_calls_in_flight"`
	Batches     int64           `json:"batches_in_flight"`
	PeakBatches int64           `json:"peak_batches_in_flight"`
	Methods     []MethodFigures `json:"methods"` // those that were called, by name
}

// MethodFigures are the figures of one method; "other" gathers unknown ones.
type MethodFigures struct {
	Method    string `json:"method"`
	Calls     int64  `json:"calls"`
	Errors    int64  `json:"errors"` // calls without a result
	Records   int64  `json:"records"`
	Succeeded int64  `json:"succeeded"`
	Failed    int64  `json:"failed"`
	// Rates over the last ten whole seconds, and the most in one second.
	CallsPerSecond   float64        `json:"calls_per_second"`
	RecordsPerSecond float64        `json:"records_per_second"`
	PeakCalls        int64          `json:"peak_calls_in_a_second"`
	PeakRecords      int64          `json:"peak_records_in_a_second"`
	Latency          LatencyFigures `json:"latency_ms"`
}

// LatencyFigures are in milliseconds; quantiles are up to 6.25 % too high.
type LatencyFigures struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// Figures gives rates, latencies and parallelism since the start or the last
// reset.
func (s *Sim) Figures() Figures {
	m := s.meter
	m.mu.Lock()
	f := Figures{Since: m.since, Methods: []MethodFigures{}}
	m.mu.Unlock()
	f.InFlight, f.PeakCalls = m.calls.now(), m.calls.most.Load()
	f.Batches, f.PeakBatches = m.batches.now(), m.batches.most.Load()
	second := m.clock().Unix()
	sums := m.snapshot()
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		f.Methods = append(f.Methods, m.methods[name].figures(name, sums[name], second))
	}
	return f
}

func (one *methodMeter) figures(name string, sums methodSums, second int64) MethodFigures {
	f := MethodFigures{
		Method: name, Calls: sums.calls, Errors: sums.errors, Records: sums.records,
		Succeeded: sums.succeeded, Failed: sums.failed,
	}
	// The second that is under way would make every rate too low.
	one.mu.Lock()
	for _, s := range one.slots {
		if s.second < second && s.second >= second-rateSpan {
			f.CallsPerSecond += float64(s.calls) / rateSpan
			f.RecordsPerSecond += float64(s.records) / rateSpan
		}
	}
	f.PeakCalls, f.PeakRecords = one.peak.calls, one.peak.records
	one.mu.Unlock()
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	f.Latency = LatencyFigures{
		Mean: sums.seconds * 1000 / float64(sums.calls), P50: ms(sums.quantile(.5)), P90: ms(sums.quantile(.9)),
		P99: ms(sums.quantile(.99)), P999: ms(sums.quantile(.999)), Max: ms(sums.longest),
	}
	return f
}
