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
		step(`^every answer(?: from batch (\d+) on)? then has X-RateLimit-Limit "([^"]*)"$`, func(sc *scenario) any { return sc.limits }),

		step(`^no second after X-RateLimit-Limit "([^"]*)" brings more than (\d+) calls$`, func(sc *scenario) any { return sc.limitHolds }),
		step(`^some second of the sync brings more than (\d+) calls$`, func(sc *scenario) any { return sc.notThrottled }),
		step(`^every run completes$`, func(sc *scenario) any { return sc.runsComplete }),
	}
}

// limitedTo names a limit in the header of an answer.
func limitedTo(value string) twist {
	return func(_ *endpoint.Call, r *endpoint.Reply) {
		delete(r.Header, endpoint.RateLimitHeader)
		r.AddHeader(endpoint.RateLimitHeader, value)
	}
}

// limits names a limit in every answer, or in those to batches from one on.
func (sc *scenario) limits(first, limit string) {
	named := limitedTo(limit)
	if n, err := strconv.ParseInt(first, 10, 64); err == nil {
		named = counted(rpc.MethodSyncBatch, n, 0, named)
	}
	sc.dest.behaves(named)
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
func (sc *scenario) notThrottled(beyond int) error {
	calls := sc.latest().dest.Batches()
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
