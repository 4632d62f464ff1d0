package service

import "github.com/destkit/destkit/conformance"

// trustSteps are for CERT: certificates and tokens of destinations (spec 5.2).
func trustSteps() []conformance.Step {
	return []conformance.Step{}
}
