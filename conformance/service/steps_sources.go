package service

import "github.com/destkit/destkit/conformance"

// sourcesSteps are for SRC: source types, models and topics (spec 2.10 to 2.12).
func sourcesSteps() []conformance.Step {
	return []conformance.Step{}
}
