package service

import (
	"fmt"
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

// retriesSteps are for RTRY: what is sent again, and when everything is (spec
// 7.2.4, 7.2.5, 4.2).
func retriesSteps() []engine.Step {
	return []engine.Step{
		step(`^the destination answers record "([^"]*)" with (a refusal|no result|success and failure)( once)?$`, (*scenario).answersRecord),
		step(`^the destination gives results in reverse order$`, func(sc *scenario) { sc.addFault(func(m *recordFaults) { m.reversed = true }) }),
		step(`^the destination is well again$`, (*scenario).isWell),
		step(`^the sync runs with force_full_sync in the query$`, (*scenario).runsInFull),
		step(`^the URL of the destination changes$`, (*scenario).moves),
		step(`^the sync also maps "([a-z]+)"$`, (*scenario).mapsAlso),
		step(`^time passes until another run of the sync has ended$`, (*scenario).anotherRun),
		step(`^(?:run (\d+)|the sync) sends "([^"]*)" (once|more than once)$`, (*scenario).sendsSoOften),
		step(`^run (\d+) is (a full sync with its reason|no full sync)$`, (*scenario).runIsFull),
		step(`^the history of run (\d+) shows record "([^"]*)" as (succeeded|rejected)( with its message)?$`, (*scenario).historyShows),
		step(`^the history of run (\d+) with status "([a-z]+)" is$`, (*scenario).historyOf),
		step(`^the waits between the batches of run (\d+) grow$`, (*scenario).waitsGrow),
	}
}

// runsInFull triggers a run that sends everything.
func (sc *scenario) runsInFull() {
	sc.ends(sc.latest(), sc.trigger(sc.latest(), true))
}

// moves gives the connection another URL, which leads to the same simulator.
func (sc *scenario) moves() {
	d := sc.dest
	d.url += "/moved"
	sc.must(request{method: "PATCH", path: below("destinations", d.id, ""), body: d.connection(nil)})
}

// mapsAlso adds a mapping to a column that the source has already.
func (sc *scenario) mapsAlso(column string) {
	s := sc.latest()
	mappings := slices.Clone(s.body["mappings"].([]map[string]any))
	sc.changes(s, map[string]any{"mappings": append(mappings, mapping(column, column))})
}

// The time in which a sync that was incomplete has to run again. The
// specification names none; who waits for real waits less, and decides less.
const (
	anotherSteps = 12
	anotherStep  = "10m"
)

// anotherRun waits for a run that was not asked for.
func (sc *scenario) anotherRun() error {
	s := sc.latest()
	last := sc.newest(s)
	until := sc.opts.time.now().Add(patientAtMost)
	for n := 0; ; n++ {
		now := sc.newest(s)
		if now != last {
			sc.ends(s, now)
			return nil
		}
		switch {
		case sc.patient() && sc.opts.time.now().After(until):
			return engine.Inconclusive("--control-url", "the sync has not run again within %s", inWords(patientAtMost))
		case sc.patient():
			sc.sleep(pollPatiently)
		case n == anotherSteps:
			sc.broken("the sync runs again by itself", "it has not, since run "+strconv.FormatInt(last, 10), s.runs[len(s.runs)-1])
			return sc.Held()
		default:
			sc.advance(anotherStep)
		}
	}
}

// newest is the id of the latest run of a sync.
func (sc *scenario) newest(s *syncing) int64 {
	a := sc.must(request{method: "GET", path: below("syncs", s.id, "/sync_runs?per_page=1&order=desc")})
	runs := jsonvalue.Items(a.at("data"))
	if len(runs) == 0 {
		undecided("the sync has no runs")
	}
	id, _ := runs[0].Get("id").Int()
	return id
}

func (sc *scenario) sendsSoOften(number, id, often string) error {
	batches := sc.latest().dest.Batches()
	if run, err := strconv.Atoi(number); err == nil {
		batches = sc.batchesOf(sc.latest(), run)
	}
	records := slices.DeleteFunc(unpack(batches), func(r sent) bool { return r.identifier != id })
	if often == "once" && len(records) != 1 || often == "more than once" && len(records) < 2 {
		sc.brokenCall(fmt.Sprintf("the sync sends %q %s", id, often), quantity.Count(len(records), "time"), callsOf(records)...)
	}
	return sc.HeldBy("%q is sent %s", id, quantity.Count(len(records), "time"))
}

func (sc *scenario) runIsFull(run int, what string) error {
	a := sc.ran(run)
	full := jsonvalue.Raw(a.at("data", "full_sync"))
	reason := a.text("data", "sync_trigger_reason", "ui_tag") + a.text("data", "sync_trigger_reason", "ui_detail")
	if want := what != "no full sync"; full != strconv.FormatBool(want) || want && reason == "" {
		sc.broken(fmt.Sprintf("run %d is %s", run, what), fmt.Sprintf("full_sync is %s, sync_trigger_reason is %s", full, jsonvalue.Raw(a.at("data", "sync_trigger_reason"))), a)
	}
	return sc.HeldBy("full_sync is %s", full)
}

// history reads the records of a run.
func (sc *scenario) history(run int, query string) ([]*wire.Node, *answer) {
	a := sc.must(request{method: "GET", path: below("sync_runs", sc.ran(run).id("data", "id"), "/records?per_page=100"+query)})
	return jsonvalue.Items(a.at("data")), a
}

func (sc *scenario) historyShows(run int, id, status, message string) error {
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
}

// historyOf compares the records of one status, by their identifiers.
func (sc *scenario) historyOf(run int, status string, want *engine.Table) error {
	lines, a := sc.history(run, "&status="+status)
	got := lists.Of(lines, func(l *wire.Node) string { return jsonvalue.Text(l.Get("identifier")) })
	wanted := lists.Of(engine.Rows(want), func(line []string) string { return line[0] })
	if slices.Sort(got); !slices.Equal(got, wanted) {
		sc.broken(fmt.Sprintf("%v as %s", wanted, status), fmt.Sprintf("%v", got), a)
	}
	return sc.heldBy(len(got), "record")
}

// growth is how much longer each wait has to be than the one before: backoffs
// double, and may be shortened by chance.
const growth = 1.2

func (sc *scenario) waitsGrow(run int) error {
	batches := sc.batchesOf(sc.latest(), run)
	var waits []time.Duration
	for i := 1; i < len(batches); i++ {
		before, _ := sc.dest.timeOf(batches[i-1])
		now, _ := sc.dest.timeOf(batches[i])
		waits = append(waits, now.Sub(before))
	}
	if len(waits) < 2 {
		undecided("no waits that could grow: %s seen", quantity.Count(len(batches), "batch"))
	}
	for i := 1; i < len(waits); i++ {
		if float64(waits[i]) < growth*float64(waits[i-1]) {
			sc.brokenCall("each wait is longer than the one before", fmt.Sprintf("waits of %v", waits), batches...)
			break
		}
	}
	return sc.HeldBy("waits of %v", waits)
}
