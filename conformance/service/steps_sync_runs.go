package service

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// syncRunsSteps are for RUN: executions of syncs (spec 2.9).
func syncRunsSteps() []engine.Step {
	return []engine.Step{
		step(`^the destination holds its batches back$`, func(sc *scenario) any { return sc.batchesWait }),
		step(`^the destination lets its batches go$`, func(sc *scenario) any { return func() { sc.release() } }),
		step(`^a client triggers the sync$`, func(sc *scenario) any { return sc.clientTriggers }),
		step(`^a batch of the run is under way$`, func(sc *scenario) any { return sc.batchCame }),
		step(`^a client (reads|asks to cancel) the run$`, func(sc *scenario) any { return sc.clientAsksRun }),
		step(`^a client reads a run that nobody has$`, func(sc *scenario) any {
			return func() error { return sc.call("GET", below("sync_runs", unknownID, "")) }
		}),
		step(`^the run ends$`, func(sc *scenario) any { return sc.runEnds }),

		step(`^the run shows:$`, func(sc *scenario) any { return sc.runShows }),
		step(`^the list of runs shows its (\d+) runs as they are read by their ids$`, func(sc *scenario) any { return sc.runsListed }),
		step(`^the times of the run are in order$`, func(sc *scenario) any { return sc.timesInOrder }),
		step(`^there is no such resource$`, func(sc *scenario) any { return sc.notThere }),
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

func (sc *scenario) clientTriggers() error {
	a, err := sc.api(request{method: "POST", path: sc.syncPath() + "/trigger"})
	if err != nil {
		return err
	}
	if sc.underWay = a.id("data", "sync_run_id"); !accepted(a) || sc.underWay == 0 {
		return engine.Outcome(conformance.Inconclusive, "", "the run was refused: %s", sc.secrets.String(a.short()))
	}
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
	for deadline := time.Now().Add(runLimit); !until(); {
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

// runPath is where the latest run stands.
func (sc *scenario) runPath() string { return "/sync_runs/" + strconv.FormatInt(sc.underWay, 10) }

func (sc *scenario) clientAsksRun(what string) error {
	if what == "reads" {
		return sc.call("GET", sc.runPath())
	}
	return sc.call("POST", sc.runPath()+"/cancel")
}

func (sc *scenario) runEnds() error {
	a, err := sc.ends(sc.latest(), sc.underWay)
	sc.last = a
	return err
}

// runShows compares the latest run, as it ended.
func (sc *scenario) runShows(t *engine.Table) error {
	s := sc.latest()
	if len(s.runs) == 0 {
		return engine.Outcome(conformance.Inconclusive, "", "the sync has not run")
	}
	run := s.runs[len(s.runs)-1]
	wanted, err := sc.asked(t)
	if err != nil {
		return err
	}
	for field, value := range wanted {
		if why := jsonvalue.Missing(value, jsonvalue.Decode(jsonvalue.Down(run.at("data"), field)), field); why != "" {
			sc.broken("the run shows "+field+" "+jsonvalue.Brief(value), why, run)
		}
	}
	return sc.heldBy(len(wanted), "field")
}

// runsListed compares the list of a sync's runs with the runs that it had.
func (sc *scenario) runsListed(n int) error {
	s := sc.latest()
	list, err := sc.must(request{method: "GET", path: sc.syncPath() + "/sync_runs?per_page=100"})
	if err != nil {
		return err
	}
	listed := itemsOf(list.at("data"))
	if len(listed) != n || len(s.runs) != n {
		sc.broken(fmt.Sprintf("the list has the %s of the sync", quantity.Count(n, "run")), fmt.Sprintf("it has %d", len(listed)), list)
		return sc.Held()
	}
	for _, run := range s.runs {
		var found any
		for _, one := range listed {
			if id, _ := one.Get("id").Int(); id == run.id("data", "id") {
				found = jsonvalue.Decode(one)
			}
		}
		if wanted := jsonvalue.Decode(run.at("data")); !reflect.DeepEqual(wanted, found) {
			sc.broken("the list shows "+jsonvalue.Brief(wanted), jsonvalue.Brief(found), list, run)
		}
	}
	return sc.heldBy(n, "run")
}

// timesInOrder: a run ends after it has begun.
func (sc *scenario) timesInOrder() error {
	begun, ended := sc.last.text("data", "created_at"), sc.last.text("data", "completed_at")
	from, err := time.Parse(time.RFC3339Nano, begun)
	to, late := time.Parse(time.RFC3339Nano, ended)
	if err != nil || late != nil || to.Before(from) {
		sc.broken("completed_at is not before created_at "+begun, "it is "+ended, sc.last)
	}
	return sc.HeldBy("from %s to %s", begun, ended)
}

// notThere: what is missing is answered with 404.
func (sc *scenario) notThere() error {
	if !sc.last.OK() || sc.last.Status != http.StatusNotFound {
		sc.broken("HTTP 404", sc.last.short(), sc.last)
	}
	return sc.HeldBy("HTTP %d", sc.last.Status)
}

// runSteps make syncs run.
func runSteps() []engine.Step {
	return []engine.Step{
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

// modesSteps are for MOD: run modes and alert settings (spec 2.6, 2.8).
func modesSteps() []engine.Step {
	return []engine.Step{
		step(`^a client lists the syncs$`, func(sc *scenario) any {
			return func() error { return sc.call("GET", "/syncs?per_page=100") }
		}),
		step(`^every alert has the keys "([a-z_, ]+)"$`, func(sc *scenario) any { return sc.alertsHave }),
	}
}

// alertsHave looks at the alerts of the latest sync in the latest answer: that
// of the sync alone, or of a list.
func (sc *scenario) alertsHave(list string) error {
	shown := []*wire.Node{sc.data()}
	if sc.data().Is(wire.Array) {
		shown = itemsOf(sc.data())
	}
	seen := 0
	for _, y := range shown {
		if id, _ := y.Get("id").Int(); id != sc.latest().id {
			continue
		}
		for _, alert := range itemsOf(y.Get("alert_attributes")) {
			seen++
			for key := range strings.SplitSeq(list, ", ") {
				if alert.Get(key) == nil {
					sc.broken(fmt.Sprintf("an alert with the key %q", key), jsonvalue.Raw(alert), sc.last)
				}
			}
		}
	}
	if seen == 0 {
		return engine.Outcome(conformance.Inconclusive, "", "no alert was shown: %s", sc.secrets.String(sc.last.short()))
	}
	return sc.heldBy(seen, "alert")
}
