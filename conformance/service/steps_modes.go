package service

import "github.com/destkit/destkit/conformance"

// modesSteps are for MOD: run modes and alert settings (spec 2.6, 2.8).
func modesSteps() []conformance.Step {
	return []conformance.Step{}
}
