package service

import "github.com/destkit/destkit/conformance"

// destinationsSteps are for DST: connections to destinations (spec 2.2).
func destinationsSteps() []conformance.Step {
	return []conformance.Step{}
}
