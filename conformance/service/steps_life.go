package service

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// lifeSteps are for LIFE, schedules, pauses and runs (spec 2.6, 3), and ALRT, alerts by e-mail (spec 2.8, 6).
var lifeSteps = []step{
	{`^a sync that runs "([a-z_]+)" and is due in 2 minutes$`, func(sc *scenario, frequency string) {
		const day = 24 * time.Hour
		at := sc.clockOf().Truncate(time.Minute).Add(2 * time.Minute)
		schedule := map[string]any{"frequency": frequency}
		sc.life.due = at
		switch frequency {
		case "hourly":
			schedule["minute"], sc.life.every = at.Minute(), time.Hour
		case "daily":
			schedule["minute"], schedule["hour"], sc.life.every = at.Minute(), at.Hour(), day
		case "weekly":
			schedule["minute"], schedule["hour"], schedule["day"], sc.life.every = at.Minute(), at.Hour(), at.Weekday().String(), 7*day
		case "expression":
			schedule["cron_expression"], sc.life.every = fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour()), day
		}
		sc.syncOfRows(numbered(2), "upsert", map[string]any{"mode": triggered("schedule", schedule)})
	}},
	{`^another sync that runs after it$`, func(sc *scenario) {
		sc.syncOfRows(numbered(2), "upsert", map[string]any{"mode": triggered("sync_sequence", map[string]any{"sync_id": sc.latest().id})})
	}},
	{`^a client pauses the sync$`, func(sc *scenario) { sc.changes(sc.latest(), map[string]any{"paused": true}) }},
	{`^the first sync runs$`, func(sc *scenario) { sc.runs(sc.syncs[0]) }},
	{`^the sync has run (\d+) times?$`, func(sc *scenario, want int) error {
		runs, a := sc.runsComing(want)
		sc.expect(len(runs) == want, quantity.Count(want, "run"), quantity.Count(len(runs), "run"), a)
		return sc.heldBy(len(runs), "run")
	}},
	{`^each run was due at the time of its schedule$`, func(sc *scenario) error {
		runs, a := sc.someRuns()
		for i, r := range runs {
			want, got := sc.life.due.Add(time.Duration(i)*sc.life.every), r.Get("scheduled_execution_time")
			at, err := time.Parse(time.RFC3339, jsonvalue.Text(got))
			sc.expect(err == nil && at.Truncate(time.Minute).Equal(want),
				fmt.Sprintf("run %d has scheduled_execution_time %s", i+1, want.Format(time.RFC3339)), jsonvalue.Raw(got), a)
		}
		return sc.heldBy(len(runs), "run")
	}},
	// The words are open; a run of the schedule must not look like one that a user has triggered.
	{`^each run says that the schedule started it$`, func(sc *scenario) error {
		runs, a := sc.someRuns()
		tag := jsonvalue.Text(runs[0].Get("sync_trigger_reason", "ui_tag"))
		manual := sc.runs(sc.latest())
		is := tag != "" && tag != manual.text("data", "sync_trigger_reason", "ui_tag")
		sc.expect(is, "a ui_tag of its own, other than that of a run by hand", tag, a, manual)
		return sc.HeldBy("ui_tag %q", tag)
	}},
	// One batch at a time: what comes after it has been started after it.
	{`^a run that waits for the destination$`, func(sc *scenario) {
		sc.connect(connecting{sim: SimulatorConfig{Speed: speedOf(100, 1, 100_000)}})
		sc.aSync(250, "upsert")
		sc.holdBatches()
		sc.triggersAgain()
		sc.batchCame()
	}},
	{`^a client triggers the sync once more$`, (*scenario).triggersAgain},
	{`^a client cancels the run$`, func(sc *scenario) {
		sc.life.batches = len(sc.dest.Batches())
		sc.must(request{method: "POST", path: below("sync_runs", sc.life.runs[0], "/cancel")})
	}},
	{`^the destination answers again$`, func(sc *scenario) { sc.release() }},
	{`^the (first|second) run (is|ends) (working|completed|skipped|canceled)$`, func(sc *scenario, which, how, want string) error {
		i := slices.Index([]string{"first", "second"}, which)
		if i >= len(sc.life.runs) {
			undecided("there is no %s run", which)
		}
		id := sc.life.runs[i]
		a := sc.get(below("sync_runs", id, ""))
		if how == "ends" {
			a = sc.ends(sc.latest(), id)
		}
		status := a.text("data", "status")
		good := status == want
		if want == "canceled" { // the word is open, the boolean is not
			good = isTrue(a.at("data", "canceled")) && slices.Contains(over, status)
		}
		sc.expect(good, "the "+which+" run is "+want, a.short(), a)
		return sc.HeldBy("%s", status)
	}},
	// What was on its way when the run was canceled may have come by its end.
	{`^the destination gets no further batch$`, func(sc *scenario) error {
		before := sc.life.batches
		sc.release()
		sc.ends(sc.latest(), sc.life.runs[0])
		batches := sc.dest.Batches()
		sc.expectCall(len(batches) <= before, "no batch after the cancel", fmt.Sprintf("%d more", len(batches)-before), batches[before:]...)
		return sc.HeldBy("%s before", quantity.Count(before, "batch"))
	}},

	// spec 2.14: it has its own notification_emails, so that the scenario reads no other mailbox.
	{`^a workspace whose notices go to (\d+) address(?:es)?$`, func(sc *scenario, addresses int) {
		sc.noticed = lists.Of(make([]string, addresses), func(string) string { return sc.email("notice") })
		id, key := sc.newWorkspace(map[string]any{"notification_emails": sc.noticed})
		sc.key, sc.words["workspace"] = key, strconv.FormatInt(id, 10)
		sc.ownSource()
	}},
	// null leaves a field out.
	{`^a sync of (\d+) rows, (\d+) of them invalid, with:$`, func(sc *scenario, n, invalid int, settings *engine.Table) {
		changes := map[string]any{}
		for _, line := range engine.Rows(settings) {
			var value any
			stopAt(json.Unmarshal([]byte(line[1]), &value), "read %s", line[0])
			changes[line[0]] = value
		}
		sc.syncOfRows(partly(n, invalid), "upsert", changes)
	}},
	{`^the source has (\d+) rows, (\d+) of them invalid$`, func(sc *scenario, n, invalid int) {
		sc.holds(sc.latest().rows, partly(n, invalid))
	}},
	{`^(no|\d+) e-mails? (?:has|have) come$`, func(sc *scenario, how string) error {
		want, _ := strconv.Atoi(how) // "no" is none
		for _, address := range sc.noticed {
			sc.control("POST", "/settle", nil)
			a := sc.control("GET", mailboxOf(address), nil)
			mails := jsonvalue.Items(a.at("mails"))
			subjects := lists.Of(mails, func(m *wire.Node) string { return jsonvalue.Text(m.Get("subject")) })
			actual := fmt.Sprintf("%d: %s", len(mails), strings.Join(subjects, "; "))
			sc.expect(len(mails) == want, fmt.Sprintf("%d e-mails about the sync", want), actual, a)
		}
		return sc.HeldBy("%s e-mails to %s", how, quantity.Count(len(sc.noticed), "address"))
	}},
}

// runLife is the state of runs that begin by themselves or are held back.
type runLife struct {
	due     time.Time     // when a schedule falls due first
	every   time.Duration // how often it then does
	runs    []int64       // in the order of their beginning
	batches int           // that had come when a run was canceled
}

// runsOf are the runs of the latest sync once nothing is under way, oldest first.
func (sc *scenario) runsOf() ([]*wire.Node, *answer) {
	if sc.target.ControlURL != "" {
		sc.control("POST", "/settle", nil)
	} else {
		sc.sleep(aWhile)
	}
	a := sc.get(sc.syncPath() + "/sync_runs?per_page=100&order=asc")
	return jsonvalue.Items(a.at("data")), a
}

// Without a control API a run that follows another one comes within a while: the scenario waits a few times.
const aWhile, fewTimes = 5 * time.Second, 6

// runsComing are the runs of the latest sync when so many of them are expected.
func (sc *scenario) runsComing(want int) (runs []*wire.Node, a *answer) {
	for n := 0; ; n++ {
		runs, a = sc.runsOf()
		if len(runs) >= want || n == fewTimes || sc.target.ControlURL != "" {
			return runs, a
		}
	}
}

// someRuns are those of runsOf; none at all decides nothing.
func (sc *scenario) someRuns() (runs []*wire.Node, a *answer) {
	runs, a = sc.runsOf()
	mustSee(len(runs), "the sync has not run")
	return runs, a
}

func (sc *scenario) triggersAgain() {
	sc.life.runs = append(sc.life.runs, sc.trigger(sc.latest(), false))
}

// partly are n rows of which some are invalid: they have no identifier.
func partly(n, invalid int) table {
	t := numbered(n)
	for i := range invalid {
		t.rows[i]["id"] = nil
	}
	return t
}

// mailboxOf is where a stand-in shows the e-mails to an address.
func mailboxOf(address string) string { return "/mailbox?to=" + url.QueryEscape(address) }
