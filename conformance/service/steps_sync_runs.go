package service

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/destsim/rpc"
)

// runSteps are for RUN: executions of syncs (spec 2.9).
func runSteps() []engine.Step {
	return []engine.Step{
		step(`^a destination$`, func(sc *scenario) { sc.connect(connecting{}) }),
		step(`^a sync of (\d+) records with operation "([a-z]+)"$`, (*scenario).aSync),
		step(`^the sync runs$`, (*scenario).theSyncRuns),
		step(`^every record of the source is in the destination$`, (*scenario).allArrived),
		step(`^the destination holds its batches back$`, (*scenario).batchesWait),
		step(`^the endpoint gives no answer to any batch$`, func(sc *scenario) { sc.answersCall("every", rpc.MethodSyncBatch, "", "no reply") }),
		step(`^the list "([^"]+)" shows both runs as they are read by their ids$`, (*scenario).runsListed),
		step(`^a batch of the run is under way$`, (*scenario).batchCame),
		step(`^(?:the run|run (\d+)) shows:$`, (*scenario).runShows),
	}
}

// syncing is a sync of the scenario with the runs that it has seen.
type syncing struct {
	id   int64
	dest *destination
	rows *dataset
	body map[string]any
	runs []*answer // of GET /sync_runs/{id}, each as it ended
	// marks are how many batches the destination had got by the end of each run.
	marks []int
}

// mapping is a column that goes to a field.
func mapping(column, field string) map[string]any {
	return map[string]any{"from": map[string]any{"type": "column", "data": column}, "to": field}
}

// identifies marks a mapping as the primary identifier.
func identifies(m map[string]any) map[string]any {
	m["is_primary_identifier"] = true
	return m
}

// syncBody is the body of an ordinary sync of a dataset: the columns go to the
// fields of the same names, the first is the identifier; it never runs by
// itself and alerts no one.
func (sc *scenario) syncBody(d *destination, rows *dataset, operation string) map[string]any {
	var mappings []map[string]any
	for i, column := range rows.table.columns {
		m := mapping(column, column)
		if i == 0 {
			m = identifies(m)
		}
		mappings = append(mappings, m)
	}
	return map[string]any{
		"label": sc.called("sync"), "operation": operation, "mappings": mappings,
		"source_attributes":      map[string]any{"connection_id": sc.source, "object": map[string]any{"type": "dataset", "id": rows.id}},
		"destination_attributes": map[string]any{"connection_id": d.id, "object": thingObject},
		"mode":                   map[string]any{"type": "triggered", "triggers": map[string]any{"schedule": map[string]any{"frequency": "never"}}},
		"alert_attributes":       []any{},
	}
}

// newSync makes a sync; changes go over the ordinary body, nil takes a field out.
func (sc *scenario) newSync(d *destination, rows *dataset, operation string, changes map[string]any) *syncing {
	body := sc.syncBody(d, rows, operation)
	maps.Copy(body, changes)
	maps.DeleteFunc(body, func(_ string, v any) bool { return v == nil })
	a := sc.must(request{method: "POST", path: "/syncs", body: body})
	s := &syncing{id: a.id("data", "sync_id"), dest: d, rows: rows, body: body}
	sc.made(thing{kind: "syncs", id: s.id})
	sc.syncs, sc.words["label"] = append(sc.syncs, s), fmt.Sprint(body["label"])
	return s
}

// syncOfRows makes a sync of rows to the destination of the scenario.
func (sc *scenario) syncOfRows(t table, operation string, changes map[string]any) {
	sc.someDestination()
	sc.newSync(sc.dest, sc.newDataset(t), operation, changes)
}

// trigger starts a run and gives its id.
func (sc *scenario) trigger(s *syncing, full bool) int64 {
	path := below("syncs", s.id, "/trigger")
	if full {
		path += "?force_full_sync=true"
	}
	a := sc.must(request{method: "POST", path: path})
	sc.says("run", a.id("data", "sync_run_id"))
	return a.id("data", "sync_run_id")
}

// over are the statuses of a run that has ended.
func over(status string) bool {
	switch status {
	case "completed", "failed", "skipped", "canceled", "cancelled":
		return true
	}
	return false
}

// runLimit bounds the real time of one run, and pollEvery how often it is asked
// about; a backoff of the service is skipped where time can be moved. Who waits
// for it side by side with others asks less often.
const (
	runLimit      = 60 * time.Second
	pollEvery     = 5 * time.Millisecond
	pollAtMost    = 250 * time.Millisecond
	pollPatiently = 2 * time.Second
	clockStep     = "2s"
)

// ends waits until a run is over and gives it as it then is. A check that may
// move time does so while the run waits.
func (sc *scenario) ends(s *syncing, id int64) *answer {
	limit, longest, decider := runLimit, pollAtMost, ""
	if isHeld(sc.Check()) {
		limit += sc.hold()
	}
	switch {
	case sc.waitReason(sc.Check()) == "":
	case sc.Check().Clock:
		limit, longest, decider = patientAtMost, pollPatiently, "--control-url"
	default:
		limit, longest, decider = patientAtMost, pollPatiently, "--request-timeout"
	}
	pause, deadline := pollEvery, sc.opts.time.now().Add(limit)
	for {
		a := sc.must(request{method: "GET", path: below("sync_runs", id, "")})
		if over(a.text("data", "status")) {
			sent := 0
			if s.dest != nil { // an emulated application has no endpoint
				sent = len(s.dest.Batches())
			}
			s.runs, s.marks = append(s.runs, a), append(s.marks, sent)
			return a
		}
		if sc.opts.time.now().After(deadline) {
			stop(engine.Inconclusive(decider, "run %d was still %q after %s", id, a.text("data", "status"), limit))
		}
		if sc.Check().Clock && sc.target.ControlURL != "" { // it answers when nothing is left to run
			sc.advance(clockStep)
			continue
		}
		sc.sleep(pause)
		pause = min(pause*5/4, longest)
	}
}

// runs triggers a run and waits for its end.
func (sc *scenario) runs(s *syncing) *answer {
	return sc.ends(s, sc.trigger(s, false))
}

// control calls the control API of a stand-in.
func (sc *scenario) control(method, path string, body any) *answer {
	if sc.target.ControlURL == "" {
		stop(engine.NotRun("--control-url", "needs the control API: give --control-url"))
	}
	return sc.must(request{method: method, path: path, body: body, control: true})
}

// batchesWait lets every batch wait until it is let go, or the scenario is over.
func (sc *scenario) batchesWait() {
	sc.someDestination()
	sc.holdBatches()
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
func (sc *scenario) waits(until func() bool, missing string, args ...any) {
	for deadline := time.Now().Add(runLimit + sc.hold()); !until(); {
		if time.Now().After(deadline) {
			undecided(missing, args...)
		}
		sc.sleep(pollEvery)
	}
}

// batchCame waits until the service has sent a batch.
func (sc *scenario) batchCame() {
	sc.waits(func() bool { return len(sc.dest.Batches()) > 0 }, "no batch came within %s", runLimit)
}

// runShows compares a run, the latest one or one by its number, as it ended.
func (sc *scenario) runShows(number string, t *engine.Table) error {
	run := sc.latestRun()
	if n, err := strconv.Atoi(number); err == nil {
		run = sc.ran(n)
	}
	return sc.allCompared("the run", run, t)
}

func (sc *scenario) aSync(n int, operation string) {
	sc.syncOfRows(numbered(1, n), operation, nil)
}

// latest is the sync of the scenario that was made last.
func (sc *scenario) latest() *syncing { return sc.syncs[len(sc.syncs)-1] }

func (sc *scenario) theSyncRuns() {
	sc.batch = []*answer{sc.runs(sc.latest())}
}
