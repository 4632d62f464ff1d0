package service

import "github.com/destkit/destkit/conformance"

// retriesSteps are for RTRY: what is sent again (spec 7.2).
func retriesSteps() []conformance.Step {
	return []conformance.Step{}
}
