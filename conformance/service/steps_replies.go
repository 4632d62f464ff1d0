package service

import "github.com/destkit/destkit/conformance"

// repliesSteps are for RPLY: replies that break the protocol (spec 7.2).
func repliesSteps() []conformance.Step {
	return []conformance.Step{}
}
