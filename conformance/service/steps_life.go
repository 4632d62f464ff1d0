package service

import "github.com/destkit/destkit/conformance"

// lifeSteps are for LIFE: schedules, pauses and the life of a run (spec 2.6, 3).
func lifeSteps() []conformance.Step {
	return []conformance.Step{}
}
