package service

import "github.com/destkit/destkit/conformance"

// operationsSteps are for OPER: operations and strategies end to end (spec 4.2, 2.6).
func operationsSteps() []conformance.Step {
	return []conformance.Step{}
}
