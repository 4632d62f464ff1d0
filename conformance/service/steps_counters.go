package service

import "github.com/destkit/destkit/conformance"

// countersSteps are for CNT: the counters of a run (spec 2.9).
func countersSteps() []conformance.Step {
	return []conformance.Step{}
}
