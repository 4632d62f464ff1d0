package service

import "github.com/destkit/destkit/conformance"

// paceSteps are for PACE: speed, parallelism and the limit of a connection (spec 4.2, 8).
func paceSteps() []conformance.Step {
	return []conformance.Step{}
}
