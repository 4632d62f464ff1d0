package service

import (
	"net/http"

	"github.com/destkit/destkit/conformance"
)

// syncRunsSteps are for RUN: executions of syncs (spec 2.9).
func syncRunsSteps() []conformance.Step {
	return []conformance.Step{
		step(`^the run shows:$`, func(p *play) any { return p.runShows }),
		step(`^there is no such resource$`, func(p *play) any { return p.notThere }),
	}
}

// runShows compares the latest run, as it ended.
func (p *play) runShows(t *conformance.Table) error {
	s := p.latest()
	if len(s.runs) == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "the sync has not run")
	}
	run := s.runs[len(s.runs)-1]
	wanted, err := p.asked(t)
	if err != nil {
		return err
	}
	for field, value := range wanted {
		if why := misses(value, valueOf(down(run.at("data"), field)), field); why != "" {
			p.broken("the run shows "+field+" "+brief(value), why, run)
		}
	}
	p.Proof("%d fields", len(wanted))
	return p.Held()
}

// notThere: what is missing is answered with 404 (facts B1).
func (p *play) notThere() error {
	if !p.last.OK() || p.last.Status != http.StatusNotFound {
		p.broken("HTTP 404", p.last.short(), p.last)
	}
	p.Proof("HTTP %d", p.last.Status)
	return p.Held()
}
