package server

// countersViolations break the rules of CNT: the counters of a run (spec 2.9).
func countersViolations() []violation {
	return []violation{}
}
