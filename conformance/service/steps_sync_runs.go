package service

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance"
)

// syncRunsSteps are for RUN: executions of syncs (spec 2.9).
func syncRunsSteps() []conformance.Step {
	return []conformance.Step{
		step(`^the destination holds its batches back$`, func(p *play) any { return p.batchesWait }),
		step(`^the destination lets its batches go$`, func(p *play) any { return func() { p.letGo() } }),
		step(`^a client triggers the sync$`, func(p *play) any { return p.clientTriggers }),
		step(`^a batch of the run is under way$`, func(p *play) any { return p.batchCame }),
		step(`^a client (reads|asks to cancel) the run$`, func(p *play) any { return p.clientAsksRun }),
		step(`^a client reads a run that nobody has$`, func(p *play) any { return p.clientReadsNoRun }),
		step(`^the run ends$`, func(p *play) any { return p.runEnds }),

		step(`^the run shows:$`, func(p *play) any { return p.runShows }),
		step(`^the list of runs shows its (\d+) runs as they are read by their ids$`, func(p *play) any { return p.runsListed }),
		step(`^the times of the run are in order$`, func(p *play) any { return p.timesInOrder }),
		step(`^there is no such resource$`, func(p *play) any { return p.notThere }),
	}
}

// batchesWait lets every batch wait until it is let go, or the scenario is over.
func (p *play) batchesWait() error {
	if p.dest == nil {
		if _, err := p.connect(connecting{}); err != nil {
			return err
		}
	}
	gate := make(chan struct{})
	p.letGo = sync.OnceFunc(func() { close(gate) })
	p.endings = append(p.endings, func(context.Context) error { p.letGo(); return nil })
	p.dest.plays(func(c *call) *reply {
		if c.method != "sync_batch" {
			return nil
		}
		return &reply{before: gate, edit: func(body []byte, _ http.Header) []byte { return body }}
	})
	return nil
}

func (p *play) clientTriggers() error {
	a, err := p.api(request{method: "POST", path: p.syncPath() + "/trigger"})
	if err != nil {
		return err
	}
	if p.underWay = a.id("data", "sync_run_id"); !accepted(a) || p.underWay == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "the run was refused: %s", p.secrets.String(a.short()))
	}
	return nil
}

// batchCame waits until the service has sent a batch.
func (p *play) batchCame() error {
	for deadline := time.Now().Add(runLimit); len(p.dest.batches()) == 0; {
		if time.Now().After(deadline) {
			return conformance.Outcome(conformance.Inconclusive, "", "no batch came within %s", runLimit)
		}
		if err := p.sleep(pollEvery); err != nil {
			return err
		}
	}
	return nil
}

// runPath is where the latest run stands.
func (p *play) runPath() string { return "/sync_runs/" + strconv.FormatInt(p.underWay, 10) }

func (p *play) clientAsksRun(what string) error {
	q := request{method: "GET", path: p.runPath()}
	if what != "reads" {
		q = request{method: "POST", path: p.runPath() + "/cancel"}
	}
	_, err := p.api(q)
	return err
}

func (p *play) clientReadsNoRun() error {
	_, err := p.api(request{method: "GET", path: "/sync_runs/" + strconv.Itoa(nobody)})
	return err
}

func (p *play) runEnds() error {
	a, err := p.ends(p.latest(), p.underWay)
	p.last = a
	return err
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

// runsListed compares the list of a sync's runs with the runs that it had.
func (p *play) runsListed(n int) error {
	s := p.latest()
	list, err := p.must(request{method: "GET", path: p.syncPath() + "/sync_runs?per_page=100"})
	if err != nil {
		return err
	}
	listed := itemsOf(list.at("data"))
	if len(listed) != n || len(s.runs) != n {
		p.broken(fmt.Sprintf("the list has the %d runs of the sync", n), fmt.Sprintf("it has %d", len(listed)), list)
		return p.Held()
	}
	for _, run := range s.runs {
		var found any
		for _, one := range listed {
			if id, _ := one.Get("id").Int(); id == run.id("data", "id") {
				found = valueOf(one)
			}
		}
		if wanted := valueOf(run.at("data")); !reflect.DeepEqual(wanted, found) {
			p.broken("the list shows "+brief(wanted), brief(found), list, run)
		}
	}
	p.Proof("%d runs", n)
	return p.Held()
}

// timesInOrder: a run ends after it has begun.
func (p *play) timesInOrder() error {
	begun, ended := p.last.text("data", "created_at"), p.last.text("data", "completed_at")
	from, err := time.Parse(time.RFC3339Nano, begun)
	to, late := time.Parse(time.RFC3339Nano, ended)
	if err != nil || late != nil || to.Before(from) {
		p.broken("completed_at is not before created_at "+begun, "it is "+ended, p.last)
	}
	p.Proof("from %s to %s", begun, ended)
	return p.Held()
}

// notThere: what is missing is answered with 404.
func (p *play) notThere() error {
	if !p.last.OK() || p.last.Status != http.StatusNotFound {
		p.broken("HTTP 404", p.last.short(), p.last)
	}
	p.Proof("HTTP %d", p.last.Status)
	return p.Held()
}
