package service

import "github.com/destkit/destkit/conformance"

// topicsSteps are for MDL and TPC: models and topics (spec 2.11, 2.12).
func topicsSteps() []conformance.Step {
	return []conformance.Step{}
}
