package service

import "github.com/destkit/destkit/conformance"

// listsSteps are for LST: the list envelope and its limits (spec 2.1, 8).
func listsSteps() []conformance.Step {
	return []conformance.Step{}
}
