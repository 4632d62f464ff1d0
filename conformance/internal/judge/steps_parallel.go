package judge

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// parallelSteps send calls and batches at once.
func parallelSteps() []definition {
	return []definition{
		step(`^every witness sees its record$`, func(sc *Scenario) any { return sc.WitnessesSee }),
		step(`^the latency in parallel stays within three times that of a single call$`, func(sc *Scenario) any { return sc.latencyHolds }),
	}
}

func (sc *Scenario) callsInParallel(method, count string) error {
	if sc.Queued != nil {
		return sc.ServesOneConnection()
	}
	times, _ := strconv.Atoi(count)
	objects := sc.methodCalls(method)
	if len(objects) == 0 {
		return noObjectListed()
	}
	var calls []line.Request
	for i := range times {
		calls = append(calls, objects[i%len(objects)])
	}
	return sc.sendAtOnce(calls)
}

// callsAsDeclared sends as many calls at once as batches are declared, three
// times over, and keeps the fastest round: what is left is the endpoint's.
func (sc *Scenario) callsAsDeclared(method string) error {
	if sc.Catalog.Speed == nil {
		return engine.Inconclusive("", "no speed is declared")
	}
	if err := sc.NeedsSecondConnection(); err != nil {
		return err
	}
	n := line.ParallelCap(*sc.Catalog.Speed)
	sc.Measured.Single = median(sc.Replies)
	best := time.Duration(0)
	for range 3 {
		calls := make([]line.Request, n)
		for i := range calls {
			calls[i] = line.Request{Method: method}
		}
		from := len(sc.Replies)
		if err := sc.sendAtOnce(calls); err != nil {
			return err
		}
		if m := median(sc.Replies[from:]); best == 0 || m < best {
			best = m
		}
	}
	sc.Measured.AtOnce, sc.Measured.Width = best, n
	return nil
}

func median(replies []*exchange.Reply) time.Duration {
	all := lists.Of(replies, func(r *exchange.Reply) time.Duration { return r.Total - r.Dial })
	slices.Sort(all)
	if len(all) == 0 {
		return 0
	}
	return all[len(all)/2]
}

// latencyNoise is a latency below which the machine, not the endpoint, is seen.
const latencyNoise = 100 * time.Millisecond

func (sc *Scenario) latencyHolds() error {
	single, parallel, width := sc.Measured.Single, sc.Measured.AtOnce, sc.Measured.Width
	sc.Note("median latency of one call %s, of %s at once %s", exchange.Round(single), quantity.Count(width, "call"), exchange.Round(parallel))
	if parallel > 3*single && parallel > latencyNoise {
		sc.Broken(fmt.Sprintf("at most three times the %s of a single call", exchange.Round(single)),
			fmt.Sprintf("%s with %s at once", exchange.Round(parallel), quantity.Count(width, "call")), sc.Replies[len(sc.Replies)-1])
	}
	return sc.Held()
}
