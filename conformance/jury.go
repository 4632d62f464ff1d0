package conformance

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// jury schedules the checks of a run: what a check builds on comes first, checks
// that disturb others run alone and last, a failure is confirmed by a second run.
type jury struct {
	court     court
	opts      *Options
	checks    []*Check
	results   map[string]*CheckResult
	hookFault *outcome // the read-back hook failed its own test
	untrusted bool     // the certificate does not verify

	// waits tells which checks mostly wait: they have room of their own. Nil: none.
	waits func(*Check) bool

	confirming bool // the check that runs has failed once, and runs alone
	again      bool // undecided checks have run once more

	mu      sync.Mutex
	pending []*Check // not started, in catalogue order
	second  []*Check // failed once, to be confirmed alone
	active  int
	idle    int // of those active, the ones that mostly wait
	done    int
	wake    chan struct{}
}

// court runs one check, with what it needs of the side that is judged.
type court interface {
	judge(ctx context.Context, c *Check, j *jury) *CheckResult

	// blocks tells that the failure of a check leaves those that build on it
	// without any evidence.
	blocks(id string, r *CheckResult) bool
}

// parallelChecks is the number of checks under way at once, parallelWaits that of
// those beside them that mostly wait.
const (
	parallelChecks = 8
	parallelWaits  = 16
)

func newJury(by court, opts *Options, checks []*Check) *jury {
	return &jury{court: by, opts: opts, checks: checks, pending: slices.Clone(checks), results: map[string]*CheckResult{}, wake: make(chan struct{}, 1)}
}

// run judges every check. It always ends: checks that the run's deadline cuts
// off are NOT_RUN.
func (j *jury) run(ctx context.Context) {
	width := parallelChecks
	if j.opts.Serial {
		width = 1
	}
	for {
		c, kind := j.next(width)
		switch kind {
		case nothingLeft:
			return
		case mustWait:
			<-j.wake
		case runBeside:
			go j.first(ctx, c)
		case runAlone:
			j.first(ctx, c)
		case confirmAlone:
			j.confirm(ctx, c)
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
func (j *jury) next(width int) (*Check, turn) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.idle < parallelWaits { // they take longest
		if c := j.take(j.waiting); c != nil {
			j.idle++
			return c, runBeside
		}
	}
	if j.active-j.idle < width {
		if c := j.take(func(c *Check) bool { return !c.Alone && !j.waiting(c) }); c != nil {
			return c, runBeside
		}
	}
	if j.active > 0 {
		return nil, mustWait
	}
	if len(j.second) > 0 {
		c := j.second[0]
		j.second = j.second[1:]
		j.active++
		return c, confirmAlone
	}
	// Load comes late: it uses up records that other checks need.
	for _, late := range []func(c *Check) bool{
		func(c *Check) bool { return !c.Load && !c.Last },
		func(c *Check) bool { return !c.Last },
		func(*Check) bool { return true },
	} {
		if c := j.take(late); c != nil {
			return c, runAlone
		}
	}
	if len(j.pending) == 0 && j.undisturbed() {
		c := j.second[0]
		j.second = j.second[1:]
		j.active++
		return c, confirmAlone
	}
	if len(j.pending) > 0 {
		// Only a circle of needs can bring us here; a test keeps them out.
		panic("conformance: checks wait for each other: " + j.pending[0].ID)
	}
	return nil, nothingLeft
}

// undisturbed has the undecided checks that write run once more, alone, where calls
// disturb each other: their evidence may have been taken away beside the other calls.
// It reports whether there are any.
func (j *jury) undisturbed() bool {
	if j.again || !slices.ContainsFunc(j.checks, func(c *Check) bool { r := j.results[c.ID]; return r != nil && r.unsteady }) {
		return false
	}
	j.again = true
	for _, c := range j.checks {
		if r := j.results[c.ID]; r != nil && r.Status == Inconclusive && c.Write {
			j.second = append(j.second, c)
			j.results[c.ID+" first"] = r
			delete(j.results, c.ID)
			j.done--
		}
	}
	return len(j.second) > 0
}

// waiting tells that a check mostly waits. One at a time is one at a time.
func (j *jury) waiting(c *Check) bool { return j.waits != nil && !j.opts.Serial && j.waits(c) }

// take starts the first check of a kind that is ready; nil: there is none.
func (j *jury) take(kind func(*Check) bool) *Check {
	for i, c := range j.pending {
		if kind(c) && j.ready(c) {
			j.pending = slices.Delete(j.pending, i, i+1)
			j.active++
			return c
		}
	}
	return nil
}

// certificateChecks judge whether the line can be trusted at all.
var certificateChecks = []string{"TLS-002", "TLS-003", "TLS-004", "TLS-005"}

// needs are the checks that c builds on. Over a line that does not verify
// nothing but the TLS checks runs: no token and no record goes to a stranger.
func (j *jury) needs(c *Check) []string {
	if j.untrusted && !strings.HasPrefix(c.ID, "TLS-") {
		return append(slices.Clone(c.Needs), certificateChecks...)
	}
	return c.Needs
}

// ready tells that everything the check builds on has its final result.
func (j *jury) ready(c *Check) bool {
	for _, id := range j.needs(c) {
		if j.results[id] == nil && slices.ContainsFunc(j.checks, func(o *Check) bool { return o.ID == id }) {
			return false
		}
	}
	return true
}

// blockers are the failed checks that leave c without any evidence.
func (j *jury) blockers(c *Check) []string {
	return j.failed(c, j.court.blocks)
}

func (j *jury) first(ctx context.Context, c *Check) {
	j.mu.Lock()
	blocked := j.blockers(c)
	j.mu.Unlock()
	var r *CheckResult
	switch {
	case len(blocked) > 0:
		r = c.blocked(blocked)
	case j.untrusted && !strings.HasPrefix(c.ID, "TLS-"):
		r = c.result(NotRun, "the certificate of the endpoint does not verify, so nothing is sent to it")
		r.Decider = "a certificate that verifies"
	default:
		r = j.court.judge(ctx, c, j)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.active--
	if j.waiting(c) {
		j.idle--
	}
	// What follows from another finding is folded under it however a second run ends.
	if (r.Status == Fail && len(j.explained(c, r)) == 0 || r.away) && ctx.Err() == nil {
		r.Attempts = 1
		j.second = append(j.second, c)
		j.results[c.ID+" first"] = r
	} else {
		j.settle(c, r)
	}
	j.signal()
}

// confirm runs a failed check once more, alone and with new keys. The second run
// never acquits, save where time or a lost connection may be to blame.
func (j *jury) confirm(ctx context.Context, c *Check) {
	j.confirming = true
	again := j.court.judge(ctx, c, j)
	j.confirming = false
	j.mu.Lock()
	defer j.mu.Unlock()
	j.active--
	r := j.results[c.ID+" first"]
	delete(j.results, c.ID+" first")
	r.Attempts = 2
	r.DurationMS += again.DurationMS
	switch {
	case r.Status == Inconclusive && again.Status == NotRun: // the run has ended before
	case r.away, r.Status == Inconclusive:
		attempts, spent := r.Attempts, r.DurationMS
		r = again
		r.Attempts, r.DurationMS = attempts, spent
	case again.Status != Pass:
		r.takeCauses(again)
	case c.Acquit || lostConnection(r):
		r.Status, r.Reason = Warn, "failed once and passed when it was run again alone"
	default:
		r.Status, r.Reason, r.unsteady = Flaky, "failed beside other calls, then passed alone with new keys: calls disturb each other, or the endpoint is not reliable", true
	}
	j.settle(c, r)
	j.signal()
}

// lostConnection tells that nothing but a reset without any response was found.
func lostConnection(r *CheckResult) bool {
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
func (j *jury) settle(c *Check, r *CheckResult) {
	r.Gating = gates(c, j.opts.Profile)
	if !r.Gating && (r.Status == Fail || r.Status == Flaky) {
		r.Status = Warn
	}
	j.opts.waive(c, r)
	j.results[c.ID] = r
	if by := j.explained(c, r); len(by) > 0 {
		j.replace(c, r, by)
		r = j.results[c.ID]
	}
	j.done++
	if j.opts.Progress != nil {
		j.opts.Progress(Progress{Done: j.done, Total: len(j.checks), Result: *r})
	}
}

func (j *jury) signal() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// collect puts the results into the report, in the order of the catalogue.
func (j *jury) collect(r *Report) {
	for _, c := range j.checks {
		res := j.results[c.ID]
		if res == nil {
			res = c.result(NotRun, "the run ended before it")
			res.Gating = gates(c, j.opts.Profile)
		}
		if c.own {
			r.Own = append(r.Own, *res)
			continue
		}
		r.Checks = append(r.Checks, *res)
	}
}
