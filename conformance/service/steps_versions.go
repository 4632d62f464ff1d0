package service

import "github.com/destkit/destkit/conformance"

// versionsSteps are for DEP: versions and what is deprecated (spec 9).
func versionsSteps() []conformance.Step {
	return []conformance.Step{}
}
