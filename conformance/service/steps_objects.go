package service

import "github.com/destkit/destkit/conformance"

// objectsSteps are for DOB: destination objects and fields (spec 2.3 to 2.5).
func objectsSteps() []conformance.Step {
	return []conformance.Step{}
}
