package engine

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// scheduler schedules the checks of a run: what a check builds on comes first, what disturbs
// others runs alone and last, a failure is confirmed by a second run.
type scheduler struct {
	suite   *Suite
	opts    *conformance.Options
	checks  []*conformance.Check
	results map[string]*Result
	again   bool // undecided checks have run once more

	mu          sync.Mutex
	pending     []*conformance.Check // not started, in catalogue order
	unconfirmed []*conformance.Check // failed once, to be confirmed alone
	active      int
	idle        int // of those active, the ones that mostly wait
	done        int
	wake        chan struct{}
}

// How many checks are under way at once.
const (
	parallelChecks = 8
	parallelWaits  = 16 // besides them, of those that mostly wait
)

func newScheduler(suite *Suite, opts *conformance.Options, checks []*conformance.Check) *scheduler {
	return &scheduler{suite: suite, opts: opts, checks: checks, pending: slices.Clone(checks), results: map[string]*Result{}, wake: make(chan struct{}, 1)}
}

// run judges every check; those that the run's deadline cuts off are NOT_RUN.
func (sched *scheduler) run(ctx context.Context) {
	width := parallelChecks
	if sched.opts.Serial {
		width = 1
	}
	for {
		c, kind := sched.next(width)
		switch kind {
		case nothingLeft:
			return
		case mustWait:
			<-sched.wake
		case runBeside:
			go sched.first(ctx, c)
		case runAlone:
			sched.first(ctx, c)
		case confirmAlone:
			sched.confirm(ctx, c)
		}
	}
}

type turn int

const (
	nothingLeft turn = iota
	mustWait
	runBeside
	runAlone
	confirmAlone
)

// next picks the next check. Alone means that nothing else is under way.
func (sched *scheduler) next(width int) (*conformance.Check, turn) {
	sched.mu.Lock()
	defer sched.mu.Unlock()
	if sched.idle < parallelWaits { // they take longest
		if c := sched.take(sched.waiting); c != nil {
			sched.idle++
			return c, runBeside
		}
	}
	if sched.active-sched.idle < width {
		if c := sched.take(func(c *conformance.Check) bool { return !c.Alone && !sched.waiting(c) }); c != nil {
			return c, runBeside
		}
	}
	if sched.active > 0 {
		return nil, mustWait
	}
	if c := sched.takeUnconfirmed(); c != nil {
		return c, confirmAlone
	}
	// Load comes late: it uses up records that other checks need.
	for _, late := range []func(c *conformance.Check) bool{
		func(c *conformance.Check) bool { return !c.Load && !c.Last },
		func(c *conformance.Check) bool { return !c.Last },
		func(*conformance.Check) bool { return true },
	} {
		if c := sched.take(late); c != nil {
			return c, runAlone
		}
	}
	if len(sched.pending) > 0 {
		// Only a circle of needs can bring us here; a test keeps them out.
		panic("conformance: checks wait for each other: " + sched.pending[0].ID)
	}
	sched.repeatUndecided()
	if c := sched.takeUnconfirmed(); c != nil {
		return c, confirmAlone
	}
	return nil, nothingLeft
}

// takeUnconfirmed starts the next second run; nil: there is none.
func (sched *scheduler) takeUnconfirmed() *conformance.Check {
	if len(sched.unconfirmed) == 0 {
		return nil
	}
	c := sched.unconfirmed[0]
	sched.unconfirmed = sched.unconfirmed[1:]
	sched.active++
	return c
}

// repeatUndecided has undecided checks that write run once more, alone, where calls have
// disturbed each other.
func (sched *scheduler) repeatUndecided() {
	if sched.again || !slices.ContainsFunc(sched.checks, func(c *conformance.Check) bool { r := sched.results[c.ID]; return r != nil && r.unsteady }) {
		return
	}
	sched.again = true
	for _, c := range sched.checks {
		if r := sched.results[c.ID]; r.is(conformance.Inconclusive) && c.Write {
			sched.unconfirmed = append(sched.unconfirmed, c)
			sched.results[c.ID+" first"] = r
			delete(sched.results, c.ID)
			sched.done--
		}
	}
}

// waiting reports whether a check mostly waits. One at a time is one at a time.
func (sched *scheduler) waiting(c *conformance.Check) bool {
	return sched.suite.Waits != nil && !sched.opts.Serial && sched.suite.Waits(c)
}

// take starts the first check of a kind that is ready; nil: there is none.
func (sched *scheduler) take(kind func(*conformance.Check) bool) *conformance.Check {
	for i, c := range sched.pending {
		if kind(c) && sched.ready(c) {
			sched.pending = slices.Delete(sched.pending, i, i+1)
			sched.active++
			return c
		}
	}
	return nil
}

// check is the one of an id; nil where the run has no such check.
func (sched *scheduler) check(id string) *conformance.Check {
	if i := slices.IndexFunc(sched.checks, func(c *conformance.Check) bool { return c.ID == id }); i >= 0 {
		return sched.checks[i]
	}
	return nil
}

// ready reports whether everything the check builds on has its final result.
func (sched *scheduler) ready(c *conformance.Check) bool {
	return !slices.ContainsFunc(sched.suite.needs(c), func(id string) bool { return sched.results[id] == nil && sched.check(id) != nil })
}

func (sched *scheduler) first(ctx context.Context, c *conformance.Check) {
	sched.mu.Lock()
	by := sched.failed(c, sched.suite.blocks)
	sched.mu.Unlock()
	r := blocked(c, by)
	if len(by) == 0 {
		r = sched.suite.attempt(ctx, c, false)
	}
	sched.mu.Lock()
	defer sched.mu.Unlock()
	sched.active--
	if sched.waiting(c) {
		sched.idle--
	}
	// A finding that follows from another is folded under it however a second run ends.
	if (r.Status == conformance.Fail && len(sched.explained(c, r)) == 0 || r.away) && ctx.Err() == nil {
		sched.unconfirmed = append(sched.unconfirmed, c)
		sched.results[c.ID+" first"] = r
	} else {
		sched.settle(c, r)
	}
	sched.signal()
}

// confirm runs a failed check once more, alone and with new keys, and again where that decides
// nothing. It acquits only where time or a lost connection may be to blame.
func (sched *scheduler) confirm(ctx context.Context, c *conformance.Check) {
	sched.mu.Lock()
	r := sched.results[c.ID+" first"]
	sched.mu.Unlock()
	again := sched.suite.attempt(ctx, c, true)
	for n := 0; n < 2 && r.Status == conformance.Fail && again.Status == conformance.Inconclusive; n++ {
		again = sched.suite.attempt(ctx, c, true)
	}
	sched.mu.Lock()
	defer sched.mu.Unlock()
	sched.active--
	delete(sched.results, c.ID+" first")
	r.Attempts = 2
	r.DurationMS += again.DurationMS
	switch {
	case r.Status == conformance.Inconclusive && again.Status == conformance.NotRun: // the run has ended before
	case r.away, r.Status == conformance.Inconclusive:
		attempts, spent := r.Attempts, r.DurationMS
		r = again
		r.Attempts, r.DurationMS = attempts, spent
	case again.Status != conformance.Pass:
		r.takeCauses(c, again)
	case c.Acquit, len(r.Findings) > 0 && r.everyExchange(lostConnection):
		r.Status, r.Reason = conformance.Warn, "failed once and passed when it was run again alone"
	default:
		r.Status, r.Reason, r.unsteady = conformance.Flaky, "failed while other calls ran, then passed alone with new keys: calls disturb each other, or the endpoint is not reliable", true
		r.blameOthers(c)
	}
	sched.settle(c, r)
	sched.signal()
}

// lostConnection reports whether a connection was reset without any response.
func lostConnection(x conformance.Exchange) bool {
	return x.Response == nil && x.Kind == string(wire.KindReset)
}

// settle makes a result final.
func (sched *scheduler) settle(c *conformance.Check, r *Result) {
	sched.enter(c, r)
	r = sched.results[c.ID]
	sched.done++
	if sched.suite.Settled != nil {
		sched.suite.Settled(&r.CheckResult)
	}
	if sched.opts.Progress != nil {
		sched.opts.Progress(conformance.Progress{Done: sched.done, Total: len(sched.checks), Result: r.CheckResult})
	}
}

// enter keeps a result: gate, waiver, and what explains it.
func (sched *scheduler) enter(c *conformance.Check, r *Result) {
	r.Gating = c.Gates(sched.opts.Profile)
	if !r.Gating && r.is(conformance.Fail, conformance.Flaky) {
		r.Status = conformance.Warn
	}
	sched.opts.Waive(c, &r.CheckResult)
	sched.results[c.ID] = r
	if by := sched.explained(c, r); len(by) > 0 {
		sched.replace(c, by)
	}
}

func (sched *scheduler) signal() {
	select {
	case sched.wake <- struct{}{}:
	default:
	}
}

// judgeOverall fails checks whose own scenario has not failed, and which the whole run shows broken.
func (sched *scheduler) judgeOverall(ctx context.Context) {
	if sched.suite.Overall == nil {
		return
	}
	for _, c := range needsFirst(sched.checks) {
		r := sched.results[c.ID]
		if !r.is(conformance.Pass, conformance.Inconclusive, conformance.NotRun) || len(r.BlockedBy) > 0 {
			continue
		}
		found := sched.suite.Findings(c)
		sched.suite.Overall(ctx, found, func(symptom string, warnings bool) bool { return sched.shows(c, symptom, warnings) })
		if found.Held() == nil {
			continue
		}
		failed := found.result(&outcome{status: conformance.Fail}, false)
		failed.Attempts, failed.DurationMS = r.Attempts, r.DurationMS
		sched.enter(c, failed)
		for _, o := range sched.checks {
			if by := sched.explained(o, sched.results[o.ID]); sched.results[o.ID].is(conformance.Fail, conformance.Flaky) && len(by) > 0 {
				sched.replace(o, by)
			}
		}
	}
}

// shows reports whether a failure has the symptom, or a warning if those count. Responses that end early are the
// subject of HTTP-006, unless calls disturb each other.
func (sched *scheduler) shows(c *conformance.Check, symptom string, warnings bool) bool {
	for id, r := range sched.results {
		counts := r.is(conformance.Fail, conformance.Flaky, conformance.Waived) || warnings && r.is(conformance.Warn)
		if counts && (c.ID != "HTTP-006" || slices.Contains(disturbed, id)) && slices.ContainsFunc(r.Symptoms, func(s string) bool { return strings.HasPrefix(s, symptom) }) {
			return true
		}
	}
	return false
}

// collect puts the results into the report, in the order of the catalogue.
func (sched *scheduler) collect(r *conformance.Report) {
	for _, c := range sched.checks {
		res := sched.results[c.ID]
		if res == nil {
			res = newResult(c, conformance.NotRun, "the run ended before it")
			res.Gating = c.Gates(sched.opts.Profile)
		}
		into := &r.Checks
		if c.Own {
			into = &r.Own
		}
		*into = append(*into, res.CheckResult)
	}
}
