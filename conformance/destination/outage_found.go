package destination

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// deadly are bodies and texts that processes have died of: what no handler expects.
var (
	deadlyBodies = []string{
		"this is no JSON", "", "null", "[]", "[null]", `"text"`, "7",
		`{"jsonrpc":"2.0","id":"7","method":"sync_batch"}`,
		`{"jsonrpc":"2.0","id":"7","method":"sync_batch","params":null}`,
		`{"jsonrpc":"2.0","id":"7","method":"sync_batch","params":{"sync_plan":null,"records":null}}`,
	}
	deadlyTexts = []string{`"a\u0000b"`, `"a\ud800b"`, `"%s%n{0}${x}"`}
)

// sendsWhatIsDeadly sends what processes die of, each alone, until one of them takes
// the endpoint away. What is answered is the subject of other checks.
func (sc *scenario) sendsWhatIsDeadly() error {
	for _, body := range deadlyBodies {
		if _, err := sc.send(request{method: "garbage", body: []byte(body), odd: true}); err != nil {
			return sc.unlessAway(err)
		}
	}
	return sc.unlessAway(sc.whereItMayWrite(func(o *object) error {
		id, err := o.identifier()
		if err != nil {
			return err
		}
		for _, text := range deadlyTexts {
			fields := o.takes(id, rpc.TypeString, false)
			if len(fields) == 0 {
				return nil
			}
			r, err := sc.newRecord(o, id)
			if err != nil {
				return err
			}
			for _, f := range fields {
				r = r.with(f.APIName, json.RawMessage(text))
			}
			if _, err := sc.write(o.creating(), []*record{r}, plan{}); err != nil {
				return err
			}
		}
		return nil
	}))
}

// unlessAway leaves out the end by an outage, which is what the next step judges.
func (sc *scenario) unlessAway(err error) error {
	if errors.Is(err, wire.ErrAway) {
		return nil
	}
	return err
}

// stayedUp judges the outages of the run.
func (sc *scenario) stayedUp() error {
	if err := sc.repeatSuspects(); err != nil {
		return err
	}
	outages := sc.watch.all()
	// What happened while one call was under way alone names its cause.
	for _, o := range outages {
		expected, stopped, symptom := "an endpoint that accepts connections all the time", "stopped accepting connections", ""
		if o.silent {
			expected, stopped, symptom = "an endpoint that responds all the time", "stopped responding", symptomSilent
		}
		actual, where := stopped+" after "+o.call, []*reply{o.reply}
		if !o.alone {
			if hasAlone(outages) {
				continue
			}
			// Which of them did it is not known, so that none is shown as the one.
			actual, where = stopped+" while several calls were under way: "+o.names(), nil
		}
		if o.ended {
			actual += fmt.Sprintf("; it was back after %s", exchange.Round(o.back))
		} else {
			actual += fmt.Sprintf("; it was not back after %s", exchange.Round(o.back))
		}
		if !o.alone && !o.ended {
			actual += " (--serial finds the one)"
		}
		from := len(sc.All())
		sc.brokenAs(symptom, "", expected, actual, where...)
		if o.chance {
			sc.because(from, cause{
				text: "the process ends without a call that ends it: what was under way was sent again, alone, and answered. It is restarted or replaced (a limit of requests or of memory, a deployment, a health check), or ends when several calls meet.",
				fix:  "let a process that is to be replaced answer the calls that it has, and take no new ones; keep nothing in its memory that the next one needs.",
			})
		}
	}
	sc.blameLargeBatches(outages)
	sc.Explain(func(symptom string) bool { return symptom == symptomSilent },
		"what the call took, the only worker, a lock or a connection of a pool, is never given back: give it back on every path, and put a time limit on all that a call waits for.", true)
	return sc.Held()
}

// blameLargeBatches names the candidates where a batch of many records was under way alone.
func (sc *scenario) blameLargeBatches(outages []*outage) {
	const many = 10
	for _, o := range outages {
		if !o.alone || len(o.suspects) != 1 || o.suspects[0].request.records < many {
			continue
		}
		var sent rpc.BatchParams
		if json.Unmarshal(o.suspects[0].request.params, &sent) != nil {
			continue
		}
		sc.Explain(func(symptom string) bool { return symptom != symptomSilent }, wire.EitherCause(
			"a batch of "+quantity.Count(len(sent.Records), "record")+" with operation "+sent.SyncPlan.Operation+" ends the process, as one that takes too much memory does",
			"one of its records does", "the request below again, with fewer records,"), false)
	}
}

const symptomSilent = "no response any more"

func (w *watch) all() []*outage {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.outages)
}

func hasAlone(outages []*outage) bool {
	return slices.ContainsFunc(outages, func(o *outage) bool { return o.alone })
}

// names are the calls that were under way when the endpoint went away.
func (o *outage) names() string {
	names := []string{o.call}
	for _, call := range o.suspects {
		if !o.silent && !slices.Contains(names, call.name) {
			names = append(names, call.name)
		}
	}
	return quantity.List(names)
}

// mostSuspects bounds how many calls are sent again to find the one that ends the process.
const mostSuspects = 16

// repeatSuspects sends the calls that were under way in an outage again, one by one, until
// the endpoint goes away once more: that is an outage with one call. Where several calls
// together are needed, none of them does it.
func (sc *scenario) repeatSuspects() error {
	outages := sc.watch.all()
	if sc.Confirming() {
		return nil
	}
	known := hasAlone(outages)
	for _, o := range outages {
		if !o.ended || o.silent || known != o.alone || len(o.suspects) == 0 {
			continue
		}
		for _, call := range o.suspects[:min(len(o.suspects), mostSuspects)] {
			again := call.request
			again.id, again.conn = "", nil
			if err := sc.session.reserve(again.records); err != nil {
				return nil // the budget is used up
			}
			_, err := sc.session.send(sc.ctx, sc.Check().ID, again)
			if all := sc.watch.all(); len(all) > len(outages) {
				last := all[len(all)-1]
				if known {
					sc.watch.forget(last)
					return nil
				}
				last.alone, last.call = true, call.name+", which was sent again alone"
				return nil
			}
			if err != nil {
				return sc.unlessAway(err)
			}
		}
		if o.chance = true; known {
			return nil // one is enough
		}
	}
	return nil
}

// forget takes back an outage that was called for.
func (w *watch) forget(o *outage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outages = slices.DeleteFunc(w.outages, func(other *outage) bool { return other == o })
}
