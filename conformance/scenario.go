package conformance

import (
	"context"
	"fmt"
	"io"
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
		planningSteps(), speedSteps(), objectSteps(), recordSteps(), valueSteps(), resultSteps(), evidenceSteps(),
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

// collector is the formatter that godog reports to; it keeps the first typed
// outcome that is not a pass. godog's own exit code plays no part: a run that
// matches nothing exits 0 there and a skipped scenario counts as passed.
type collector struct {
	passed  int
	result  *outcome
	negated string // tests: this Then step counts as its opposite
}

var (
	collectors   sync.Map // suite name -> *collector
	suiteCounter atomic.Uint64
)

func init() {
	godog.Format("destkit", "collects typed outcomes", func(suite string, _ io.Writer) godog.Formatter {
		if c, ok := collectors.Load(suite); ok {
			return c.(*collector)
		}
		return &collector{}
	})
}

// runScenario lets godog run the steps of a check with an actor.
func runScenario(ctx context.Context, c *Check, known []Step, actor any, negated string) *outcome {
	name := fmt.Sprintf("%s-%d", c.ID, suiteCounter.Add(1))
	col := &collector{negated: negated}
	collectors.Store(name, col)
	defer collectors.Delete(name)
	suite := godog.TestSuite{
		Name: name,
		ScenarioInitializer: func(sc *godog.ScenarioContext) {
			for _, d := range known {
				sc.Step(d.pattern, d.bind(actor))
			}
		},
		Options: &godog.Options{
			Format: "destkit", Output: io.Discard, Strict: true, NoColors: true, DefaultContext: ctx,
			FeatureContents: []godog.Feature{{Name: c.File, Contents: c.source}},
		},
	}
	suite.Run()
	if col.result != nil {
		return col.result
	}
	if col.passed == 0 {
		return &outcome{status: HarnessError, reason: "no step was run"}
	}
	return &outcome{status: Pass}
}

func (c *collector) keep(o *outcome) {
	if c.result == nil {
		c.result = o
	}
}

// TestRunStarted and the other methods make the formatter of godog.
func (c *collector) TestRunStarted()                                          {}
func (c *collector) Feature(*messages.GherkinDocument, string, []byte)        {}
func (c *collector) Pickle(*messages.Pickle)                                  {}
func (c *collector) Defined(*messages.Pickle, *messages.PickleStep, *stepDef) {}
func (c *collector) Skipped(*messages.Pickle, *messages.PickleStep, *stepDef) {}
func (c *collector) Summary()                                                 {}
func (c *collector) Pending(p *messages.Pickle, s *messages.PickleStep, _ *stepDef) {
	c.keep(&outcome{status: HarnessError, reason: "step is pending: " + s.Text})
}

type stepDef = godog.StepDefinition

// Passed counts a step that held.
func (c *collector) Passed(_ *messages.Pickle, s *messages.PickleStep, _ *stepDef) {
	c.passed++
	if c.negated != "" && c.negated == s.Text {
		c.keep(&outcome{status: Fail, reason: "negated"})
	}
}

// Failed keeps the typed outcome of a step.
func (c *collector) Failed(_ *messages.Pickle, s *messages.PickleStep, _ *stepDef, err error) {
	if c.negated != "" && c.negated == s.Text && asOutcome(err).status == Fail {
		c.passed++
		return
	}
	c.keep(asOutcome(err))
}

// Undefined reports a sentence that nobody understands.
func (c *collector) Undefined(_ *messages.Pickle, s *messages.PickleStep, _ *stepDef) {
	c.keep(&outcome{status: HarnessError, reason: "step is not defined: " + s.Text})
}

// Ambiguous reports a sentence that two definitions understand.
func (c *collector) Ambiguous(_ *messages.Pickle, s *messages.PickleStep, _ *stepDef, err error) {
	c.keep(&outcome{status: HarnessError, reason: "step is ambiguous: " + s.Text})
}
