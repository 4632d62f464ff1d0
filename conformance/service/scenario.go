package service

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// steps are all sentences that a feature file of the suite may use.
var steps = sync.OnceValue(func() []engine.Step {
	return lists.Of(slices.Concat(
		callSteps, runSteps, requestSteps, listSteps, organizationSteps, viewSteps, destinationSteps, objectSteps, sourceSteps,
		syncSteps, planningSteps, replySteps, paceSteps, refusalSteps, recordSteps, lifeSteps,
	), step.bind)
})

// Steps lists the sentences that a feature file may use, as regular expressions.
func Steps() []string { return (&engine.Suite{Steps: steps()}).Sentences() }

// step is a sentence and what it does: do has the scenario and an argument for each group of the pattern, returns an error
// where it is a claim, or nothing, and may be stopped.
type step struct {
	pattern string
	do      any
}

func (s step) bind() engine.Step {
	function := reflect.ValueOf(s.do)
	in := slices.Collect(function.Type().Ins())[1:]
	bound := reflect.FuncOf(in, []reflect.Type{reflect.TypeFor[error]()}, false)
	return engine.NewStep(s.pattern, func(sc *scenario) any {
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

// stopped is what a step that cannot go on panics with: its outcome is that of the scenario.
type stopped struct{ outcome error }

// stop ends the step that is under way; nil lets it go on.
func stop(outcome error) {
	if outcome != nil {
		panic(stopped{outcome})
	}
}

// stopAt ends a step that the judge itself has failed at: doing is what it did.
func stopAt(err error, doing string, args ...any) {
	if err != nil {
		stop(fmt.Errorf(doing+": %w", append(args, err)...))
	}
}

// undecided ends a step for want of something to look at.
func undecided(format string, args ...any) { stop(engine.Inconclusive("", format, args...)) }

// mustSee ends a step undecided where there are none of the things that it looks at.
func mustSee(n int, missing string, args ...any) {
	if n == 0 {
		undecided(missing, args...)
	}
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

// scenario is one scenario on its way: what it has made, called and seen.
type scenario struct {
	*run
	*engine.Findings
	ctx context.Context

	// key, source and pat shadow those of the run for a separate workspace or organization.
	key, pat string
	source   int64

	dest   *destination      // the latest
	next   nextSync          // the next sync
	before map[string]*view  // by kind: the latest one of what has changed since
	words  map[string]string // replacements of {word} in the texts of the scenario
	belongings
	sightings
}

// belongings are what a scenario has made and what it waits for.
type belongings struct {
	redirected  *endpoint.Endpoint // where the latest destination sends its calls on to
	tests       []*tested          // connections that a client has tried
	certificate *endpoint.Shown    // certificates of the latest destination with TLS
	syncs       []*syncing         // in the order of their making
	endings     []func(context.Context) error
	trials      []*trial // requests that the scenario is about
	judged      bool     // … and a claim has looked at them
	release     func()   // ends what the destination holds back
	life        runLife  // runs that begin by themselves or are held back
	noticed     []string // addresses of the workspace's notifications
	emulated    []int64  // destinations that are applications of the service
}

// sightings are what a scenario has seen.
type sightings struct {
	skippedCalls  int       // so many calls of the destination are not looked at
	answers       []*answer // of all calls of the API that the scenario made on purpose
	batch         []*answer // of the latest call, or of those that one step made together
	views         []*view   // what the answers show
	lists         []listing
	readings      [][]reading   // of the lists, the latest last
	repeated      *engine.Table // calls that are made again
	firstAnswered []*answer     // what those were answered first
}

func newScenario(ctx context.Context, r *run, found *engine.Findings) *scenario {
	return &scenario{
		run: r, Findings: found, ctx: ctx, key: r.key, pat: r.target.PersonalAccessToken, source: r.source,
		next: nextSync{over: map[string]any{}}, before: map[string]*view{}, words: map[string]string{},
		belongings: belongings{release: func() {}},
	}
}

// end undoes the actions of the scenario, the latest first, also of an interrupted one. The run deletes leftovers.
func (sc *scenario) end() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(sc.ctx), callTimeout)
	defer cancel()
	var errs []error
	for _, ending := range slices.Backward(sc.endings) {
		errs = append(errs, ending(ctx))
	}
	return errors.Join(errs...)
}

// called makes a name of the scenario: only what has one is ever deleted.
func (sc *scenario) called(what string) string {
	return fmt.Sprintf("%s%s-%d", sc.prefix(sc.Check().ID), what, sc.numbers.Add(1))
}

// signed gives a call the token of the scenario, unless it brings one.
func (sc *scenario) signed(q request) request {
	if q.token == "" && !q.control {
		q.token = map[identity]string{asWorkspace: sc.key, asOrganization: sc.pat}[q.as]
	}
	return q
}

// call calls the service's API with the token of the scenario.
func (sc *scenario) call(q request) *answer {
	a, err := sc.send(sc.ctx, sc.Check().ID, sc.signed(q))
	stop(err)
	return a
}

// api calls the service's API and remembers the answer.
func (sc *scenario) api(q request) *answer {
	a := sc.call(q)
	sc.batch = []*answer{a}
	sc.answers = append(sc.answers, a)
	return a
}

// must calls the API for what the scenario only builds on: without success it ends undecided.
func (sc *scenario) must(q request) *answer {
	a := sc.call(q)
	if !a.OK() || a.Status >= 300 || a.json == nil {
		sc.undecidedBy(a)
	}
	return a
}

// undecidedBy ends a step for want of what an answer has refused.
func (sc *scenario) undecidedBy(a *answer) {
	undecided("a step on the way was refused: %s", sc.secrets.String(a.short()))
}

// get reads something that must be there.
func (sc *scenario) get(path string) *answer { return sc.must(request{method: "GET", path: path}) }

// broken adds a finding about answers of the API.
func (sc *scenario) broken(expected, actual string, where ...*answer) {
	sc.Broken(expected, actual, lists.Of(where, func(a *answer) conformance.Exchange { return a.Exchange() })...)
}

// expect adds such a finding unless something is so.
func (sc *scenario) expect(is bool, expected, actual string, where ...*answer) {
	if !is {
		sc.broken(expected, actual, where...)
	}
}

// brokenCall adds a finding about calls that the service made.
func (sc *scenario) brokenCall(expected, actual string, where ...*endpoint.Call) {
	sc.Broken(expected, actual, lists.Of(where, sc.exchangeOf)...)
}

// expectCall adds such a finding unless something is so.
func (sc *scenario) expectCall(is bool, expected, actual string, where ...*endpoint.Call) {
	if !is {
		sc.brokenCall(expected, actual, where...)
	}
}

// exchangeOf is a call of the service in the form of a report.
func (sc *scenario) exchangeOf(c *endpoint.Call) conformance.Exchange {
	return c.Exchange(sc.Check().ID, int(sc.numbers.Add(1)))
}

// last is the answer to the latest call of the API.
func (sc *scenario) last() *answer { return sc.batch[len(sc.batch)-1] }

// heldBy ends a claim that rests on so many things.
func (sc *scenario) heldBy(n int, noun string) error { return sc.HeldBy("%s", quantity.Count(n, noun)) }

// each looks at all of the things that a claim rests on.
func each[T any](sc *scenario, noun string, all []T, look func(T)) error {
	for _, one := range all {
		look(one)
	}
	return sc.heldBy(len(all), noun)
}

// different is how many different texts there are.
func different(texts []string) int { return len(slices.Compact(slices.Sorted(slices.Values(texts)))) }

// eachAnswer looks at every answer of the calls that one step made together.
func (sc *scenario) eachAnswer(noun string, look func(*answer)) error {
	mustSee(len(sc.batch), "the API was not called")
	return each(sc, noun, sc.batch, look)
}

// eachCall looks at every call of a method, or of any, that the destination has got.
func (sc *scenario) eachCall(method string, look func(*endpoint.Call)) error {
	return each(sc, "call", sc.receivedOf(method), look)
}

// someDestination connects an ordinary one unless there is one already.
func (sc *scenario) someDestination() {
	if sc.dest == nil {
		sc.connect(connecting{})
	}
}
