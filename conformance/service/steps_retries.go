package service

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// retriesSteps are for RTRY: what is sent again, and when everything is (spec
// 7.2.4, 7.2.5, 4.2).
func retriesSteps() []engine.Step {
	return []engine.Step{
		step(`^the destination answers record "([^"]*)" with (a refusal|no result|a result without success|success and failure|two successes|the result of another record)( once)?$`,
			func(sc *scenario) any { return sc.answersRecord }),
		step(`^the destination answers (every|the first) ([a-z_]+)(?: with record "([^"]*)")? with (HTTP 500|an error object|no results|no reply|no reply, but stores it)$`,
			func(sc *scenario) any { return sc.answersCall }),
		step(`^the destination gives results in reverse order$`, func(sc *scenario) any {
			return func() error { return sc.addFault(func(m *faults) { m.reversed = true }) }
		}),
		step(`^the destination is well again$`, func(sc *scenario) any {
			return func() { sc.faultsOf(sc.dest).clear() }
		}),
		step(`^the destination notes the time of every batch$`, func(sc *scenario) any { return sc.notesTimes }),
		step(`^a destination that declares "([a-z]+)" as an identifier too$`, func(sc *scenario) any { return sc.declaresIdentifier }),
		step(`^the sync runs with force_full_sync in the (query|body)$`, func(sc *scenario) any { return sc.runsInFull }),
		step(`^the URL of the destination changes$`, func(sc *scenario) any { return sc.moves }),
		step(`^the sync also maps "([a-z]+)"$`, func(sc *scenario) any { return sc.mapsAlso }),
		step(`^the sync takes "([a-z]+)" for its identifier$`, func(sc *scenario) any { return sc.takesIdentifier }),
		step(`^time passes until another run of the sync has ended$`, func(sc *scenario) any { return sc.anotherRun }),
		step(`^run (\d+) sends "([^"]*)" (once|more than once)$`, func(sc *scenario) any { return sc.runSendsRecord }),
		step(`^"([^"]*)" is sent (more than once)$`, func(sc *scenario) any {
			return func(id, often string) error {
				return sc.sentSoOften("the sync", unpack(sc.latest().dest.Batches()), id, often)
			}
		}),
		step(`^run (\d+) sends "([^"]*)" in batches of ([\d, ]+) records$`, func(sc *scenario) any { return sc.runHalves }),
		step(`^run (\d+) is (a full sync with its reason|no full sync)$`, func(sc *scenario) any { return sc.runIsFull }),
		step(`^the history of run (\d+) shows record "([^"]*)" as (succeeded|rejected)( with its message)?$`, func(sc *scenario) any { return sc.historyShows }),
		step(`^the history of run (\d+) with status "([a-z]+)" is$`, func(sc *scenario) any { return sc.historyOf }),
		step(`^the waits between the batches of run (\d+) grow$`, func(sc *scenario) any { return sc.waitsGrow }),
	}
}

// runsInFull triggers a run that sends everything.
func (sc *scenario) runsInFull(where string) error {
	s := sc.latest()
	var id int64
	var err error
	if where == "query" {
		id, err = sc.trigger(s, true)
	} else {
		var a *answer
		if a, err = sc.must(request{method: "POST", path: sc.syncPath() + "/trigger", body: map[string]any{"force_full_sync": true}}); err == nil {
			id = a.id("data", "sync_run_id")
		}
	}
	if err == nil {
		_, err = sc.ends(s, id)
	}
	return err
}

// moves gives the connection another URL, which leads to the same simulator.
func (sc *scenario) moves() error {
	d := sc.dest
	d.url += "/moved"
	_, err := sc.must(request{method: "PATCH", path: "/destinations/" + strconv.FormatInt(d.id, 10), body: d.connection(nil)})
	return err
}

// mapsAlso adds a mapping to a column that the source has already.
func (sc *scenario) mapsAlso(column string) error {
	s := sc.latest()
	mappings := slices.Clone(s.body["mappings"].([]map[string]any))
	return sc.changes(s, map[string]any{"mappings": append(mappings, mapping(column, column))})
}

func (sc *scenario) takesIdentifier(column string) error {
	s := sc.latest()
	for _, m := range s.body["mappings"].([]map[string]any) {
		m["is_primary_identifier"] = m["to"] == column
	}
	return sc.changes(s, nil)
}

// declaresIdentifier makes a destination that can match by another field.
func (sc *scenario) declaresIdentifier(name string) error {
	fields := thingFields()
	for i := range fields {
		if fields[i].APIName == name {
			fields[i].Identifier, fields[i].Required = true, true
		}
	}
	_, err := sc.connect(connecting{sim: SimulatorConfig{Fields: map[string][]rpc.Field{thingObject: fields}}})
	return err
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
	last, err := sc.newest(s)
	if err != nil {
		return err
	}
	until := sc.opts.time.now().Add(patientAtMost)
	for n := 0; ; n++ {
		now, err := sc.newest(s)
		if err != nil {
			return err
		}
		if now != last {
			_, err = sc.ends(s, now)
			return err
		}
		switch {
		case sc.patient() && sc.opts.time.now().After(until):
			return engine.Outcome(conformance.Inconclusive, "--control-url", "the sync has not run again within %s", inWords(patientAtMost))
		case sc.patient():
			err = sc.sleep(pollPatiently)
		case n == anotherSteps:
			sc.broken("the sync runs again by itself", "it has not, since run "+strconv.FormatInt(last, 10), s.runs[len(s.runs)-1])
			return sc.Held()
		default:
			err = sc.advance(anotherStep)
		}
		if err != nil {
			return err
		}
	}
}

// newest is the id of the latest run of a sync.
func (sc *scenario) newest(s *syncing) (int64, error) {
	a, err := sc.must(request{method: "GET", path: "/syncs/" + strconv.FormatInt(s.id, 10) + "/sync_runs?per_page=1&order=desc"})
	if err != nil {
		return 0, err
	}
	var runs []struct{ ID int64 }
	if err := a.decode(&runs, "data"); err != nil || len(runs) == 0 {
		return 0, engine.Outcome(conformance.Inconclusive, "", "the sync has no runs")
	}
	return runs[0].ID, nil
}

func (sc *scenario) runSendsRecord(run int, id, often string) error {
	records, err := sc.sentIn(run)
	if err != nil {
		return err
	}
	return sc.sentSoOften(fmt.Sprintf("run %d", run), records, id, often)
}

func (sc *scenario) sentSoOften(who string, records []sent, id, often string) error {
	records = slices.DeleteFunc(records, func(r sent) bool { return r.identifier != id })
	if often == "once" && len(records) != 1 || often == "more than once" && len(records) < 2 {
		sc.brokenCall(fmt.Sprintf("%s sends %q %s", who, id, often), quantity.Count(len(records), "time"), callsOf(records)...)
	}
	return sc.HeldBy("%s sends %q %s", who, id, quantity.Count(len(records), "time"))
}

// runHalves compares the sizes of the batches that a record came with; a size
// may come several times in a row.
func (sc *scenario) runHalves(run int, id, want string) error {
	batches, err := sc.batchesOf(sc.latest(), run)
	if err != nil {
		return err
	}
	var sizes []string
	var with []*endpoint.Call
	for _, c := range batches {
		if !slices.Contains(identifiersIn(c), id) {
			continue
		}
		with = append(with, c)
		if size := strconv.Itoa(len(c.Records())); len(sizes) == 0 || sizes[len(sizes)-1] != size {
			sizes = append(sizes, size)
		}
	}
	if got := strings.Join(sizes, ", "); got != want {
		sc.brokenCall(fmt.Sprintf("run %d sends %q in batches of %s records", run, id, want), "in batches of "+got, with...)
	}
	return sc.HeldBy("batches of %s records", want)
}

func (sc *scenario) runIsFull(run int, what string) error {
	a, err := sc.ran(run)
	if err != nil {
		return err
	}
	full := jsonvalue.Raw(a.at("data", "full_sync"))
	reason := a.text("data", "sync_trigger_reason", "ui_tag") + a.text("data", "sync_trigger_reason", "ui_detail")
	if want := what != "no full sync"; full != strconv.FormatBool(want) || want && reason == "" {
		sc.broken(fmt.Sprintf("run %d is %s", run, what), fmt.Sprintf("full_sync is %s, sync_trigger_reason is %s", full, jsonvalue.Raw(a.at("data", "sync_trigger_reason"))), a)
	}
	return sc.HeldBy("full_sync is %s", full)
}

// recordLine is one record in the history of a run.
type recordLine struct {
	Identifier    any     `json:"identifier"`
	Status        string  `json:"status"`
	StatusMessage *string `json:"status_message"`
}

// history reads the records of a run.
func (sc *scenario) history(run int, query string) ([]recordLine, *answer, error) {
	ended, err := sc.ran(run)
	if err != nil {
		return nil, nil, err
	}
	a, err := sc.must(request{method: "GET", path: "/sync_runs/" + strconv.FormatInt(ended.id("data", "id"), 10) + "/records?per_page=100" + query})
	if err != nil {
		return nil, nil, err
	}
	var lines []recordLine
	return lines, a, a.decode(&lines, "data")
}

func (sc *scenario) historyShows(run int, id, status, message string) error {
	lines, a, err := sc.history(run, "")
	if err != nil {
		return err
	}
	i := slices.IndexFunc(lines, func(l recordLine) bool { return l.Identifier == id })
	switch {
	case i < 0:
		sc.broken(fmt.Sprintf("the history shows the record %q", id), "it does not", a)
	case lines[i].Status != status:
		sc.broken(fmt.Sprintf("%q is %s", id, status), lines[i].Status, a)
	case message != "" && (lines[i].StatusMessage == nil || !strings.Contains(*lines[i].StatusMessage, refusal)):
		sc.broken(fmt.Sprintf("the message of %q says %q", id, refusal), a.short(), a)
	}
	return sc.HeldBy("%s in the history", quantity.Count(len(lines), "record"))
}

// historyOf compares the records of one status, by their identifiers.
func (sc *scenario) historyOf(run int, status string, want *engine.Table) error {
	lines, a, err := sc.history(run, "&status="+status)
	if err != nil {
		return err
	}
	var got, wanted []string
	for _, l := range lines {
		got = append(got, fmt.Sprint(l.Identifier))
	}
	for _, line := range engine.Rows(want) {
		wanted = append(wanted, line[0])
	}
	if slices.Sort(got); !slices.Equal(got, wanted) {
		sc.broken(fmt.Sprintf("%v as %s", wanted, status), fmt.Sprintf("%v", got), a)
	}
	return sc.heldBy(len(got), "record")
}

// notesTimes asks the service's clock at every batch: where time is moved, only
// the service knows how long it has waited.
func (sc *scenario) notesTimes() error {
	return sc.addFault(func(m *faults) {
		m.times = map[int]time.Time{}
		m.clock = func() time.Time {
			now, err := sc.clockOf()
			if err != nil {
				return time.Time{}
			}
			return now
		}
	})
}

// growth is how much longer each wait has to be than the one before: backoffs
// double, and may be shortened by chance.
const growth = 1.2

func (sc *scenario) waitsGrow(run int) error {
	batches, err := sc.batchesOf(sc.latest(), run)
	if err != nil {
		return err
	}
	m := sc.faultsOf(sc.dest)
	m.mu.Lock()
	times := maps.Clone(m.times)
	m.mu.Unlock()
	var waits []time.Duration
	for i := 1; i < len(batches); i++ {
		waits = append(waits, times[batches[i].Number].Sub(times[batches[i-1].Number]))
	}
	if len(waits) < 2 {
		return engine.Outcome(conformance.Inconclusive, "", "no waits that could grow: %s seen", quantity.Count(len(batches), "batch"))
	}
	for i := 1; i < len(waits); i++ {
		if float64(waits[i]) < growth*float64(waits[i-1]) {
			sc.brokenCall("each wait is longer than the one before", fmt.Sprintf("waits of %v", waits), batches...)
			break
		}
	}
	return sc.HeldBy("waits of %v", waits)
}
