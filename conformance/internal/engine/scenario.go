package engine

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cucumber/godog"
	messages "github.com/cucumber/messages/go/v21"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine/pathless"
	"github.com/destkit/destkit/internal/lists"
)

func init() { pathless.End() }

// Step is one step definition: a sentence and what it does to the actor of a scenario.
type Step struct {
	pattern *regexp.Regexp
	bind    func(actor any) any
}

// NewStep declares a sentence for actors of type A. The function that bind returns has one
// argument for each group of the pattern (and a *Table last), and returns an error or nothing;
// see Outcome and Findings.Held.
func NewStep[A any](pattern string, bind func(A) any) Step {
	return Step{pattern: regexp.MustCompile(pattern), bind: func(actor any) any { return bind(actor.(A)) }}
}

// runScenario runs the steps of a check until one does not hold; negated counts as its opposite.
func runScenario(ctx context.Context, c *conformance.Check, known []Step, actor any, negated string) *outcome {
	got := &collector{negated: negated}
	used, again := usedSteps.Load(c.Source)
	if again {
		known = used.([]Step)
	}
	got.run(ctx, c, known, func(d Step) any { return d.bind(actor) })
	if !again && len(got.undefined) == 0 {
		usedSteps.Store(c.Source, lists.Where(known, func(d Step) bool { return slices.Contains(got.patterns, d.pattern) }))
	}
	return cmp.Or(got.result, &outcome{status: conformance.Pass})
}

// usedSteps are the definitions that a scenario uses: with them alone it takes half the time.
var usedSteps sync.Map // source -> []Step

// undefinedSteps are the steps of a check that have not exactly one definition.
func undefinedSteps(c *conformance.Check, known []Step) []string {
	got := &collector{}
	got.run(context.Background(), c, known, func(Step) any { return func() {} })
	return got.undefined
}

// claimsOf are the claims of a check with these texts as functions of an actor.
func claimsOf(c *conformance.Check, known []Step, actor any, texts []string) []func() error {
	var out []func() error
	got := &collector{}
	keep := func(claim func() error) {
		if slices.Contains(texts, got.step) {
			out = append(out, claim)
		}
	}
	got.run(context.Background(), c, known, func(d Step) any { return claimOf(d.bind(actor), keep) })
	return out
}

// claimOf is a step that does not act: it gives keep what a claim would call.
func claimOf(step any, keep func(func() error)) any {
	switch do := step.(type) {
	case func() error:
		return func() { keep(do) }
	case func(string) error:
		return func(a string) { keep(func() error { return do(a) }) }
	case func(string, string) error:
		return func(a, b string) { keep(func() error { return do(a, b) }) }
	case func(string, string, string) error:
		return func(a, b, c string) { keep(func() error { return do(a, b, c) }) }
	}
	return func() {}
}

// collector is the formatter to which godog reports the steps of one scenario.
type collector struct {
	negated   string
	step      string           // the latest one; "" as long as none was run
	result    *outcome         // of the first step that does not hold
	patterns  []*regexp.Regexp // of the steps that are defined
	undefined []string
}

var (
	collectors sync.Map // suite name -> *collector
	suiteCount atomic.Uint64
)

func init() {
	godog.Format("destkit", "collects the outcome of a scenario", func(suite string, _ io.Writer) godog.Formatter {
		got, _ := collectors.Load(suite)
		return got.(*collector)
	})
}

// run has godog run the scenario of a check. The exit code of godog plays no part: a run
// that matches nothing exits 0, and a skipped scenario counts as passed.
func (got *collector) run(ctx context.Context, c *conformance.Check, known []Step, bind func(Step) any) {
	name := fmt.Sprintf("%s-%d", c.ID, suiteCount.Add(1))
	collectors.Store(name, got)
	defer collectors.Delete(name)
	suite := godog.TestSuite{
		Name: name,
		ScenarioInitializer: func(sc *godog.ScenarioContext) {
			for _, d := range known {
				sc.Step(d.pattern, bind(d))
			}
		},
		Options: &godog.Options{
			Format: "destkit", Output: io.Discard, Strict: true, NoColors: true, DefaultContext: ctx,
			FeatureContents: []godog.Feature{{Name: c.File, Contents: []byte(c.Source)}},
		},
	}
	suite.Run()
	if got.step == "" {
		got.fault("no step was run")
	}
}

func (got *collector) keep(o *outcome) { got.result = cmp.Or(got.result, o) }

func (got *collector) fault(what string) {
	got.keep(&outcome{status: conformance.HarnessError, reason: what})
}

type stepDefinition = godog.StepDefinition

// Defined notes a step that has not exactly one definition.
func (got *collector) Defined(_ *messages.Pickle, s *messages.PickleStep, d *stepDefinition) {
	if got.step = s.Text; d == nil {
		got.undefined = append(got.undefined, s.Text)
		return
	}
	got.patterns = append(got.patterns, d.Expr)
}

// Passed notes a claim that holds although the scenario expects its opposite.
func (got *collector) Passed(_ *messages.Pickle, s *messages.PickleStep, _ *stepDefinition) {
	if got.negated != "" && s.Text == got.negated {
		got.keep(&outcome{status: conformance.Fail, reason: "negated"})
	}
}

// Failed notes the outcome of the step that ends the scenario.
func (got *collector) Failed(_ *messages.Pickle, s *messages.PickleStep, _ *stepDefinition, err error) {
	if o := asOutcome(err); s.Text != got.negated || o.status != conformance.Fail {
		got.keep(o)
	}
}

// Pending, Undefined and Ambiguous report steps that godog cannot call.
func (got *collector) Pending(_ *messages.Pickle, s *messages.PickleStep, _ *stepDefinition) {
	got.fault("step is pending: " + s.Text)
}

func (got *collector) Undefined(_ *messages.Pickle, s *messages.PickleStep, _ *stepDefinition) {
	got.fault("step is not defined: " + s.Text)
}

func (got *collector) Ambiguous(_ *messages.Pickle, s *messages.PickleStep, _ *stepDefinition, _ error) {
	got.fault("step is ambiguous: " + s.Text)
}

// TestRunStarted and the other methods make the formatter of godog.
func (*collector) TestRunStarted()                                                 {}
func (*collector) Feature(*messages.GherkinDocument, string, []byte)               {}
func (*collector) Pickle(*messages.Pickle)                                         {}
func (*collector) Skipped(*messages.Pickle, *messages.PickleStep, *stepDefinition) {}
func (*collector) Summary()                                                        {}

// Table is the table below a step, in the type that godog hands over.
type Table = messages.PickleTable

// Rows returns the cells of every row of a table, the first row included.
func Rows(t *Table) [][]string {
	return lists.Of(t.Rows, func(row *messages.PickleTableRow) []string {
		return lists.Of(row.Cells, func(cell *messages.PickleTableCell) string { return cell.Value })
	})
}
