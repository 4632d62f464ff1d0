package service

import "github.com/destkit/destkit/conformance"

// alertsSteps are for ALRT: alerts (spec 2.8, 6).
func alertsSteps() []conformance.Step {
	return []conformance.Step{}
}
