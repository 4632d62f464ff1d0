package service

import (
	"fmt"
	"slices"
	"time"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/quantity"
)

// lifeSteps are for LIFE: schedules, pauses and the life of a run (spec 2.6, 3).
func lifeSteps() []engine.Step {
	return []engine.Step{
		step(`^a sync that runs "([a-z_]+)" and is due in 2 minutes$`, (*scenario).scheduledSync),
		step(`^another sync that runs after it$`, (*scenario).followingSync),
		step(`^a client pauses the sync$`, (*scenario).pauses),
		step(`^the first sync runs$`, func(sc *scenario) { sc.runs(sc.syncs[0]) }),
		step(`^the sync has run (\d+) times?$`, (*scenario).hasRun),
		step(`^each run was due at the time of its schedule$`, (*scenario).dueInTime),
		step(`^each run says that the schedule started it$`, (*scenario).saysWhy),
		step(`^a run that waits for the destination$`, (*scenario).waitingRun),
		step(`^a client triggers the sync once more$`, (*scenario).triggersAgain),
		step(`^a client cancels the run$`, (*scenario).cancels),
		step(`^the destination answers again$`, (*scenario).answersAgain),
		step(`^the (first|second) run (is|ends) (working|completed|skipped|canceled)$`, (*scenario).comesTo),
		step(`^the destination gets no further batch$`, (*scenario).noFurther),
	}
}

// due is when a schedule of the scenario falls due first, and every.
type due struct {
	first time.Time
	every time.Duration
}

// lead is how far ahead a schedule is set, on a whole minute.
const lead = 2 * time.Minute

// scheduleOf is a schedule that falls due first in about two minutes.
func scheduleOf(frequency string, now time.Time) (map[string]any, due) {
	at := now.Truncate(time.Minute).Add(lead)
	s := map[string]any{"frequency": frequency}
	d := due{first: at}
	switch frequency {
	case "hourly":
		s["minute"], d.every = at.Minute(), time.Hour
	case "daily":
		s["minute"], s["hour"], d.every = at.Minute(), at.Hour(), 24*time.Hour
	case "weekly":
		s["minute"], s["hour"], s["day"], d.every = at.Minute(), at.Hour(), at.Weekday().String(), 7*24*time.Hour
	case "expression":
		s["cron_expression"], d.every = fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour()), 24*time.Hour
	}
	return s, d
}

func (sc *scenario) scheduledSync(frequency string) {
	schedule, d := scheduleOf(frequency, sc.clockOf())
	sc.life.due = d
	sc.syncOfRows(numbered(1, 2), "upsert", map[string]any{
		"mode": map[string]any{"type": "triggered", "triggers": map[string]any{"schedule": schedule}},
	})
}

func (sc *scenario) followingSync() {
	sc.syncOfRows(numbered(1, 2), "upsert", map[string]any{
		"mode": map[string]any{"type": "triggered", "triggers": map[string]any{"sync_sequence": map[string]any{"sync_id": sc.latest().id}}},
	})
}

// pauses sends the sync as it was made with the new word: an update needs all
// that is required (spec 4.1.1).
func (sc *scenario) pauses() { sc.changes(sc.latest(), map[string]any{"paused": true}) }

// runsOf are the runs of the latest sync once nothing is under way, oldest first.
func (sc *scenario) runsOf() ([]*wire.Node, *answer) {
	if sc.target.ControlURL != "" {
		sc.control("POST", "/settle", nil)
	} else {
		sc.sleep(aWhile)
	}
	a := sc.must(request{method: "GET", path: below("syncs", sc.latest().id, "/sync_runs?per_page=100&order=asc")})
	return jsonvalue.Items(a.at("data")), a
}

// It is not said when a service has nothing left to do that has no control API: a run
// that follows another one comes within a while, and is waited for a few times.
const (
	aWhile   = 5 * time.Second
	fewTimes = 6
)

// runsComing are the runs of the latest sync when so many of them are expected.
func (sc *scenario) runsComing(want int) (runs []*wire.Node, a *answer) {
	for n := 0; ; n++ {
		runs, a = sc.runsOf()
		if len(runs) >= want || n == fewTimes || sc.target.ControlURL != "" {
			return runs, a
		}
	}
}

// hasRun counts the runs.
func (sc *scenario) hasRun(want int) error {
	runs, a := sc.runsComing(want)
	if len(runs) != want {
		sc.broken(quantity.Count(want, "run"), quantity.Count(len(runs), "run"), a)
	}
	return sc.heldBy(len(runs), "run")
}

// someRuns are those of runsOf; none at all decides nothing.
func (sc *scenario) someRuns() (runs []*wire.Node, a *answer) {
	if runs, a = sc.runsOf(); len(runs) == 0 {
		undecided("the sync has not run")
	}
	return runs, a
}

func (sc *scenario) dueInTime() error {
	runs, a := sc.someRuns()
	d := sc.life.due
	for i, r := range runs {
		want := d.first.Add(time.Duration(i) * d.every)
		at, err := time.Parse(time.RFC3339, jsonvalue.Text(r.Get("scheduled_execution_time")))
		if err != nil || !at.Truncate(time.Minute).Equal(want) {
			sc.broken(fmt.Sprintf("run %d has scheduled_execution_time %s", i+1, want.Format(time.RFC3339)), jsonvalue.Raw(r.Get("scheduled_execution_time")), a)
		}
	}
	return sc.heldBy(len(runs), "run")
}

// saysWhy: the words are open; a run of the schedule must not look like one that
// a user has triggered.
func (sc *scenario) saysWhy() error {
	runs, a := sc.someRuns()
	tag := jsonvalue.Text(runs[0].Get("sync_trigger_reason", "ui_tag"))
	manual := sc.runs(sc.latest())
	if tag == "" || tag == manual.text("data", "sync_trigger_reason", "ui_tag") {
		sc.broken("a ui_tag of its own, other than that of a run by hand", tag, a, manual)
	}
	return sc.HeldBy("ui_tag %q", tag)
}

// waitingRun triggers a run whose first batch gets no answer for now.
func (sc *scenario) waitingRun() {
	// One batch at a time: what comes after it has been started after it.
	sc.connect(connecting{sim: SimulatorConfig{Speed: speedOf(100, 1, 100_000)}})
	sc.aSync(250, "upsert")
	sc.holdBatches()
	sc.life.runs = []int64{sc.trigger(sc.latest(), false)}
	sc.batchCame()
}

// answersAgain lets the calls go on that wait; it may be said more than once.
func (sc *scenario) answersAgain() {
	if sc.release != nil {
		sc.release()
	}
}

func (sc *scenario) triggersAgain() {
	sc.life.runs = append(sc.life.runs, sc.trigger(sc.latest(), false))
}

func (sc *scenario) cancels() {
	sc.life.batches = len(sc.dest.Batches())
	sc.must(request{method: "POST", path: below("sync_runs", sc.life.runs[0], "/cancel")})
}

// comesTo looks at a run, as it is now or as it ends.
func (sc *scenario) comesTo(which, how, want string) error {
	runs := sc.life.runs
	i := slices.Index([]string{"first", "second"}, which)
	if i >= len(runs) {
		undecided("there is no %s run", which)
	}
	a := sc.must(request{method: "GET", path: below("sync_runs", runs[i], "")})
	if how == "ends" {
		a = sc.ends(sc.latest(), runs[i])
	}
	status := a.text("data", "status")
	good := status == want
	if want == "canceled" { // the word is open, the boolean is not
		canceled, _ := a.at("data", "canceled").Bool()
		good = canceled && over(status)
	}
	if !good {
		sc.broken("the "+which+" run is "+want, a.short(), a)
	}
	return sc.HeldBy("%s", status)
}

// noFurther looks after the run is over: what was on its way may have come.
func (sc *scenario) noFurther() error {
	before := sc.life.batches
	sc.answersAgain()
	sc.ends(sc.latest(), sc.life.runs[0])
	if batches := sc.dest.Batches(); len(batches) > before {
		sc.brokenCall("no batch after the cancel", fmt.Sprintf("%d more", len(batches)-before), batches[before:]...)
	}
	return sc.HeldBy("%s before", quantity.Count(before, "batch"))
}
