package service

import "github.com/destkit/destkit/conformance"

// syncRunsSteps are for RUN: the resource of a sync run (spec 2.9).
func syncRunsSteps() []conformance.Step {
	return []conformance.Step{}
}
