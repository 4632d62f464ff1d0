package judge

import (
	"slices"
	"sync"

	"github.com/destkit/destkit/conformance/internal/engine"
)

// definition is a step of the destination suite.
type definition = engine.Step

func step(pattern string, bind func(*Scenario) any) definition {
	return engine.NewStep(pattern, bind)
}

// Definitions are all sentences that a feature file may use.
var Definitions = sync.OnceValue(func() []definition {
	return slices.Concat(
		callSteps(), ruleSteps(), tlsSteps(), authSteps(),
		planningSteps(), objectSteps(), recordSteps(), valueSteps(), twinSteps(), resultSteps(), evidenceSteps(), keptSteps(),
		parallelSteps(), timeSteps(), fullSteps(), hookSteps(),
	)
})
