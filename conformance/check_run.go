package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// result makes an empty result of a check.
func (c *Check) result(status Status, reason string) *CheckResult {
	return &CheckResult{
		ID: c.ID, Title: c.Title, Level: c.Level, Authority: c.Authority, Sections: c.Sections, Area: c.Area,
		Status: status, Reason: reason, Findings: []Finding{},
	}
}

// judge runs a check, for each named object where it looks at one object.
func (s *session) judge(ctx context.Context, c *Check, sched *scheduler) *CheckResult {
	started := time.Now()
	s.confirming.Store(sched != nil && sched.confirming)
	r := s.permitted(c, sched)
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
func (s *session) permitted(c *Check, sched *scheduler) *CheckResult {
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
	case (c.ReadbackRequired || c.ReadbackDecides) && sched != nil && sched.hookFault != nil:
		r := c.result(HarnessError, sched.hookFault.reason)
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
	sc := s.newScenario(ctx, c, o)
	defer sc.release()
	var out *outcome
	if ctx.Err() != nil {
		out = asOutcome(overtime(ctx))
	} else {
		out = runScenario(c, definitions(), sc, "")
		if s.confirming.Load() && len(sc.findings) > 0 && ctx.Err() == nil {
			sc.diagnose()
		}
		if err := sc.endHooks(); err != nil {
			out = asOutcome(err)
		}
	}
	sc.count()
	r := sc.result(out, ctx.Err() != nil)
	if r.Status == Fail && sc.hookAsked && !s.shown(sc.object) {
		r.Notes = append(r.Notes, fmt.Sprintf("the read-back hook has shown no record of %s in this run yet: the hook itself may be at fault", sc.object))
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
		out.symptoms = append(slices.Clone(out.symptoms), p.symptoms...)
		out.away = out.away || p.away
		out.Notes = append(out.Notes, p.Notes...)
		if p.Evidence != "" && out.Evidence != "" {
			out.Evidence += "; " + p.Evidence
		}
	}
	return &out
}

// A check runs although another one that it builds on has failed: it looks for its
// evidence elsewhere, in the records and objects that the defect leaves whole. Only
// calls that are not answered in time or without an end, which would use up the run,
// and certificates keep every answer away.
func (s *session) blocks(id string, r *CheckResult) bool {
	return strings.HasPrefix(id, "TLS-") || slices.ContainsFunc(r.symptoms, func(symptom string) bool {
		return strings.HasSuffix(symptom, ": "+string(wire.KindTimeout)) || strings.HasSuffix(symptom, ": "+string(wire.KindTooLarge))
	})
}
