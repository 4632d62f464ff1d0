package service

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/internal/quantity"
)

// scenario is one scenario on its way: what it has made, called and seen.
type scenario struct {
	*run
	*engine.Findings
	ctx context.Context

	// key, source and pat shadow those of the run where the scenario has a
	// workspace or an organization of its own.
	key    string
	pat    string
	source int64

	extraEndpoints map[string]*endpoint.Endpoint // destinations by the name that the scenario gives them
	dest           *destination                  // the latest
	tests          []*tested                     // connections that a client has tried
	skippedCalls   int                           // so many calls of the destination are not looked at
	certificate    *endpoint.Shown               // certificates of the latest destination with TLS
	described      SimulatorConfig               // what the destination says of its objects
	syncs          []*syncing                    // in the order of their making
	last           *answer                       // of the latest call of the API
	// answers are all calls of the API that the scenario made on purpose.
	answers  []*answer
	batch    []*answer         // of the calls that one step made together
	views    []*view           // what the answers show
	before   map[string]*view  // by kind: the latest one of what has changed since
	words    map[string]string // what stands for {word} in the texts of the scenario
	hints    []string          // of the batch: what each answer is to hold, or ""
	endings  []func(context.Context) error
	trials   []*trial // requests that the scenario is about
	judged   bool     // … and a claim has looked at them
	underWay int64    // the latest run that was triggered by itself
	release  func()   // ends what the destination holds back
	forms    []form   // of names, with what was written
	lists    []listing
	// readings of the lists, the latest last.
	readings [][]reading
	named    namedThings   // what texts of the scenario name in braces
	answered latestAnswers // what claims without a kind speak of
	life     runLife       // runs that begin by themselves or are held back
	repeated *repeatable   // calls that are made again
	noticed  []string      // addresses of the workspace's notifications
	prepared *nextSync     // what the next sync is made from
	orders   []ordered     // syncs to objects with field ordering
	emulated []int64       // destinations that are applications of the service
	planned  *plan         // what the endpoint answers to planning calls
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

// api calls the service's API and remembers the answer.
func (sc *scenario) api(q request) (*answer, error) {
	a, err := sc.send(sc.ctx, sc.Check().ID, sc.signed(q))
	if err != nil {
		return nil, err
	}
	sc.last = a
	sc.answers = append(sc.answers, a)
	return a, nil
}

// must calls the API for something that the scenario only builds on: whatever
// is no success ends it undecided, since another check is about it.
func (sc *scenario) must(q request) (*answer, error) {
	a, err := sc.send(sc.ctx, sc.Check().ID, sc.signed(q))
	switch {
	case err != nil:
		return nil, err
	case !a.OK() || a.Status >= 300 || a.json == nil:
		return nil, engine.Outcome(conformance.Inconclusive, "", "a step on the way was refused: %s", sc.secrets.String(a.short()))
	}
	return a, nil
}

// broken adds a finding about answers of the API.
func (sc *scenario) broken(expected, actual string, where ...*answer) {
	var exchanges []conformance.Exchange
	for _, a := range where {
		exchanges = append(exchanges, a.Exchange())
	}
	sc.Broken(expected, actual, exchanges...)
}

// brokenCall adds a finding about calls that the service made.
func (sc *scenario) brokenCall(expected, actual string, where ...*endpoint.Call) {
	var exchanges []conformance.Exchange
	for _, c := range where {
		exchanges = append(exchanges, sc.exchangeOf(c))
	}
	sc.Broken(expected, actual, exchanges...)
}

// exchangeOf is a call of the service as it stands in a report.
func (sc *scenario) exchangeOf(c *endpoint.Call) conformance.Exchange {
	return c.Exchange(sc.Check().ID, int(sc.numbers.Add(1)))
}

// call makes a call of the API without a body, whatever comes back.
func (sc *scenario) call(method, path string) error {
	_, err := sc.api(request{method: method, path: path})
	return err
}

// heldBy ends a claim that rests on so many things.
func (sc *scenario) heldBy(n int, noun string) error {
	return sc.HeldBy("%s", quantity.Count(n, noun))
}

// someDestination connects an ordinary one unless there is one already.
func (sc *scenario) someDestination() (err error) {
	if sc.dest == nil {
		_, err = sc.connect(connecting{})
	}
	return err
}

// optional is a value that a step may have left. The zero value is none.
type optional[T any] struct {
	value T
	known bool
}

func some[T any](v T) optional[T] { return optional[T]{v, true} }

// get returns the value, and whether there is one.
func (o optional[T]) get() (T, bool) { return o.value, o.known }

// namedThings are what the texts of a scenario name in braces, such as {workspace}.
type namedThings struct {
	account
	secondWorkspace     optional[int64]
	dataset             optional[int64]
	invitation          optional[int64]
	workspaceInvitation optional[int64]
	made                optional[int64]  // what a call has made last
	member              optional[string] // the e-mail address of who joined last
	foreignWorkspace    optional[int64]
	foreignOrganization optional[string] // its personal access token

	fixed map[string]string // {this_name} and others that stay the same throughout
}

// account is where the scenario works.
type account struct{ organization, workspace, user optional[int64] }

// text returns what a name stands for, and whether it stands for anything.
func (n *namedThings) text(name string) (string, bool) {
	switch name {
	case "member":
		return n.member.get()
	case "foreign_organization":
		return n.foreignOrganization.get()
	}
	id, known := map[string]optional[int64]{
		"organization": n.organization, "workspace": n.workspace, "user": n.user,
		"second_workspace": n.secondWorkspace, "foreign_workspace": n.foreignWorkspace,
		"invitation": n.invitation, "workspace_invitation": n.workspaceInvitation,
		"dataset": n.dataset, "made": n.made,
	}[name]
	if !known {
		text, known := n.fixed[name]
		return text, known
	}
	return strconv.FormatInt(id.value, 10), id.known
}

// fix lets a name stand for the same text throughout the scenario.
func (n *namedThings) fix(name, text string) {
	if n.fixed == nil {
		n.fixed = map[string]string{}
	}
	n.fixed[name] = text
}

// latestAnswers is what claims without a kind speak of.
type latestAnswers struct {
	latest      []*answer     // of the latest When; none: the last call of the API
	callsBefore int           // calls that the destination had got before it
	listed      optional[int] // how often a list shows the destination
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
	for _, a := range sc.batch {
		look(a)
	}
	return sc.heldBy(len(sc.batch), noun)
}

// eachCall looks at every call of a method, or of any, that the destination has got.
func (sc *scenario) eachCall(method string, look func(*endpoint.Call)) error {
	calls, err := sc.receivedOf(method)
	if err != nil {
		return err
	}
	for _, c := range calls {
		look(c)
	}
	return sc.heldBy(len(calls), "call")
}

// eachView looks at every thing of a kind that was shown.
func (sc *scenario) eachView(kind string, look func(*view) error) error {
	all, err := sc.looked(kind)
	if err != nil {
		return err
	}
	for _, v := range all {
		if err := look(v); err != nil {
			return err
		}
	}
	return sc.heldBy(len(all), "look")
}

// eachReading looks at every page that was read last.
func (sc *scenario) eachReading(noun string, look func(reading)) error {
	all, err := sc.lastReading()
	if err != nil {
		return err
	}
	for _, r := range all {
		look(r)
	}
	return sc.heldBy(len(all), noun)
}
