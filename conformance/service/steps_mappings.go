package service

import "github.com/destkit/destkit/conformance"

// mappingsSteps are for MAP: mappings (spec 2.7).
func mappingsSteps() []conformance.Step {
	return []conformance.Step{}
}
