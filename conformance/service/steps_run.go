package service

import (
	"fmt"

	"github.com/destkit/destkit/conformance"
)

// runSteps make syncs run.
func runSteps() []conformance.Step {
	return []conformance.Step{
		step(`^a destination$`, func(p *play) any {
			return func() error { _, err := p.connect(connecting{}); return err }
		}),
		step(`^a sync of (\d+) records with operation "([a-z]+)"$`, func(p *play) any { return p.aSync }),
		step(`^the sync runs$`, func(p *play) any { return p.theSyncRuns }),
		step(`^every record of the source is in the destination$`, func(p *play) any { return p.allArrived }),
	}
}

func (p *play) aSync(n int, operation string) error {
	if p.dest == nil {
		if _, err := p.connect(connecting{}); err != nil {
			return err
		}
	}
	rows, err := p.newDataset(numbered(1, n))
	if err != nil {
		return err
	}
	_, err = p.newSync(p.dest, rows, operation, nil)
	return err
}

// latest is the sync of the scenario that was made last.
func (p *play) latest() *syncing { return p.syncs[len(p.syncs)-1] }

func (p *play) theSyncRuns() error {
	a, err := p.runs(p.latest())
	if err != nil {
		return err
	}
	p.last = a
	return nil
}

// allArrived compares what the destination holds with the source.
func (p *play) allArrived() error {
	s := p.latest()
	stored, err := s.dest.stored(thingObject, "id")
	if err != nil {
		return err
	}
	for _, r := range s.rows.table.rows {
		id := r["id"].(string)
		got, there := stored[id]
		switch {
		case !there:
			p.brokenCall("the record "+id+" is in the destination", "it is not", s.dest.batches()...)
		case string(got["name"]) != string(raw(r["name"])):
			p.brokenCall(fmt.Sprintf("the record %s has the name %s", id, raw(r["name"])), string(got["name"]), s.dest.batches()...)
		}
	}
	p.Proof("%d records stored", len(stored))
	return p.Held()
}
