package destsim

import (
	"net/http"

	"github.com/destkit/destkit/destsim/internal/meter"
	"github.com/destkit/destkit/destsim/rpc"
)

// extensions lists the parts besides the protocol in every simulator. The
// meter comes first, so that it counts what faults answer by themselves.
func extensions(s *Sim) []extension {
	s.meter = meter.New(s.clock)
	s.faults = &faultBoard{seed: s.config.Seed, fired: s.meter.FaultFired}
	s.journal = &callJournal{}
	s.journal.bodies.configure(&s.config)
	return []extension{
		s.metered(),
		{seams: s.faults.seams(), endpoints: s.faults.endpoints(), reset: s.faults.reset},
		{done: s.journal.add, endpoints: s.journal.endpoints(), reset: s.journal.reset},
		{endpoints: s.violationEndpoints(), reset: s.armConfigured},
	}
}

// Results of Sim.Figures.
type (
	Figures        = meter.Figures
	MethodFigures  = meter.Method
	LatencyFigures = meter.Latency
)

// Figures gives rates, latencies and parallelism since the start or the last
// reset.
func (s *Sim) Figures() Figures { return s.meter.Figures() }

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
		done: s.meterCall, reset: s.meter.Reset,
		endpoints: []endpoint{
			{"GET", "/_control/figures", "rates, latencies and parallelism by method", give(func(*http.Request) (any, error) { return s.Figures(), nil })},
			{"GET", "/_control/metrics", "the same for Prometheus", s.meter.Handler(s.storedRecords)},
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

// storedRecords gives every object with the number of its records.
func (s *Sim) storedRecords(yield func(string, int) bool) {
	for _, name := range s.catalogue.Load().names() {
		if _, n, err := s.store.Scan(name, 0, 0); err == nil && !yield(name, n) {
			return
		}
	}
}
