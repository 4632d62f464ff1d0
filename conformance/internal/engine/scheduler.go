package engine

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// scheduler schedules the checks of a run: what a check builds on comes first, checks
// that disturb others run alone and last, a failure is confirmed by a second run.
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

// parallelChecks is the number of checks under way at once, parallelWaits that of
// those beside them that mostly wait.
const (
	parallelChecks = 8
	parallelWaits  = 16
)

func newScheduler(suite *Suite, opts *conformance.Options, checks []*conformance.Check) *scheduler {
	return &scheduler{suite: suite, opts: opts, checks: checks, pending: slices.Clone(checks), results: map[string]*Result{}, wake: make(chan struct{}, 1)}
}

// run judges every check. It always ends: checks that the run's deadline cuts
// off are NOT_RUN.
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
	if len(sched.unconfirmed) > 0 {
		c := sched.unconfirmed[0]
		sched.unconfirmed = sched.unconfirmed[1:]
		sched.active++
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
	if len(sched.pending) == 0 && sched.undisturbed() {
		c := sched.unconfirmed[0]
		sched.unconfirmed = sched.unconfirmed[1:]
		sched.active++
		return c, confirmAlone
	}
	if len(sched.pending) > 0 {
		// Only a circle of needs can bring us here; a test keeps them out.
		panic("conformance: checks wait for each other: " + sched.pending[0].ID)
	}
	return nil, nothingLeft
}

// undisturbed has the undecided checks that write run once more, alone, where calls
// disturb each other: their evidence may have been taken away beside the other calls.
// It reports whether there are any.
func (sched *scheduler) undisturbed() bool {
	if sched.again || !slices.ContainsFunc(sched.checks, func(c *conformance.Check) bool { r := sched.results[c.ID]; return r != nil && r.unsteady }) {
		return false
	}
	sched.again = true
	for _, c := range sched.checks {
		if r := sched.results[c.ID]; r != nil && r.Status == conformance.Inconclusive && c.Write {
			sched.unconfirmed = append(sched.unconfirmed, c)
			sched.results[c.ID+" first"] = r
			delete(sched.results, c.ID)
			sched.done--
		}
	}
	return len(sched.unconfirmed) > 0
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

// ready reports whether everything the check builds on has its final result.
func (sched *scheduler) ready(c *conformance.Check) bool {
	for _, id := range sched.suite.needs(c) {
		if sched.results[id] == nil && slices.ContainsFunc(sched.checks, func(o *conformance.Check) bool { return o.ID == id }) {
			return false
		}
	}
	return true
}

// blockers are the failed checks that leave c without any evidence.
func (sched *scheduler) blockers(c *conformance.Check) []string {
	return sched.failed(c, sched.suite.blocks)
}

func (sched *scheduler) first(ctx context.Context, c *conformance.Check) {
	sched.mu.Lock()
	by := sched.blockers(c)
	sched.mu.Unlock()
	var r *Result
	if len(by) > 0 {
		r = blocked(c, by)
	} else {
		r = sched.suite.attempt(ctx, c, false)
	}
	sched.mu.Lock()
	defer sched.mu.Unlock()
	sched.active--
	if sched.waiting(c) {
		sched.idle--
	}
	// What follows from another finding is folded under it however a second run ends.
	if (r.Status == conformance.Fail && len(sched.explained(c, r)) == 0 || r.away) && ctx.Err() == nil {
		r.Attempts = 1
		sched.unconfirmed = append(sched.unconfirmed, c)
		sched.results[c.ID+" first"] = r
	} else {
		sched.settle(c, r)
	}
	sched.signal()
}

// confirm runs a failed check once more, alone and with new keys, and again where that
// decides nothing. No other run acquits, save where time or a lost connection may be to
// blame.
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
	case c.Acquit || lostConnection(r):
		r.Status, r.Reason = conformance.Warn, "failed once and passed when it was run again alone"
	default:
		r.Status, r.Reason, r.unsteady = conformance.Flaky, "failed beside other calls, then passed alone with new keys: calls disturb each other, or the endpoint is not reliable", true
		r.blameOthers(c)
	}
	sched.settle(c, r)
	sched.signal()
}

// lostConnection reports whether nothing but a reset without any response was found.
func lostConnection(r *Result) bool {
	for _, f := range r.Findings {
		if len(f.Exchanges) == 0 {
			return false
		}
		for _, x := range f.Exchanges {
			if x.Response != nil || x.Kind != string(wire.KindReset) {
				return false
			}
		}
	}
	return len(r.Findings) > 0
}

// settle makes a result final: gate, waiver, progress.
func (sched *scheduler) settle(c *conformance.Check, r *Result) {
	sched.gate(c, r)
	sched.results[c.ID] = r
	if by := sched.explained(c, r); len(by) > 0 {
		sched.replace(c, r, by)
		r = sched.results[c.ID]
	}
	sched.done++
	if sched.suite.Settled != nil {
		sched.suite.Settled(&sched.results[c.ID].CheckResult)
	}
	if sched.opts.Progress != nil {
		sched.opts.Progress(conformance.Progress{Done: sched.done, Total: len(sched.checks), Result: r.CheckResult})
	}
}

// gate marks a result that counts against the verdict.
func (sched *scheduler) gate(c *conformance.Check, r *Result) {
	r.Gating = c.Gates(sched.opts.Profile)
	if !r.Gating && (r.Status == conformance.Fail || r.Status == conformance.Flaky) {
		r.Status = conformance.Warn
	}
	sched.opts.Waive(c, &r.CheckResult)
}

func (sched *scheduler) signal() {
	select {
	case sched.wake <- struct{}{}:
	default:
	}
}

// judgeOverall fails checks that no scenario of their own has failed, and that the run as
// a whole shows to be broken.
func (sched *scheduler) judgeOverall(ctx context.Context) {
	if sched.suite.Overall == nil {
		return
	}
	for _, c := range needsFirst(sched.checks) {
		r := sched.results[c.ID]
		if r == nil || r.Status != conformance.Pass && r.Status != conformance.Inconclusive && r.Status != conformance.NotRun || len(r.BlockedBy) > 0 {
			continue
		}
		found := sched.suite.Findings(c)
		sched.suite.Overall(ctx, found, sched.shows)
		if found.Held() == nil {
			continue
		}
		failed := found.result(&outcome{status: conformance.Fail}, false)
		failed.Attempts, failed.DurationMS = r.Attempts, r.DurationMS
		sched.gate(c, failed)
		sched.results[c.ID] = failed
		if by := sched.explained(c, failed); len(by) > 0 {
			sched.replace(c, failed, by)
		}
	}
}

// shows reports whether a failure has the symptom, or a warning if those count.
func (sched *scheduler) shows(symptom string, warnings bool) bool {
	for _, r := range sched.results {
		if (r.Status == conformance.Fail || r.Status == conformance.Flaky || r.Status == conformance.Warn && warnings || r.Status == conformance.Waived) && slices.ContainsFunc(r.Symptoms, func(s string) bool { return s == symptom || strings.HasPrefix(s, symptom) }) {
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
		if c.Own {
			r.Own = append(r.Own, res.CheckResult)
			continue
		}
		r.Checks = append(r.Checks, res.CheckResult)
	}
}
