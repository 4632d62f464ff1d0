package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// scenario is one scenario on its way: what it has made, called and seen.
type scenario struct {
	*run
	*engine.Findings
	ctx context.Context

	// key, source and pat shadow those of the run where the scenario has a
	// workspace or an organization of its own.
	key, pat string
	source   int64

	dest   *destination      // the latest
	before map[string]*view  // by kind: the latest one of what has changed since
	words  map[string]string // what stands for {word} in the texts of the scenario
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
	trials      []*trial  // requests that the scenario is about
	judged      bool      // … and a claim has looked at them
	release     func()    // ends what the destination holds back
	life        runLife   // runs that begin by themselves or are held back
	noticed     []string  // addresses of the workspace's notifications
	prepared    *nextSync // what the next sync is made from
	emulated    []int64   // destinations that are applications of the service
}

// sightings are what a scenario has seen.
type sightings struct {
	skippedCalls int       // so many calls of the destination are not looked at
	answers      []*answer // of all calls of the API that the scenario made on purpose
	batch        []*answer // of the latest call, or of those that one step made together
	views        []*view   // what the answers show
	lists        []listing
	readings     [][]reading // of the lists, the latest last
	repeated     *repeatable // calls that are made again
}

func newScenario(ctx context.Context, r *run, found *engine.Findings) *scenario {
	return &scenario{run: r, Findings: found, ctx: ctx, before: map[string]*view{}, words: map[string]string{},
		key: r.key, pat: r.target.PersonalAccessToken, source: r.source}
}

// end undoes what the scenario began, the latest first, also when the run was
// interrupted. What cannot be deleted is tried again at the end of the run.
func (sc *scenario) end() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(sc.ctx), callTimeout)
	defer cancel()
	var errs []error
	for i := len(sc.endings) - 1; i >= 0; i-- {
		errs = append(errs, sc.endings[i](ctx))
	}
	return errors.Join(errs...)
}

// called makes a name of the scenario: what it names was made by it, and only
// that is ever deleted.
func (sc *scenario) called(what string) string {
	return fmt.Sprintf("%s%s-%d", sc.prefix(sc.Check().ID), what, sc.numbers.Add(1))
}

// signed gives a call the token of the scenario, unless it brings one.
func (sc *scenario) signed(q request) request {
	if q.token == "" && !q.control {
		switch q.as {
		case asWorkspace:
			q.token = sc.key
		case asOrganization:
			q.token = sc.pat
		}
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

// must calls the API for something that the scenario only builds on: whatever
// is no success ends it undecided, since another check is about it.
func (sc *scenario) must(q request) *answer {
	a := sc.call(q)
	if !a.OK() || a.Status >= 300 || a.json == nil {
		undecided("a step on the way was refused: %s", sc.secrets.String(a.short()))
	}
	return a
}

// broken adds a finding about answers of the API.
func (sc *scenario) broken(expected, actual string, where ...*answer) {
	sc.Broken(expected, actual, lists.Of(where, func(a *answer) conformance.Exchange { return a.Exchange() })...)
}

// brokenCall adds a finding about calls that the service made.
func (sc *scenario) brokenCall(expected, actual string, where ...*endpoint.Call) {
	sc.Broken(expected, actual, lists.Of(where, sc.exchangeOf)...)
}

// exchangeOf is a call of the service as it stands in a report.
func (sc *scenario) exchangeOf(c *endpoint.Call) conformance.Exchange {
	return c.Exchange(sc.Check().ID, int(sc.numbers.Add(1)))
}

// last is the answer to the latest call of the API.
func (sc *scenario) last() *answer { return sc.batch[len(sc.batch)-1] }

// heldBy ends a claim that rests on so many things.
func (sc *scenario) heldBy(n int, noun string) error {
	return sc.HeldBy("%s", quantity.Count(n, noun))
}

// someDestination connects an ordinary one unless there is one already.
func (sc *scenario) someDestination() {
	if sc.dest == nil {
		sc.connect(connecting{})
	}
}

// runLife is the state of runs that begin by themselves or are held back.
type runLife struct {
	due     due
	runs    []int64 // in the order of their beginning
	batches int     // that had come when a run was canceled
}

// repeatable are calls that are made again, and what they were answered.
type repeatable struct {
	calls   *engine.Table
	answers []*answer
}

// eachAnswer looks at every answer of the calls that one step made together.
func (sc *scenario) eachAnswer(noun string, look func(*answer)) error {
	if len(sc.batch) == 0 {
		undecided("the API was not called")
	}
	for _, a := range sc.batch {
		look(a)
	}
	return sc.heldBy(len(sc.batch), noun)
}

// eachCall looks at every call of a method, or of any, that the destination has got.
func (sc *scenario) eachCall(method string, look func(*endpoint.Call)) error {
	calls := sc.receivedOf(method)
	for _, c := range calls {
		look(c)
	}
	return sc.heldBy(len(calls), "call")
}

// eachReading looks at every page that was read last.
func (sc *scenario) eachReading(noun string, look func(reading)) error {
	all := sc.lastReading()
	for _, r := range all {
		look(r)
	}
	return sc.heldBy(len(all), noun)
}
