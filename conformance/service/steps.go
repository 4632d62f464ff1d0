// Package service judges the other side of the protocol: a service, by its REST
// API and by how it calls destinations (spec 2 to 9). It drives the service
// through its API and watches it through destinations of its own, the endpoints:
// every connection that a scenario makes leads to a simulated destination, whose
// every call is recorded and can be answered by hand.
//
// It refuses to know the service's code and the simulator's: a simulator is
// handed in, and so is whatever listens.
package service

import (
	"slices"
	"sync"

	"github.com/destkit/destkit/conformance/internal/engine"
)

// steps are all sentences that a feature file of the suite may use.
var steps = sync.OnceValue(func() []engine.Step {
	return slices.Concat(
		callSteps(), runSteps(), envelopeSteps(), batchSteps(), transportSteps(),
		listsSteps(), failuresSteps(), versionsSteps(), organizationSteps(), viewSteps(),
		destinationsSteps(), objectsSteps(), sourcesSteps(), syncsSteps(), mappingsSteps(),
		trustSteps(), planningSteps(), repliesSteps(), paceSteps(), throttlingSteps(), timeoutsSteps(),
		retriesSteps(), operationsSteps(), countersSteps(), alertsSteps(), lifeSteps(),
	)
})

// Steps lists the sentences that a feature file may use, as regular expressions.
func Steps() []string { return (&engine.Suite{Steps: steps()}).Sentences() }

// step declares a sentence; the function that bind returns has one argument for
// each group of the pattern.
func step(pattern string, bind func(*scenario) any) engine.Step {
	return engine.NewStep(pattern, bind)
}
