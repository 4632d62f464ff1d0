package service

import "github.com/destkit/destkit/conformance"

// planningSteps are for PLAN: planning and caching (spec 4.2).
func planningSteps() []conformance.Step {
	return []conformance.Step{}
}
