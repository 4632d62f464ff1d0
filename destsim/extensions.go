package destsim

// extensions lists what stands beside the protocol in every simulator. The
// meter comes first, so that it counts what faults answer by themselves.
func extensions(s *Sim) []extension {
	s.meter = newMeter(s.clock)
	s.faults = &faultBoard{seed: s.config.Seed, fired: s.meter.faultFired}
	s.journal = &callJournal{}
	return []extension{
		{seams: s.meter.seams(), done: s.meter.done, routes: s.meter.routes(s), endpoints: meterEndpoints, reset: s.meter.reset},
		{seams: s.faults.seams(), routes: s.faults.routes, endpoints: faultEndpoints, reset: s.faults.reset},
		{done: s.journal.add, routes: s.journal.routes, endpoints: journalEndpoints, reset: s.journal.reset},
	}
}
