package service

import (
	"fmt"
	"strconv"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// limitSteps are about X-RateLimit-Limit, the limit that all calls of a
// connection share (spec 8).
func limitSteps() []engine.Step {
	return []engine.Step{
		step(`^a destination for single records, (\d+) at once$`, func(sc *scenario) any {
			return func(parallel int) error { return sc.aDestinationOfSpeed(1, parallel, manyRecords) }
		}),
		step(`^(?:a|another) destination whose URL ends in "([^"]*)"$`, func(sc *scenario) any { return sc.aDestinationAt }),
		step(`^a destination with a sync of (\d+) records for each of these in X-RateLimit-Limit:$`, func(sc *scenario) any { return sc.manyLimits }),
		step(`^a destination of (\d+) objects with X-RateLimit-Limit "([^"]*)" in every answer$`, func(sc *scenario) any { return sc.manyObjects }),
		step(`^(every answer|every answer from batch (\d+) on|the answer to get_sync_speed) then has X-RateLimit-Limit "([^"]*)"(?: and "([^"]*)")?$`,
			func(sc *scenario) any { return sc.limits }),

		step(`^no second after X-RateLimit-Limit "([^"]*)" brings more than (\d+) calls$`, func(sc *scenario) any { return sc.limitHolds }),
		step(`^some second of (every sync|the latest sync) brings more than (\d+) calls$`, func(sc *scenario) any { return sc.notThrottled }),
		step(`^some second after X-RateLimit-Limit "([^"]*)" brings more than (\d+) calls$`, func(sc *scenario) any { return sc.limitIsLifted }),
		step(`^every run completes$`, func(sc *scenario) any { return sc.runsComplete }),
	}
}

// manyRecords per second are no limit at all.
const manyRecords = 100_000

// limitedTo names a limit in the header of an answer, a line for each value.
func limitedTo(values ...string) twist {
	return func(_ *endpoint.Call, r *endpoint.Reply) {
		delete(r.Header, endpoint.RateLimitHeader)
		for _, v := range values {
			r.AddHeader(endpoint.RateLimitHeader, v)
		}
	}
}

// scripted makes a twist what a destination does from the first call on.
func scripted(m twist) func(*endpoint.Call) *endpoint.Reply {
	return func(c *endpoint.Call) *endpoint.Reply {
		r := endpoint.AsIs()
		m(c, r)
		return r
	}
}

// singleRecords is the speed of a destination that counts requests.
var singleRecords = rpc.Speed{MaximumBatchSize: 1, MaximumParallelBatches: 4, MaximumRecordsPerSecond: manyRecords}

func (sc *scenario) aDestinationAt(suffix string) error {
	_, err := sc.connect(connecting{sim: SimulatorConfig{Speed: singleRecords}, suffix: suffix})
	return err
}

// manyLimits makes a destination and a sync for each value of the header.
func (sc *scenario) manyLimits(n int, t *engine.Table) error {
	for _, line := range engine.Rows(t) {
		c := connecting{sim: SimulatorConfig{Speed: singleRecords}, script: scripted(limitedTo(line[0]))}
		if _, err := sc.connect(c); err != nil {
			return err
		}
		if err := sc.aSync(n, rpc.OperationUpsert); err != nil {
			return err
		}
	}
	return nil
}

// manyObjects makes planning take many calls.
func (sc *scenario) manyObjects(n int, limit string) error {
	config := SimulatorConfig{Objects: []rpc.Object{{APIName: thingObject, Label: "Thing"}}}
	for i := 1; i < n; i++ {
		name := fmt.Sprintf("%s%d", thingObject, i)
		config.Objects = append(config.Objects, rpc.Object{APIName: name, Label: name})
	}
	_, err := sc.connect(connecting{sim: config, script: scripted(limitedTo(limit))})
	return err
}

// limits names one limit, or two in two lines, in the answers that are meant.
func (sc *scenario) limits(answers, first, one, two string) error {
	named := limitedTo(one)
	if two != "" {
		named = limitedTo(one, two)
	}
	switch n, err := strconv.ParseInt(first, 10, 64); {
	case err == nil:
		sc.dest.behaves(counted(rpc.MethodSyncBatch, n, 0, named))
	case answers == "every answer":
		sc.dest.behaves(named)
	default:
		sc.dest.behaves(methodIs(rpc.MethodGetSyncSpeed, named))
	}
	return nil
}

// limitHolds judges what came after an answer that names a limit. Calls that
// were let go before it arrived are not counted: each place for a batch that was
// not waiting for that answer may have had one.
func (sc *scenario) limitHolds(limit string, most int) error {
	calls := endpoint.Since(sc.dest.Seen(""), limit)
	calls = calls[min(len(calls), sc.places()-1):]
	if len(calls) <= most {
		return few(len(calls), "calls after the limit was named")
	}
	n, within := endpoint.Densest(calls, endpoint.CountCall, judgedSecond)
	if n > most {
		sc.brokenCall(fmt.Sprintf("at most %s within a second", quantity.Count(most, "call")), fmt.Sprintf("%s within %s", quantity.Count(n, "call"), lasting(within)), within...)
	}
	return sc.HeldBy("%s, at most %d within %s", quantity.Count(len(calls), "call"), n, judgedSecond)
}

// places are how many batches of all syncs the destination takes at once; 1 of
// one that was not asked.
func (sc *scenario) places() int {
	places := 0
	for _, c := range sc.dest.Seen(rpc.MethodGetSyncSpeed) {
		answer, err := wire.Parse(c.Answer)
		if n, ok := answer.Get("result", "maximum_parallel_batches").Int(); err == nil && ok {
			places += int(n)
		}
	}
	return max(places, 1)
}

// notThrottled wants to see more batches within a second than a low limit lets
// by. Calls that made the sync came when the suite got round to it.
func (sc *scenario) notThrottled(which string, beyond int) error {
	syncs := sc.syncs
	if which != "every sync" {
		syncs = syncs[len(syncs)-1:]
	}
	for _, s := range syncs {
		if err := sc.fast(s.dest.Seen(rpc.MethodSyncBatch), beyond); err != nil {
			return err
		}
	}
	return nil
}

func (sc *scenario) limitIsLifted(limit string, beyond int) error {
	return sc.fast(endpoint.Since(sc.dest.Seen(""), limit), beyond)
}

func (sc *scenario) fast(calls []*endpoint.Call, beyond int) error {
	if len(calls) <= beyond {
		return few(len(calls), "calls")
	}
	n, within := endpoint.Densest(calls, endpoint.CountCall, judgedSecond)
	if n <= beyond {
		sc.brokenCall(fmt.Sprintf("more than %s within a second", quantity.Count(beyond, "call")), fmt.Sprintf("%d at most", n), within...)
	}
	return sc.HeldBy("%d of %s within %s", n, quantity.Count(len(calls), "call"), judgedSecond)
}

func (sc *scenario) runsComplete() error {
	runs := 0
	for _, s := range sc.syncs {
		for _, run := range s.runs {
			if runs++; run.text("data", "status") != "completed" {
				sc.broken("the run completes", run.short(), run)
			}
		}
	}
	if runs == 0 {
		return engine.Outcome(conformance.Inconclusive, "", "no run came to its end")
	}
	return sc.heldBy(runs, "run")
}
