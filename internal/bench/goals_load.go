package main

import (
	"fmt"
	"slices"
	"strconv"
)

// against is destkit load and some peers against one simulator.
type against struct {
	w     *workshop
	sim   *simulator
	what  work
	body  string
	rates map[string][]float64
	loads []*loaded
	cpus  map[string][]float64 // of the peers, seconds per 1 M records
}

// against starts the simulator and measures, in turns.
func (w *workshop) against(what work, secure bool, names ...string) (*against, error) {
	a := &against{w: w, what: what, cpus: map[string][]float64{}}
	// One process of the simulator for all of them, emptied before each run.
	var err error
	if a.sim, err = w.startSimulator(secure); err != nil {
		return a, err
	}
	defer a.sim.stop()
	if a.body, err = w.record(a.sim, what); err != nil {
		return a, err
	}
	contenders := []contender{{"destkit load", a.load}, {again, a.loadAgain}}
	for _, name := range names {
		if w.tools[name] != "" {
			contenders = append(contenders, contender{name, func() (float64, error) { return a.fire(name) }})
		}
	}
	a.rates, err = w.alternate(contenders)
	return a, err
}

// again is a run with the keys of the run before it: its records are updates, as
// those of the peers are.
const again = "destkit load again"

func (a *against) closed() []string {
	return []string{"--closed", "--connections", strconv.Itoa(a.what.connections), "--duration", strconv.Itoa(a.w.options.seconds) + "s"}
}

func (a *against) load() (float64, error) {
	if err := a.sim.reset(); err != nil {
		return 0, err
	}
	l, err := a.w.checkedLoad(a.sim, a.what, a.closed()...)
	if err != nil {
		return 0, err
	}
	a.loads = append(a.loads, l)
	return l.RequestsPerSecond, nil
}

// loadAgain writes no more than the run before has: --max-records ends it early
// where it is the faster one.
func (a *against) loadAgain() (float64, error) {
	before := a.loads[len(a.loads)-1].Records
	l, err := a.w.checkedLoad(a.sim, a.what, append(a.closed(), "--max-records", strconv.FormatInt(before, 10))...)
	if err != nil {
		return 0, err
	}
	return l.RequestsPerSecond, nil
}

func (a *against) fire(name string) (float64, error) {
	if err := a.sim.reset(); err != nil {
		return 0, err
	}
	t, err := a.w.fire(name, shot{url: a.sim.url + "/", body: a.body, seconds: a.w.options.seconds, connections: a.what.connections})
	if err == nil {
		a.cpus[name] = append(a.cpus[name], t.cpu/(t.rate*float64(a.w.options.seconds*a.what.size))*1e6)
	}
	return t.rate, err
}

// rate is the row of what the load generator itself reached.
func (a *against) rate(part string) row {
	refused, records := int64(0), int64(0)
	for _, l := range a.loads {
		refused, records = refused+l.ErrorsByKind["record_refused"], records+l.Records
	}
	return spreadOf(a.rates["destkit load"]).called(part, "requests per second", "requests/s").figure().
		with("every result checked; %s records written, %s refused as intended", grouped(records), grouped(refused))
}

// than is the row of the ratio to a peer.
func (a *against) than(part, name string, want float64) row {
	goal := fmt.Sprintf("≥ %s × %s", digits(want), name)
	if a.w.tools[name] == "" {
		return row{part: part, goal: goal, absent: "peer missing: " + name}
	}
	return ratioOf(a.rates["destkit load"], a.rates[name]).called(part, goal, "×").atLeast(want).
		with("%s: %s requests/s", name, digits(median(a.rates[name])))
}

// there is the row of what it is with existing keys. What a peer writes is
// there after its first request, so that the simulator updates the same records from
// then on, and finds them in its cache; this says how much of the difference is that.
func (a *against) there(part string) []row {
	if a.w.tools["wrk"] == "" {
		return nil
	}
	return []row{ratioOf(a.rates[again], a.rates["wrk"]).called(part, "× wrk, existing keys", "×").figure().
		with("destkit load: %s requests/s", digits(median(a.rates[again])))}
}

// client is the row of what the generator itself takes of the processor for a
// request, in µs.
func (a *against) client(part string) row {
	var client, simulator []float64
	for _, l := range a.loads {
		client = append(client, l.Generator.CPUSeconds/float64(l.Requests)*1e6)
		simulator = append(simulator, l.bySim/float64(l.Requests)*1e6)
	}
	r := spreadOf(client).called(part, "client, processor time per request", "µs").figure()
	text := fmt.Sprintf("the simulator took %s", digits(median(simulator)))
	if cpus := a.cpus["wrk"]; len(cpus) > 0 {
		text += fmt.Sprintf(", wrk %s", digits(median(cpus)*float64(a.what.size)))
	}
	return r.with("%s", text)
}

func measureLoadOne(w *workshop) ([]row, error) {
	const part = "load, closed loop, one record, plain"
	a, err := w.against(s1, false, "wrk", "fortio", "hey", "k6", "h2load")
	if err != nil {
		return nil, err
	}
	rows := []row{a.rate(part), a.client(part), a.than(part, "wrk", 0.95), a.than(part, "fortio", 1), a.than(part, "hey", 3), a.than(part, "k6", 7)}
	return slices.Concat(rows, a.there(part), a.compared(part, "h2load")), nil
}

func measureLoadOneTLS(w *workshop) ([]row, error) {
	const part = "load, closed loop, one record, TLS"
	a, err := w.against(s1, true, "wrk")
	if err != nil {
		return nil, err
	}
	return append([]row{a.rate(part), a.client(part), a.than(part, "wrk", 1.15)}, a.there(part)...), nil
}

func measureLoadBatches(w *workshop) ([]row, error) {
	const part = "load, batches of 1,000"
	a, err := w.against(b1000, false, "wrk")
	if err != nil {
		return nil, err
	}
	var client, kernel, simulator, records []float64
	for _, l := range a.loads {
		client = append(client, l.Generator.CPUSeconds/float64(l.Records)*1e6)
		kernel = append(kernel, l.kernel/float64(l.Records)*1e6)
		simulator = append(simulator, l.bySim/float64(l.Records)*1e6)
		records = append(records, l.RecordsPerSecond)
	}
	rows := []row{a.rate(part), spreadOf(records).called(part, "records per second", "records/s").figure()}
	// No goal against wrk, whose batches hold the same keys again and again: the
	// simulator finds them, where it stores those of destkit load.
	rows = append(rows, a.there(part)...)
	return append(rows, spreadOf(client).called(part, "client ≤ 0.06 CPU s per M records", "CPU s").most(0.06).
		with("%s", client1000(median(kernel), median(simulator), median(a.cpus["wrk"])))), nil
}

// client1000 says what else took processor time.
func client1000(kernel, simulator, wrk float64) string {
	text := fmt.Sprintf("start and end included; %s in the kernel, which copies the bytes; the simulator took %s", digits(kernel), digits(simulator))
	if wrk > 0 {
		text += fmt.Sprintf(", wrk %s", digits(wrk))
	}
	return text
}

// compared is a peer that there is no goal for.
func (a *against) compared(part, name string) []row {
	if a.w.tools[name] == "" {
		return nil
	}
	r := a.than(part, name, 1).figure()
	r.goal = "for comparison: " + name
	return []row{r}
}
