package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance/wire"
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
	// Load comes last: it uses up records that other checks need.
	for _, load := range []bool{false, true} {
		if c := j.take(func(c *Check) bool { return c.Load == load }); c != nil {
			return c, runAlone
		}
	}
	if len(j.pending) > 0 {
		// Only a circle of needs can bring us here; a test keeps them out.
		panic("conformance: checks wait for each other: " + j.pending[0].ID)
	}
	return nil, nothingLeft
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

// blockers are the checks that failed and on which c builds, directly or through
// a check that was blocked itself.
func (j *jury) blockers(c *Check) []string {
	var out []string
	for _, id := range j.needs(c) {
		r := j.results[id]
		if r == nil {
			continue
		}
		add := r.BlockedBy
		switch r.Status {
		case Fail, Warn, Flaky, Waived:
			add = []string{id}
		}
		for _, b := range add {
			if !slices.Contains(out, b) {
				out = append(out, b)
			}
		}
	}
	return out
}

func (j *jury) first(ctx context.Context, c *Check) {
	j.mu.Lock()
	blocked := j.blockers(c)
	j.mu.Unlock()
	var r *CheckResult
	switch {
	case len(blocked) > 0:
		r = c.result(NotRun, "blocked by "+strings.Join(blocked, ", "))
		r.BlockedBy = blocked
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
	if r.Status == Fail && ctx.Err() == nil {
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
	again := j.court.judge(ctx, c, j)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.active--
	r := j.results[c.ID+" first"]
	delete(j.results, c.ID+" first")
	r.Attempts = 2
	r.DurationMS += again.DurationMS
	switch {
	case again.Status != Pass:
	case c.Acquit || lostConnection(r):
		r.Status, r.Reason = Warn, "failed once and passed when it was run again alone"
	default:
		r.Status, r.Reason = Flaky, "failed, then passed with new keys: the endpoint is not reliable here"
	}
	j.settle(c, r)
	j.signal()
}

// lostConnection tells that nothing but a reset without any response was found.
func lostConnection(r *CheckResult) bool {
	for _, f := range r.Findings {
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

// result makes an empty result of a check.
func (c *Check) result(status Status, reason string) *CheckResult {
	return &CheckResult{
		ID: c.ID, Title: c.Title, Level: c.Level, Authority: c.Authority, Sections: c.Sections, Area: c.Area,
		Status: status, Reason: reason, Findings: []Finding{},
	}
}

// judge runs a check, for each named object where it looks at one object.
func (s *session) judge(ctx context.Context, c *Check, j *jury) *CheckResult {
	started := time.Now()
	r := s.permitted(c, j)
	if r == nil {
		if !c.EachObject {
			r = s.judgeOnce(ctx, c, nil)
		} else {
			var parts []*CheckResult
			for _, name := range s.opts.Objects {
				o := s.catalog.object(name)
				if o == nil {
					continue
				}
				part := s.judgeOnce(ctx, c, o)
				parts = append(parts, part)
				if c.firstObject && part.Status != NotApplicable {
					break
				}
			}
			r = merge(c, parts)
		}
	}
	r.Attempts = 1
	r.DurationMS = float64(time.Since(started).Microseconds()) / 1000
	return r
}

// permitted answers NOT_RUN for what the caller has not permitted or equipped.
func (s *session) permitted(c *Check, j *jury) *CheckResult {
	undecided := func(decider, reason string) *CheckResult {
		r := c.result(NotRun, reason)
		r.Decider = decider
		return r
	}
	switch {
	case c.Write && !s.opts.Write:
		return undecided("--write", "writes records: permit it with --write --object NAME")
	case c.ReadbackRequired && s.readback == nil:
		return undecided("readback", "only a read-back can decide it: give --readback-url or --readback-command")
	case (c.ReadbackRequired || c.ReadbackDecides) && j != nil && j.hookFault != nil:
		r := c.result(HarnessError, j.hookFault.reason)
		return r
	case c.Hook != "" && !s.hook(c.Hook).Set():
		return undecided("hook "+c.Hook, fmt.Sprintf("needs the hook %s: give it in --hooks FILE", c.Hook))
	case strings.HasPrefix(c.ID, "TLS-") && !s.tlsJudged():
		return undecided("--development off", "TLS is not judged: "+s.devWhy+"; judge it with --development off or --tls-roots FILE")
	case c.Load && !s.opts.Load:
		return undecided("--load", "sends at the declared speed: permit it with --load")
	case c.Probe && s.opts.ProbePlainHTTP == 0:
		return undecided("--probe-plain-http", "probes another port: permit it with --probe-plain-http PORT")
	}
	return nil
}

// judgeOnce runs the scenario of a check once, for one object or none.
func (s *session) judgeOnce(ctx context.Context, c *Check, o *object) *CheckResult {
	w := s.newWorld(ctx, c, o)
	var out *outcome
	if ctx.Err() != nil {
		out = asOutcome(overtime(ctx))
	} else {
		out = runScenario(ctx, c, definitions(), w, "")
		if err := w.endHooks(); err != nil {
			out = asOutcome(err)
		}
	}
	r := w.result(out, ctx.Err() != nil)
	if r.Status == Fail && w.hookAsked && !s.shown(w.object) {
		r.Notes = append(r.Notes, fmt.Sprintf("the read-back hook has shown no record of %s in this run yet: the hook itself may be at fault", w.object))
	}
	return r
}

// mergeOrder says which status of several objects speaks for the check: a pass
// on one object must not hide that another one stays undecided.
var mergeOrder = []Status{Fail, HarnessError, Inconclusive, NotRun, Pass, NotApplicable}

// merge sums up the results of one check over several objects.
func merge(c *Check, parts []*CheckResult) *CheckResult {
	if len(parts) == 0 {
		r := c.result(NotRun, "looks at one object: name it with --object NAME")
		r.Decider = "--object"
		return r
	}
	slices.SortStableFunc(parts, func(a, b *CheckResult) int {
		return slices.Index(mergeOrder, a.Status) - slices.Index(mergeOrder, b.Status)
	})
	out := *parts[0]
	for _, p := range parts[1:] {
		out.Findings = append(out.Findings, p.Findings...)
		out.Notes = append(out.Notes, p.Notes...)
		if p.Evidence != "" && out.Evidence != "" {
			out.Evidence += "; " + p.Evidence
		}
	}
	return &out
}
