package destsim

import "github.com/destkit/destkit/destsim/internal/meter"

// extensions lists what stands beside the protocol in every simulator. The
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
