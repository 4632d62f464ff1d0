package service

import "github.com/destkit/destkit/conformance"

// throttlingSteps are for THR: refusals for too many requests, and timeouts (spec 8).
func throttlingSteps() []conformance.Step {
	return []conformance.Step{}
}
