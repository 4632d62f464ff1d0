package service

import (
	"fmt"
	"maps"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
)

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
func (sc *scenario) newSync(d *destination, rows *dataset, operation string, changes map[string]any) (*syncing, error) {
	body := sc.syncBody(d, rows, operation)
	maps.Copy(body, changes)
	maps.DeleteFunc(body, func(_ string, v any) bool { return v == nil })
	a, err := sc.must(request{method: "POST", path: "/syncs", body: body})
	if err != nil {
		return nil, err
	}
	s := &syncing{id: a.id("data", "sync_id"), dest: d, rows: rows, body: body}
	sc.made(thing{kind: "syncs", id: s.id})
	sc.syncs, sc.words["label"] = append(sc.syncs, s), fmt.Sprint(body["label"])
	return s, nil
}

// syncOfRows makes a sync of rows to the destination of the scenario.
func (sc *scenario) syncOfRows(t table, operation string, changes map[string]any) error {
	if err := sc.someDestination(); err != nil {
		return err
	}
	rows, err := sc.newDataset(t)
	if err != nil {
		return err
	}
	_, err = sc.newSync(sc.dest, rows, operation, changes)
	return err
}

// trigger starts a run and gives its id.
func (sc *scenario) trigger(s *syncing, full bool) (int64, error) {
	path := below("syncs", s.id, "/trigger")
	if full {
		path += "?force_full_sync=true"
	}
	a, err := sc.must(request{method: "POST", path: path})
	if err != nil {
		return 0, err
	}
	sc.says("run", a.id("data", "sync_run_id"))
	return a.id("data", "sync_run_id"), nil
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
func (sc *scenario) ends(s *syncing, id int64) (*answer, error) {
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
		a, err := sc.must(request{method: "GET", path: below("sync_runs", id, "")})
		if err != nil {
			return nil, err
		}
		if over(a.text("data", "status")) {
			sent := 0
			if s.dest != nil { // an emulated application has no endpoint
				sent = len(s.dest.Batches())
			}
			s.runs, s.marks = append(s.runs, a), append(s.marks, sent)
			return a, nil
		}
		if sc.opts.time.now().After(deadline) {
			return nil, engine.Outcome(conformance.Inconclusive, decider, "run %d was still %q after %s", id, a.text("data", "status"), limit)
		}
		if sc.Check().Clock && sc.target.ControlURL != "" { // it answers when nothing is left to run
			if err := sc.advance(clockStep); err != nil {
				return nil, err
			}
			continue
		}
		if err := sc.sleep(pause); err != nil {
			return nil, err
		}
		pause = min(pause*5/4, longest)
	}
}

// runs triggers a run and waits for its end.
func (sc *scenario) runs(s *syncing) (*answer, error) {
	id, err := sc.trigger(s, false)
	if err != nil {
		return nil, err
	}
	return sc.ends(s, id)
}

// control calls the control API of a stand-in.
func (sc *scenario) control(method, path string, body any) (*answer, error) {
	if sc.target.ControlURL == "" {
		return nil, engine.Outcome(conformance.NotRun, "--control-url", "needs the control API: give --control-url")
	}
	return sc.must(request{method: method, path: path, body: body, control: true})
}
