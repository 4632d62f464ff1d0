package service

import "github.com/destkit/destkit/conformance"

// syncsSteps are for SYN: the resource of a sync (spec 2.6).
func syncsSteps() []conformance.Step {
	return []conformance.Step{}
}
