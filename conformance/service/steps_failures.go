package service

import "github.com/destkit/destkit/conformance"

// failuresSteps are for FLT: refused calls of the API (spec 7.1).
func failuresSteps() []conformance.Step {
	return []conformance.Step{}
}
