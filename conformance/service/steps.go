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
	"reflect"
	"slices"
	"sync"

	"github.com/destkit/destkit/conformance/internal/engine"
)

// steps are all sentences that a feature file of the suite may use.
var steps = sync.OnceValue(func() []engine.Step {
	return slices.Concat(
		callSteps(), runSteps(), envelopeSteps(), batchSteps(),
		listsSteps(), failuresSteps(), organizationSteps(), viewSteps(),
		destinationsSteps(), objectsSteps(), sourcesSteps(), syncsSteps(),
		trustSteps(), planningSteps(), repliesSteps(), paceSteps(), throttlingSteps(), timeoutsSteps(),
		retriesSteps(), operationsSteps(), countersSteps(), lifeSteps(),
	)
})

// Steps lists the sentences that a feature file may use, as regular expressions.
func Steps() []string { return (&engine.Suite{Steps: steps()}).Sentences() }

// step declares a sentence; do has the scenario as its first argument, and one more for
// each group of the pattern. It returns an error, where it is a claim, or nothing, and
// may be stopped.
func step(pattern string, do any) engine.Step {
	function := reflect.ValueOf(do)
	var in []reflect.Type
	for i := 1; i < function.Type().NumIn(); i++ {
		in = append(in, function.Type().In(i))
	}
	bound := reflect.FuncOf(in, []reflect.Type{reflect.TypeFor[error]()}, false)
	return engine.NewStep(pattern, func(sc *scenario) any {
		return reflect.MakeFunc(bound, func(args []reflect.Value) []reflect.Value {
			err := caught(func() {
				for _, out := range function.Call(slices.Insert(args, 0, reflect.ValueOf(sc))) {
					outcome, _ := out.Interface().(error)
					stop(outcome)
				}
			})
			return []reflect.Value{reflect.ValueOf(&err).Elem()}
		}).Interface()
	})
}

// stopped is what a step panics with that cannot go on, as a test does that fails: its
// outcome is that of the scenario.
type stopped struct{ outcome error }

// stop ends the step that is under way; nil lets it go on.
func stop(outcome error) {
	if outcome != nil {
		panic(stopped{outcome})
	}
}

// undecided ends a step for want of something to look at.
func undecided(format string, args ...any) {
	stop(engine.Inconclusive("", format, args...))
}

// caught does a step, or a part of one, and returns what has stopped it.
func caught(do func()) (err error) {
	defer func() {
		failure := recover()
		if s, is := failure.(stopped); is {
			err = s.outcome
		} else if failure != nil {
			panic(failure)
		}
	}()
	do()
	return nil
}
