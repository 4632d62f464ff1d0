package conformance

import (
	"fmt"
	"strings"

	"github.com/destkit/destkit/internal/plural"
)

// activeJudging decides what traffic cannot.
const activeJudging = "active judging (destkit conform)"

// result is what a check comes to.
func (p *Passive) result(pc *passiveCheck) *CheckResult {
	switch {
	case pc.rule == nil:
		r := pc.check.result(NotRun, "needs active judging: traffic alone does not show it")
		r.Decider = activeJudging
		return r
	case strings.HasPrefix(pc.check.ID, "TLS-") && !p.s.tlsJudged():
		r := pc.check.result(NotRun, "TLS is not judged: "+p.s.devWhy+"; judge it with --development off or --tls-roots FILE")
		r.Decider = "--development off"
		return r
	case pc.looked == 0:
		r := pc.check.result(Inconclusive, "no call went by that shows it")
		r.Decider = activeJudging
		return r
	}
	found := pc.found // a report may be asked for again
	out := &outcome{status: Pass}
	if len(found.findings) == 0 && pc.reason != "" && len(found.seen) == 0 {
		out = &outcome{status: Inconclusive, reason: pc.reason, decider: activeJudging}
	}
	if len(found.findings) == 0 && pc.check.Level == Info {
		out = &outcome{status: Pass}
	}
	r := found.result(out, false)
	if r.Status == Inconclusive && r.Decider == "" {
		r.Decider = activeJudging
	}
	r.Attempts = pc.looked
	return r
}

// Report sums up what went by so far. It may be asked for more than once.
func (p *Passive) Report() *Report {
	o := p.s.opts
	r := o.newReport(SuiteDestination, p.s.redactor.String(p.s.target.URL), p.started)
	r.Settings.Development, r.Settings.Roots = p.s.dev, p.s.rootsName()
	r.Settings.Passive = true
	p.finish()
	sched := newScheduler(p.s.suite(), &p.s.opts, p.selected)
	for _, pc := range p.ordered() {
		sched.settle(pc.check, p.result(pc))
	}
	sched.foldFields()
	sched.collect(r)
	r.Tier = TierProtocol
	if p.seen.results > 0 {
		r.Tier = TierResults
	}
	if v := p.s.catalog.speed; v != nil {
		r.Settings.DeclaredSpeed = fmt.Sprintf("%s in a batch, %s at once, %d records/s",
			plural.Count(v.MaximumBatchSize, "record"), plural.Count(v.MaximumParallelBatches, "batch"), v.MaximumRecordsPerSecond)
	}
	r.Settings.DeclaredRateLimit = p.s.catalog.rateLimit
	names := p.s.catalog.names()
	r.Objects = names[:min(len(names), mostObjects)]
	r.Calls, r.Records = p.calls, p.records
	if p.unread > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%s not judged, for a Content-Encoding that this program does not know", plural.Count(p.unread, "response")))
	}
	if p.calls == 0 {
		r.Problems = append(r.Problems, noTraffic)
	}
	p.s.opts.decide(r, p.s.cat)
	r.DurationMS = float64(p.spent.Microseconds()) / 1000
	r.Summary = summary(r)
	hide(p.s.redactor, r)
	return r
}

// noTraffic is the problem of who judges what goes by, and has seen nothing.
var noTraffic = Problem{
	Kind: "undecided", ExitStatus: 3, Message: "no call went by",
	Fix: "send the calls of the service to the address of the proxy",
}

// ordered are the checks with those that others build on first.
func (p *Passive) ordered() []*passiveCheck {
	byID := map[string]*passiveCheck{}
	for _, pc := range p.checks {
		byID[pc.check.ID] = pc
	}
	var out []*passiveCheck
	done := map[string]bool{}
	var visit func(pc *passiveCheck)
	visit = func(pc *passiveCheck) {
		if pc == nil || done[pc.check.ID] {
			return
		}
		done[pc.check.ID] = true
		for _, id := range pc.check.Needs {
			visit(byID[id])
		}
		out = append(out, pc)
	}
	for _, pc := range p.checks {
		visit(pc)
	}
	return out
}

// PassiveChecks are the ids of the checks that traffic alone can decide, in the
// order of the catalogue.
func PassiveChecks() []string {
	cat, err := LoadCatalogue(SuiteDestination)
	if err != nil {
		return nil
	}
	var out []string
	for _, c := range cat.Checks {
		if passiveRules[c.ID] != nil {
			out = append(out, c.ID)
		}
	}
	return out
}
