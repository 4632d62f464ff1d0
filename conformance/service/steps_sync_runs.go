package service

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/destsim/rpc"
)

// runSteps are for RUN: executions of syncs (spec 2.9).
func runSteps() []engine.Step {
	return []engine.Step{
		step(`^a destination$`, func(sc *scenario) any {
			return func() error { _, err := sc.connect(connecting{}); return err }
		}),
		step(`^a sync of (\d+) records with operation "([a-z]+)"$`, func(sc *scenario) any { return sc.aSync }),
		step(`^the sync runs$`, func(sc *scenario) any { return sc.theSyncRuns }),
		step(`^every record of the source is in the destination$`, func(sc *scenario) any { return sc.allArrived }),
		step(`^the destination holds its batches back$`, func(sc *scenario) any { return sc.batchesWait }),
		step(`^the endpoint gives no answer to any batch$`, func(sc *scenario) any {
			return func() error { return sc.answersCall("every", rpc.MethodSyncBatch, "", "no reply") }
		}),
		step(`^the list "([^"]+)" shows both runs as they are read by their ids$`, func(sc *scenario) any { return sc.runsListed }),
		step(`^a batch of the run is under way$`, func(sc *scenario) any { return sc.batchCame }),
		step(`^(?:the run|run (\d+)) shows:$`, func(sc *scenario) any { return sc.runShows }),
	}
}

// batchesWait lets every batch wait until it is let go, or the scenario is over.
func (sc *scenario) batchesWait() error {
	if err := sc.someDestination(); err != nil {
		return err
	}
	sc.holdBatches()
	return nil
}

// holdBatches lets every batch of the destination wait for release.
func (sc *scenario) holdBatches() {
	gate := make(chan struct{})
	sc.release = sync.OnceFunc(func() { close(gate) })
	sc.endings = append(sc.endings, func(context.Context) error { sc.release(); return nil })
	sc.dest.SetScript(forMethod(rpc.MethodSyncBatch, func(*endpoint.Call) *endpoint.Reply {
		r := endpoint.AsIs()
		r.Before = gate
		return r
	}))
}

// waits polls until something is so; when it does not come, nothing is decided.
func (sc *scenario) waits(until func() bool, missing string, args ...any) error {
	for deadline := time.Now().Add(runLimit + sc.hold()); !until(); {
		if time.Now().After(deadline) {
			return engine.Outcome(conformance.Inconclusive, "", missing, args...)
		}
		if err := sc.sleep(pollEvery); err != nil {
			return err
		}
	}
	return nil
}

// batchCame waits until the service has sent a batch.
func (sc *scenario) batchCame() error {
	return sc.waits(func() bool { return len(sc.dest.Batches()) > 0 }, "no batch came within %s", runLimit)
}

// runShows compares a run, the latest one or one by its number, as it ended.
func (sc *scenario) runShows(number string, t *engine.Table) error {
	run, err := sc.latestRun()
	if n, e := strconv.Atoi(number); e == nil {
		run, err = sc.ran(n)
	}
	if err != nil {
		return err
	}
	return sc.allCompared("the run", run, t)
}

func (sc *scenario) aSync(n int, operation string) error {
	return sc.syncOfRows(numbered(1, n), operation, nil)
}

// latest is the sync of the scenario that was made last.
func (sc *scenario) latest() *syncing { return sc.syncs[len(sc.syncs)-1] }

func (sc *scenario) theSyncRuns() error {
	a, err := sc.runs(sc.latest())
	if err != nil {
		return err
	}
	sc.batch = []*answer{a}
	return nil
}
