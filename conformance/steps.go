package conformance

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"
)

// Step is one step definition: a sentence and what it does to the actor of a
// scenario.
type Step struct {
	pattern *regexp.Regexp
	bind    func(actor any) any
}

// NewStep declares a sentence by a regular expression for the actors of a suite,
// of type A. The function that bind returns has one argument for each group of
// the pattern (and a *wire.DataTable last), and returns an error or
// nothing; see Outcome and Findings.Held.
func NewStep[A any](pattern string, bind func(A) any) Step {
	return Step{pattern: regexp.MustCompile(pattern), bind: func(actor any) any { return bind(actor.(A)) }}
}

// undefinedSteps returns the steps of a check that no definition, or more than
// one, understands.
func undefinedSteps(c *Check, known []Step) []string {
	var out []string
	for _, text := range c.Steps {
		n := 0
		for _, d := range known {
			if d.pattern.MatchString(sentence(text)) {
				n++
			}
		}
		if n != 1 {
			out = append(out, text)
		}
	}
	return out
}

// sentence is a step without its keyword.
func sentence(step string) string {
	_, rest, _ := strings.Cut(step, " ")
	return rest
}

// runScenario runs the steps of a check with an actor.
func runScenario(c *Check, known []Step, actor any, negated string) *outcome {
	read := parsed(c, known, actor)
	if read.odd != nil {
		return read.odd
	}
	return read.run(actor, negated)
}

// parsedScenario is a scenario that was read and matched: what to call, with which arguments.
type parsedScenario struct {
	steps []boundStep
	odd   *outcome // why it cannot be run
}

type boundStep struct {
	text string
	of   Step
	args []reflect.Value
}

var scenarios sync.Map // scenarioKey -> func() *parsedScenario

type scenarioKey struct {
	source string
	known  *Step
}

// parsed reads a scenario and matches its steps, once: reading it anew for
// each run takes a quarter of the time of a judge.
func parsed(c *Check, known []Step, actor any) *parsedScenario {
	key := scenarioKey{source: string(c.source)}
	if len(known) > 0 {
		key.known = &known[0]
	}
	found, _ := scenarios.LoadOrStore(key, sync.OnceValue(func() *parsedScenario { return parseScenario(c, known, actor) }))
	return found.(func() *parsedScenario)()
}

// run calls the steps until one does not hold. The Then step that is negated counts as
// its opposite.
func (s *parsedScenario) run(actor any, negated string) *outcome {
	var result *outcome
	keep := func(o *outcome) {
		result = cmp.Or(result, o)
	}
	for _, b := range s.steps {
		err := b.call(actor)
		switch opposite := negated != "" && negated == b.text; {
		case err == nil && opposite:
			keep(&outcome{status: Fail, reason: "negated"})
		case err == nil:
		default:
			if o := asOutcome(err); !opposite || o.status != Fail {
				keep(o)
			}
			return cmp.Or(result, &outcome{status: Pass})
		}
	}
	return cmp.Or(result, &outcome{status: Pass})
}

// call binds the step to the actor and calls it; a panic is its error.
func (b boundStep) call(actor any) (err error) {
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("%v", e)
		}
	}()
	out := reflect.ValueOf(b.of.bind(actor)).Call(b.args)
	if len(out) == 0 {
		return nil
	}
	err, _ = out[len(out)-1].Interface().(error)
	return err
}
