package service

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// lifeSteps are for LIFE: schedules, pauses and the life of a run (spec 2.6, 3).
func lifeSteps() []conformance.Step {
	return []conformance.Step{
		step(`^a sync that runs "([a-z_]+)" and is due in 2 minutes(, and is paused)?$`, func(p *play) any { return p.scheduledSync }),
		step(`^another sync that runs after it$`, func(p *play) any { return p.followingSync }),
		step(`^a client (pauses|resumes) the sync$`, func(p *play) any { return p.pauses }),
		step(`^the first sync runs$`, func(p *play) any {
			return func() error { _, err := p.runs(p.syncs[0]); return err }
		}),
		step(`^the sync has run (\d+) times?$`, func(p *play) any { return p.hasRun }),
		step(`^the sync has run at least (\d+) times$`, func(p *play) any { return p.hasRunOften }),
		step(`^each run was due at the time of its schedule$`, func(p *play) any { return p.dueInTime }),
		step(`^each run says that the schedule started it$`, func(p *play) any { return p.saysWhy }),
		step(`^a run that waits for the destination$`, func(p *play) any { return p.waitingRun }),
		step(`^a client triggers the sync once more$`, func(p *play) any { return p.triggersAgain }),
		step(`^a client cancels the run$`, func(p *play) any { return p.cancels }),
		step(`^the destination answers again$`, func(p *play) any { return p.answersAgain }),
		step(`^the (first|second) run (is|ends) (working|completed|skipped|canceled)$`, func(p *play) any { return p.comesTo }),
		step(`^the destination gets no further batch$`, func(p *play) any { return p.noFurther }),
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

func (p *play) scheduledSync(frequency, paused string) error {
	now, err := p.clockOf()
	if err != nil {
		return err
	}
	if p.dest == nil {
		if _, err := p.connect(connecting{}); err != nil {
			return err
		}
	}
	rows, err := p.newDataset(numbered(1, 2))
	if err != nil {
		return err
	}
	schedule, d := scheduleOf(frequency, now)
	p.life.due = d
	_, err = p.newSync(p.dest, rows, "upsert", map[string]any{
		"mode":   map[string]any{"type": "triggered", "triggers": map[string]any{"schedule": schedule}},
		"paused": paused != "",
	})
	return err
}

func (p *play) followingSync() error {
	rows, err := p.newDataset(numbered(1, 2))
	if err != nil {
		return err
	}
	parent := p.latest()
	_, err = p.newSync(p.dest, rows, "upsert", map[string]any{
		"mode": map[string]any{"type": "triggered", "triggers": map[string]any{"sync_sequence": map[string]any{"sync_id": parent.id}}},
	})
	return err
}

// pauses sends the sync as it was made with the new word: an update needs all
// that is required (spec 4.1.1).
func (p *play) pauses(how string) error {
	s := p.latest()
	body := maps.Clone(s.body)
	body["paused"] = how == "pauses"
	_, err := p.must(request{method: "PATCH", path: below("syncs", s.id, ""), body: body})
	return err
}

// runsOf are the runs of the latest sync once nothing is under way, oldest first.
func (p *play) runsOf() ([]*wire.Node, *answer, error) {
	if p.target.ControlURL != "" {
		if _, err := p.control("POST", "/settle", nil); err != nil {
			return nil, nil, err
		}
	} else if err := p.sleep(aWhile); err != nil {
		return nil, nil, err
	}
	a, err := p.must(request{method: "GET", path: below("syncs", p.latest().id, "/sync_runs?per_page=100&order=asc")})
	if err != nil {
		return nil, nil, err
	}
	return itemsOf(a.at("data")), a, nil
}

// Nobody says when a service has nothing left to do that has no control API: a run
// that follows another one comes within a while, and is waited for a few times.
const (
	aWhile   = 5 * time.Second
	fewTimes = 6
)

// runsComing are the runs of the latest sync when so many of them are expected.
func (p *play) runsComing(want int) (runs []*wire.Node, a *answer, err error) {
	for n := 0; ; n++ {
		runs, a, err = p.runsOf()
		if err != nil || len(runs) >= want || n == fewTimes || p.target.ControlURL != "" {
			return runs, a, err
		}
	}
}

func (p *play) hasRun(want int) error {
	runs, a, err := p.runsComing(want)
	if err != nil {
		return err
	}
	if len(runs) != want {
		p.broken(fmt.Sprintf("%d runs", want), fmt.Sprintf("%d runs", len(runs)), a)
	}
	p.Proof("%d runs", len(runs))
	return p.Held()
}

func (p *play) hasRunOften(want int) error {
	runs, a, err := p.runsComing(want)
	if err != nil {
		return err
	}
	if len(runs) < want {
		p.broken(fmt.Sprintf("at least %d runs", want), fmt.Sprintf("%d runs", len(runs)), a)
	}
	p.Proof("%d runs", len(runs))
	return p.Held()
}

func (p *play) dueInTime() error {
	runs, a, err := p.runsOf()
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "the sync has not run")
	}
	d := p.life.due
	for i, r := range runs {
		want := d.first.Add(time.Duration(i) * d.every)
		at, err := time.Parse(time.RFC3339, stringOf(r.Get("scheduled_execution_time")))
		if err != nil || !at.Truncate(time.Minute).Equal(want) {
			p.broken(fmt.Sprintf("run %d has scheduled_execution_time %s", i+1, want.Format(time.RFC3339)), rawOf(r.Get("scheduled_execution_time")), a)
		}
	}
	p.Proof("%d runs", len(runs))
	return p.Held()
}

// saysWhy: the words are open; a run of the schedule must not look like one that
// somebody has triggered.
func (p *play) saysWhy() error {
	runs, a, err := p.runsOf()
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "the sync has not run")
	}
	tag := stringOf(runs[0].Get("sync_trigger_reason", "ui_tag"))
	manual, err := p.runs(p.latest())
	if err != nil {
		return err
	}
	if tag == "" || tag == manual.text("data", "sync_trigger_reason", "ui_tag") {
		p.broken("a ui_tag of its own, other than that of a run by hand", tag, a, manual)
	}
	p.Proof("ui_tag %q", tag)
	return p.Held()
}

// waitingRun triggers a run whose first batch gets no answer for now.
func (p *play) waitingRun() error {
	// One batch at a time: what comes after it has been started after it.
	one := rpc.Speed{MaximumBatchSize: 100, MaximumParallelBatches: 1, MaximumRecordsPerSecond: 100_000}
	if _, err := p.connect(connecting{sim: SimulatorConfig{Speed: one}}); err != nil {
		return err
	}
	rows, err := p.newDataset(numbered(1, 250))
	if err != nil {
		return err
	}
	if _, err = p.newSync(p.dest, rows, "upsert", nil); err != nil {
		return err
	}
	gate := make(chan struct{})
	p.life.gate = gate
	p.dest.plays(func(c *call) *reply {
		if c.method != rpc.MethodSyncBatch {
			return nil
		}
		return &reply{before: gate, edit: func(body []byte, _ http.Header) []byte { return body }}
	})
	p.endings = append(p.endings, func(context.Context) error { return p.answersAgain() })
	id, err := p.trigger(p.latest(), false)
	if err != nil {
		return err
	}
	p.life.runs = []int64{id}
	for deadline := time.Now().Add(runLimit); len(p.dest.batches()) == 0; {
		if time.Now().After(deadline) {
			return conformance.Outcome(conformance.Inconclusive, "", "no batch has come")
		}
		if err := p.sleep(pollEvery); err != nil {
			return err
		}
	}
	return nil
}

// answersAgain lets the calls go on that wait; it may be said more than once.
func (p *play) answersAgain() error {
	if p.life.gate != nil {
		close(p.life.gate)
		p.life.gate = nil
		p.dest.plays(nil)
	}
	return nil
}

func (p *play) triggersAgain() error {
	id, err := p.trigger(p.latest(), false)
	if err != nil {
		return err
	}
	p.life.runs = append(p.life.runs, id)
	return nil
}

func (p *play) cancels() error {
	runs := p.life.runs
	p.life.batches = len(p.dest.batches())
	_, err := p.must(request{method: "POST", path: below("sync_runs", runs[0], "/cancel")})
	return err
}

// comesTo looks at a run, as it is now or as it ends.
func (p *play) comesTo(which, how, want string) error {
	runs := p.life.runs
	i := slices.Index([]string{"first", "second"}, which)
	if i >= len(runs) {
		return conformance.Outcome(conformance.Inconclusive, "", "there is no %s run", which)
	}
	a, err := p.must(request{method: "GET", path: "/sync_runs/" + strconv.FormatInt(runs[i], 10)})
	if err == nil && how == "ends" {
		a, err = p.ends(p.latest(), runs[i])
	}
	if err != nil {
		return err
	}
	status := a.text("data", "status")
	good := status == want
	if want == "canceled" { // the word is open, the boolean is not
		canceled, _ := a.at("data", "canceled").Bool()
		good = canceled && over(status)
	}
	if !good {
		p.broken("the "+which+" run is "+want, a.short(), a)
	}
	p.Proof("%s", status)
	return p.Held()
}

// noFurther looks after the run is over: what was on its way may have come.
func (p *play) noFurther() error {
	before := p.life.batches
	if err := p.answersAgain(); err != nil {
		return err
	}
	runs := p.life.runs
	if _, err := p.ends(p.latest(), runs[0]); err != nil {
		return err
	}
	if batches := p.dest.batches(); len(batches) > before {
		p.brokenCall("no batch after the cancel", fmt.Sprintf("%d more", len(batches)-before), batches[before:]...)
	}
	p.Proof("%d batches before", before)
	return p.Held()
}
