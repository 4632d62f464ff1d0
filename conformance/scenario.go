package conformance

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cucumber/godog"
	messages "github.com/cucumber/messages/go/v21"
)

// Step is one step definition: a sentence and what it does to the actor of a
// scenario.
type Step struct {
	pattern *regexp.Regexp
	bind    func(actor any) any
}

// NewStep declares a sentence by a regular expression for the actors of a suite,
// of type A. The function that bind returns has one argument for each group of
// the pattern (and a *Table or a *DocString last), and returns an error or
// nothing; see Outcome and Scene.Held.
func NewStep[A any](pattern string, bind func(A) any) Step {
	return Step{pattern: regexp.MustCompile(pattern), bind: func(actor any) any { return bind(actor.(A)) }}
}

// Table and DocString are what may stand below a step.
type (
	Table     = godog.Table
	DocString = godog.DocString
)

// definition is a step of the destination suite.
type definition = Step

func step(pattern string, bind func(*world) any) definition { return NewStep(pattern, bind) }

// definitions are all sentences that a feature file may use.
var definitions = sync.OnceValue(func() []definition {
	return slices.Concat(
		callSteps(), replySteps(), errorSteps(), httpSteps(), tlsSteps(), authSteps(),
		planningSteps(), speedSteps(), objectSteps(), recordSteps(), valueSteps(), twinSteps(), resultSteps(), evidenceSteps(),
		parallelSteps(), timeSteps(), volumeSteps(), hookSteps(),
	)
})

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
	read := scenarioOf(c, known, actor)
	if read.odd != nil {
		return read.odd
	}
	return read.run(actor, negated)
}

// scenario is a scenario that was read and matched: what to call, with which arguments.
type scenario struct {
	steps []boundStep
	odd   *outcome // why it cannot be run
}

type boundStep struct {
	text string
	of   Step
	args []reflect.Value
}

var (
	scenarios    sync.Map // scenarioKey -> func() *scenario
	suiteCounter atomic.Uint64
)

type scenarioKey struct {
	source string
	known  *Step
}

// scenarioOf has godog read a scenario and match its steps, once: reading it anew for
// each run takes a quarter of the time of a judge.
func scenarioOf(c *Check, known []Step, actor any) *scenario {
	key := scenarioKey{source: string(c.source)}
	if len(known) > 0 {
		key.known = &known[0]
	}
	found, _ := scenarios.LoadOrStore(key, sync.OnceValue(func() *scenario { return readScenario(c, known, actor) }))
	return found.(func() *scenario)()
}

// readScenario lets godog run the scenario with steps that only note their arguments.
// Its own exit code plays no part: a run that matches nothing exits 0 there and a
// skipped scenario counts as passed.
func readScenario(c *Check, known []Step, actor any) *scenario {
	name := fmt.Sprintf("%s-%d", c.ID, suiteCounter.Add(1))
	reading := &reader{}
	readers.Store(name, reading)
	defer readers.Delete(name)
	suite := godog.TestSuite{
		Name: name,
		ScenarioInitializer: func(sc *godog.ScenarioContext) {
			for _, d := range known {
				sc.Step(d.pattern, reading.noting(d, actor))
			}
		},
		Options: &godog.Options{
			Format: "destkit", Output: io.Discard, Strict: true, NoColors: true,
			FeatureContents: []godog.Feature{{Name: c.File, Contents: c.source}},
		},
	}
	suite.Run()
	if reading.odd == nil && len(reading.steps) == 0 {
		reading.odd = &outcome{status: HarnessError, reason: "no step was run"}
	}
	return &reading.scenario
}

// run calls the steps until one does not hold. The Then step that is negated counts as
// its opposite.
func (s *scenario) run(actor any, negated string) *outcome {
	var result *outcome
	keep := func(o *outcome) {
		if result == nil {
			result = o
		}
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

// reader is the formatter to which godog reports what it reads.
type reader struct {
	scenario
	noted []boundStep
}

var readers sync.Map // suite name -> *reader

func init() {
	godog.Format("destkit", "notes the steps of scenarios", func(suite string, _ io.Writer) godog.Formatter {
		if r, ok := readers.Load(suite); ok {
			return r.(*reader)
		}
		return &reader{}
	})
}

// noting is a function with the arguments of a step, which it keeps.
func (r *reader) noting(d Step, actor any) any {
	kind := reflect.TypeOf(d.bind(actor))
	return reflect.MakeFunc(kind, func(args []reflect.Value) []reflect.Value {
		r.noted = append(r.noted, boundStep{of: d, args: args})
		out := make([]reflect.Value, kind.NumOut())
		for i := range out {
			out[i] = reflect.Zero(kind.Out(i))
		}
		return out
	}).Interface()
}

func (r *reader) refuse(format string, args ...any) {
	if r.odd == nil {
		r.odd = &outcome{status: HarnessError, reason: fmt.Sprintf(format, args...)}
	}
}

// Passed gives a step that was noted its text.
func (r *reader) Passed(_ *messages.Pickle, s *messages.PickleStep, _ *stepDef) {
	for _, l := range r.noted {
		l.text = s.Text
		r.steps = append(r.steps, l)
	}
	r.noted = nil
}

// TestRunStarted and the other methods make the formatter of godog.
func (r *reader) TestRunStarted()                                          {}
func (r *reader) Feature(*messages.GherkinDocument, string, []byte)        {}
func (r *reader) Pickle(*messages.Pickle)                                  {}
func (r *reader) Defined(*messages.Pickle, *messages.PickleStep, *stepDef) {}
func (r *reader) Skipped(*messages.Pickle, *messages.PickleStep, *stepDef) {}
func (r *reader) Summary()                                                 {}

type stepDef = godog.StepDefinition

// Pending reports a step that was left open.
func (r *reader) Pending(_ *messages.Pickle, s *messages.PickleStep, _ *stepDef) {
	r.refuse("step is pending: %s", s.Text)
}

// Failed reports arguments that are not those of the step.
func (r *reader) Failed(_ *messages.Pickle, s *messages.PickleStep, _ *stepDef, err error) {
	r.refuse("step %s: %v", s.Text, err)
}

// Undefined reports a sentence that nobody understands.
func (r *reader) Undefined(_ *messages.Pickle, s *messages.PickleStep, _ *stepDef) {
	r.refuse("step is not defined: %s", s.Text)
}

// Ambiguous reports a sentence that two definitions understand.
func (r *reader) Ambiguous(_ *messages.Pickle, s *messages.PickleStep, _ *stepDef, _ error) {
	r.refuse("step is ambiguous: %s", s.Text)
}
