package service

import (
	"fmt"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/quantity"
)

// runSteps make syncs run.
func runSteps() []conformance.Step {
	return []conformance.Step{
		step(`^a destination$`, func(sc *scenario) any {
			return func() error { _, err := sc.connect(connecting{}); return err }
		}),
		step(`^a sync of (\d+) records with operation "([a-z]+)"$`, func(sc *scenario) any { return sc.aSync }),
		step(`^the sync runs$`, func(sc *scenario) any { return sc.theSyncRuns }),
		step(`^every record of the source is in the destination$`, func(sc *scenario) any { return sc.allArrived }),
	}
}

func (sc *scenario) aSync(n int, operation string) error {
	if err := sc.someDestination(); err != nil {
		return err
	}
	rows, err := sc.newDataset(numbered(1, n))
	if err != nil {
		return err
	}
	_, err = sc.newSync(sc.dest, rows, operation, nil)
	return err
}

// latest is the sync of the scenario that was made last.
func (sc *scenario) latest() *syncing { return sc.syncs[len(sc.syncs)-1] }

func (sc *scenario) theSyncRuns() error {
	a, err := sc.runs(sc.latest())
	if err != nil {
		return err
	}
	sc.last = a
	return nil
}

// allArrived compares what the destination holds with the source.
func (sc *scenario) allArrived() error {
	s := sc.latest()
	stored, err := s.dest.stored(thingObject, "id")
	if err != nil {
		return err
	}
	for _, r := range s.rows.table.rows {
		id := r["id"].(string)
		got, there := stored[id]
		switch {
		case !there:
			sc.brokenCall("the record "+id+" is in the destination", "it is not", s.dest.Batches()...)
		case string(got["name"]) != string(jsonvalue.Encode(r["name"])):
			sc.brokenCall(fmt.Sprintf("the record %s has the name %s", id, jsonvalue.Encode(r["name"])), string(got["name"]), s.dest.Batches()...)
		}
	}
	return sc.HeldBy("%s stored", quantity.Count(len(stored), "record"))
}
