package service

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// runSteps are for RUN, executions of syncs, CNT, their counters (spec 2.9), and what they show for RTRY (spec 7.2.4).
var runSteps = []step{
	{`^a sync of (\d+) records with operation "([a-z]+)"$`, (*scenario).aSync},
	{`^the sync runs( with force_full_sync in the query)?$`, (*scenario).theSyncRuns},
	{`^the destination holds its batches back$`, (*scenario).holdBatches},
	{`^a batch of the run is under way$`, (*scenario).batchCame},
	{`^time passes until another run of the sync has ended$`, (*scenario).anotherRun},

	{`^(?:the run|run (\d+)) shows:$`, func(sc *scenario, number string, t *engine.Table) error {
		run := sc.latestRun()
		if n, err := strconv.Atoi(number); err == nil {
			run = sc.ran(n)
		}
		return sc.allCompared("the run", run, t)
	}},
	{`^run (\d+) is (completed|failed)$`, func(sc *scenario, run int, status string) error {
		a := sc.ran(run)
		got := a.text("data", "status")
		sc.expect(got == status, fmt.Sprintf("run %d is %s", run, status), got+": "+a.text("data", "error_message"), a)
		return sc.HeldBy("run %d is %s", run, status)
	}},
	{`^run (\d+) is (a full sync with its reason|no full sync)$`, func(sc *scenario, run int, what string) error {
		a := sc.ran(run)
		full, why := jsonvalue.Raw(a.at("data", "full_sync")), a.at("data", "sync_trigger_reason")
		is := full == "false"
		if what != "no full sync" {
			is = full == "true" && jsonvalue.Text(why.Get("ui_tag"))+jsonvalue.Text(why.Get("ui_detail")) != ""
		}
		actual := fmt.Sprintf("full_sync is %s, sync_trigger_reason is %s", full, jsonvalue.Raw(why))
		sc.expect(is, fmt.Sprintf("run %d is %s", run, what), actual, a)
		return sc.HeldBy("full_sync is %s", full)
	}},
	{`^the history of run (\d+) shows record "([^"]*)" as (succeeded|rejected)( with its message)?$`,
		func(sc *scenario, run int, id, status, message string) error {
			lines, a := sc.history(run, "")
			i := slices.IndexFunc(lines, func(l *wire.Node) bool { return jsonvalue.Text(l.Get("identifier")) == id })
			switch {
			case i < 0:
				sc.broken(fmt.Sprintf("the history shows the record %q", id), "it does not", a)
			case jsonvalue.Text(lines[i].Get("status")) != status:
				sc.broken(fmt.Sprintf("%q is %s", id, status), jsonvalue.Raw(lines[i]), a)
			case message != "" && !strings.Contains(jsonvalue.Text(lines[i].Get("status_message")), refusal):
				sc.broken(fmt.Sprintf("the message of %q says %q", id, refusal), a.short(), a)
			}
			return sc.HeldBy("%s in the history", quantity.Count(len(lines), "record"))
		}},
	{`^the history of run (\d+) with status "([a-z]+)" is$`, func(sc *scenario, run int, status string, want *engine.Table) error {
		lines, a := sc.history(run, "&status="+status)
		got := lists.Of(lines, func(l *wire.Node) string { return jsonvalue.Text(l.Get("identifier")) })
		wanted := lists.Of(engine.Rows(want), func(line []string) string { return line[0] })
		slices.Sort(got)
		sc.expect(slices.Equal(got, wanted), fmt.Sprintf("%v as %s", wanted, status), fmt.Sprintf("%v", got), a)
		return sc.heldBy(len(got), "record")
	}},
	// A run that failed may leave its counters out.
	{`^run (\d+) counts no record as updated$`, func(sc *scenario, run int) error {
		a := sc.ran(run)
		updated := jsonvalue.Raw(a.at("data", "records_updated"))
		sc.expect(updated == "0" || updated == "null", "records_updated is 0 or null", updated, a)
		return sc.HeldBy("records_updated is %s", updated)
	}},
	{`^the counters of run (\d+) agree with its history$`, func(sc *scenario, run int) error {
		lines, a := sc.history(run, "")
		ended, count := sc.ran(run), map[string]int64{}
		for _, l := range lines {
			count[jsonvalue.Text(l.Get("status"))]++
		}
		for status, name := range map[string]string{"succeeded": "records_updated", "rejected": "records_failed"} {
			n := ended.id("data", name)
			sc.expect(n == count[status], fmt.Sprintf("as many records are %s as %s says: %d", status, name, n), fmt.Sprint(count[status]), ended, a)
		}
		return sc.HeldBy("%s in the history", quantity.Count(len(lines), "record"))
	}},
}

// syncing is a sync of the scenario with the runs that it has seen.
type syncing struct {
	id    int64
	dest  *destination
	rows  *dataset
	body  map[string]any
	runs  []*answer // of GET /sync_runs/{id}, each as it ended
	marks []int     // how many batches the destination had got by the end of each run
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

// syncBody is an ordinary sync to the latest destination: columns to fields of the same names, the first as identifier.
func (sc *scenario) syncBody(rows *dataset, operation string) map[string]any {
	mappings := lists.Of(rows.table.columns, func(column string) map[string]any { return mapping(column, column) })
	identifies(mappings[0])
	return map[string]any{
		"label": sc.called("sync"), "operation": operation, "mappings": mappings,
		"source_attributes":      map[string]any{"connection_id": sc.source, "object": map[string]any{"type": "dataset", "id": rows.id}},
		"destination_attributes": map[string]any{"connection_id": sc.dest.id, "object": thingObject},
		"mode":                   triggered("schedule", map[string]any{"frequency": "never"}),
		"alert_attributes":       []any{},
	}
}

// triggered is a mode with one trigger.
func triggered(by string, trigger map[string]any) map[string]any {
	return map[string]any{"type": "triggered", "triggers": map[string]any{by: trigger}}
}

// newSync makes a sync of rows; nil leaves a field out of its body.
func (sc *scenario) newSync(rows *dataset, body map[string]any) *syncing {
	a := sc.must(request{method: "POST", path: "/syncs", body: withoutNil(body)})
	sc.words["label"] = fmt.Sprint(body["label"])
	return sc.noteSync(a, rows, body)
}

// noteSync keeps a sync that a call has made.
func (sc *scenario) noteSync(a *answer, rows *dataset, body map[string]any) *syncing {
	s := &syncing{id: a.id("data", "sync_id"), dest: sc.dest, rows: rows, body: body}
	sc.made(thing{kind: "syncs", id: s.id})
	sc.syncs = append(sc.syncs, s)
	return s
}

// syncOfRows makes a sync of rows to the destination of the scenario; changes go over the ordinary body.
func (sc *scenario) syncOfRows(t table, operation string, changes map[string]any) {
	sc.someDestination()
	rows := sc.newDataset(t)
	body := sc.syncBody(rows, operation)
	maps.Copy(body, changes)
	sc.newSync(rows, body)
}

// trigger starts a run and gives its id.
func (sc *scenario) trigger(s *syncing, full bool) int64 {
	path := below("syncs", s.id, "/trigger")
	if full {
		path += "?force_full_sync=true"
	}
	id := sc.must(request{method: "POST", path: path}).id("data", "sync_run_id")
	sc.says("run", id)
	return id
}

// over are the statuses of a run that has ended.
var over = []string{"completed", "failed", "skipped", "canceled", "cancelled"}

// runLimit bounds the real time of one run, and pollEvery is how often it is queried; a backoff of
// the service is skipped where time can be moved. Scenarios that wait in parallel query less often.
const (
	runLimit      = 60 * time.Second
	pollEvery     = 5 * time.Millisecond
	pollAtMost    = 250 * time.Millisecond
	pollPatiently = 2 * time.Second
)

// ends waits until a run is over and gives it as it then is. A check that may move time does so meanwhile.
func (sc *scenario) ends(s *syncing, id int64) *answer {
	limit, longest, decider := runLimit, pollAtMost, ""
	if isHeld(sc.Check()) {
		limit += sc.hold()
	}
	if sc.waitReason(sc.Check()) != "" {
		limit, longest, decider = patientAtMost, pollPatiently, "--request-timeout"
		if sc.Check().Clock {
			decider = "--control-url"
		}
	}
	pause, deadline := pollEvery, sc.opts.time.now().Add(limit)
	for {
		a := sc.get(below("sync_runs", id, ""))
		status := a.text("data", "status")
		if slices.Contains(over, status) {
			s.runs, s.marks = append(s.runs, a), append(s.marks, len(s.dest.Batches()))
			return a
		}
		if sc.opts.time.now().After(deadline) {
			stop(engine.Inconclusive(decider, "run %d was still %q after %s", id, status, limit))
		}
		if sc.Check().Clock && sc.target.ControlURL != "" { // it answers when nothing is left to run
			sc.advance("2s")
			continue
		}
		sc.sleep(pause)
		pause = min(pause*5/4, longest)
	}
}

// runs triggers a run and waits for its end.
func (sc *scenario) runs(s *syncing) *answer { return sc.ends(s, sc.trigger(s, false)) }

// control calls the control API of a stand-in.
func (sc *scenario) control(method, path string, body any) *answer {
	if sc.target.ControlURL == "" {
		stop(engine.NotRun("--control-url", "needs the control API: give --control-url"))
	}
	return sc.must(request{method: method, path: path, body: body, control: true})
}

// holdBatches lets every batch wait until it is let go, or the scenario is over.
func (sc *scenario) holdBatches() {
	sc.someDestination()
	gate := make(chan struct{})
	sc.release = sync.OnceFunc(func() { close(gate) })
	sc.endings = append(sc.endings, func(context.Context) error { sc.release(); return nil })
	sc.dest.Behave(methodIs(rpc.MethodSyncBatch, func(_ *endpoint.Call, r *endpoint.Reply) { r.Before = gate }))
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

func (sc *scenario) aSync(n int, operation string) { sc.syncOfRows(numbered(n), operation, nil) }

// latest is the sync of the scenario that was made last.
func (sc *scenario) latest() *syncing { return sc.syncs[len(sc.syncs)-1] }

func (sc *scenario) theSyncRuns(full string) {
	sc.batch = []*answer{sc.ends(sc.latest(), sc.trigger(sc.latest(), full != ""))}
}

// latestRun is the run that ended last.
func (sc *scenario) latestRun() *answer {
	runs := sc.latest().runs
	mustSee(len(runs), "no run has ended")
	return runs[len(runs)-1]
}

// ran is a run of the latest sync as it ended, from 1.
func (sc *scenario) ran(run int) *answer {
	s := sc.latest()
	if run > len(s.runs) {
		stop(fmt.Errorf("the scenario has no run %d", run))
	}
	return s.runs[run-1]
}

// history reads the records of a run.
func (sc *scenario) history(run int, query string) ([]*wire.Node, *answer) {
	a := sc.get(below("sync_runs", sc.ran(run).id("data", "id"), "/records?per_page=100"+query))
	return jsonvalue.Items(a.at("data")), a
}
