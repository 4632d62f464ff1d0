package destination

import (
	"fmt"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/internal/quantity"
)

// activeJudging decides what traffic cannot.
const activeJudging = "active judging (destkit conform)"

// result is what a check comes to.
func (p *Passive) result(c *conformance.Check) *engine.Result {
	pc := p.ruler.ByID[c.ID]
	found := *pc.Found // a report may be asked for again
	switch {
	case !rules.Decides(c.ID):
		return found.Result(engine.NotRun(activeJudging, "needs active judging: traffic alone does not show it"))
	case strings.HasPrefix(c.ID, "TLS-") && !p.s.TLSJudged():
		return found.Result(p.s.Permitted(c))
	case pc.Looked == 0:
		return found.Result(engine.Inconclusive(activeJudging, "no call went by that shows it"))
	}
	var out error
	if found.Held() == nil && pc.Reason != "" && len(found.Evidence()) == 0 && c.Level != conformance.Info {
		out = engine.Inconclusive(activeJudging, "%s", pc.Reason)
	}
	r := found.Result(out)
	if r.Status == conformance.Inconclusive && r.Decider == "" {
		r.Decider = activeJudging
	}
	r.Attempts = pc.Looked
	return r
}

// Report sums up what went by so far. It may be asked for more than once.
func (p *Passive) Report() *conformance.Report {
	for _, pc := range p.ruler.Checks {
		p.ruler.Conclude(pc)
	}
	return p.ruler.Suite.Observed(p.s.Opts, p.selected, p.started, p.result, func(r *conformance.Report) {
		r.Settings.Development, r.Settings.Roots = p.s.Dev, p.s.rootsName()
		p.s.sumUp(r)
		r.Tier = conformance.TierProtocol
		if p.ruler.Traffic.Results() > 0 {
			r.Tier = conformance.TierResults
		}
		r.Calls, r.Records = p.calls, p.records
		r.DurationMS = float64(p.spent.Microseconds()) / 1000
		if p.other > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("%s not judged: no JSON-RPC", quantity.Count(p.other, "exchange")))
		}
		if p.unread > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("%s not judged, for a Content-Encoding that this program does not know", quantity.Count(p.unread, "response")))
		}
	})
}

// PassiveChecks are the ids of the checks that traffic alone can decide.
func PassiveChecks() []string { return rules.Decided() }
