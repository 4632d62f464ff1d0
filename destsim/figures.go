package destsim

import (
	"net/http"
	"time"

	"github.com/destkit/destkit/destsim/internal/meter"
	"github.com/destkit/destkit/destsim/rpc"
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
	m := s.meter.Figures()
	f := Figures{
		Since: m.Since, InFlight: m.Calls, PeakCalls: m.PeakCalls, Batches: m.Batches, PeakBatches: m.PeakBatches,
		Methods: []MethodFigures{},
	}
	for _, one := range m.Methods {
		f.Methods = append(f.Methods, MethodFigures{
			Method: one.Name, Calls: one.Calls, Errors: one.Errors, Records: one.Records,
			Succeeded: one.Succeeded, Failed: one.Failed,
			CallsPerSecond: one.CallsPerSecond, RecordsPerSecond: one.RecordsPerSecond,
			PeakCalls: one.PeakCalls, PeakRecords: one.PeakRecords, Latency: LatencyFigures(one.Latency),
		})
	}
	return f
}

// metered counts the calls of a simulator.
func (s *Sim) metered() extension {
	return extension{
		seams: seams{
			http: func(*call) bool {
				s.meter.Begin()
				return false
			},
			parsed: func(c *call) {
				if c.method == rpc.MethodSyncBatch {
					c.metered = true
					s.meter.BeginBatch()
				}
			},
		},
		done: s.meterCall, routes: s.meterRoutes, reset: s.meter.Reset,
		endpoints: []endpoint{
			{"GET", "/_control/figures", "rates, latencies and parallelism by method"},
			{"GET", "/_control/metrics", "the same for Prometheus"},
		},
	}
}

// meterCall counts a finished call.
func (s *Sim) meterCall(c *call) {
	m := meter.Call{
		Method: c.method, Batch: c.metered, Refused: c.err != nil, Status: c.answeredStatus(),
		BytesIn: len(c.body), BytesOut: len(c.reply.sent), Start: c.start, End: c.end,
	}
	if c.isBatchText() { // refused batches count too
		m.Records = c.batch.Len()
	}
	m.Succeeded, m.Failed = c.recordCounts()
	s.meter.Done(&m)
}

func (s *Sim) meterRoutes(mux *http.ServeMux) {
	mux.Handle("GET /_control/metrics", s.meter.Handler(func(yield func(string, int) bool) {
		for _, name := range s.catalogue.Load().names() {
			if _, n, err := s.store.Scan(name, 0, 0); err == nil && !yield(name, n) {
				return
			}
		}
	}))
	mux.HandleFunc("GET /_control/figures", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, s.Figures())
	})
}
