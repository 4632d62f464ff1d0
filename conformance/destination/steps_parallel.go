package destination

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// parallelSteps send calls and batches at once.
func parallelSteps() []definition {
	return []definition{
		step(`^every witness sees its record$`, func(sc *scenario) any { return sc.witnessesSee }),
		step(`^the latency in parallel stays within three times that of a single call$`, func(sc *scenario) any { return sc.latencyHolds }),
	}
}

func (sc *scenario) callsInParallel(method, count string) error {
	if sc.queued != nil {
		return sc.servesOneConnection()
	}
	times, _ := strconv.Atoi(count)
	objects := sc.methodCalls(method)
	if len(objects) == 0 {
		return noObjectListed()
	}
	var calls []request
	for i := range times {
		calls = append(calls, objects[i%len(objects)])
	}
	return sc.sendAtOnce(calls)
}

// callsAsDeclared sends as many calls at once as batches are declared, three
// times over, and keeps the fastest round: what is left is the endpoint's.
func (sc *scenario) callsAsDeclared(method string) error {
	if sc.catalog.speed == nil {
		return inconclusive("", "no speed is declared")
	}
	if err := sc.needsSecondConnection(); err != nil {
		return err
	}
	n := parallelCap(*sc.catalog.speed)
	sc.measured.single = median(sc.replies)
	best := time.Duration(0)
	for range 3 {
		calls := make([]request, n)
		for i := range calls {
			calls[i] = request{method: method}
		}
		from := len(sc.replies)
		if err := sc.sendAtOnce(calls); err != nil {
			return err
		}
		if m := median(sc.replies[from:]); best == 0 || m < best {
			best = m
		}
	}
	sc.measured.atOnce, sc.measured.width = best, n
	return nil
}

func median(replies []*reply) time.Duration {
	all := lists.Of(replies, func(r *reply) time.Duration { return r.Total - r.Dial })
	slices.Sort(all)
	if len(all) == 0 {
		return 0
	}
	return all[len(all)/2]
}

// latencyNoise is a latency below which the machine, not the endpoint, is seen.
const latencyNoise = 100 * time.Millisecond

func (sc *scenario) latencyHolds() error {
	single, parallel, width := sc.measured.single, sc.measured.atOnce, sc.measured.width
	sc.Note("median latency of one call %s, of %s at once %s", exchange.Round(single), quantity.Count(width, "call"), exchange.Round(parallel))
	if parallel > 3*single && parallel > latencyNoise {
		sc.broken(fmt.Sprintf("at most three times the %s of a single call", exchange.Round(single)),
			fmt.Sprintf("%s with %s at once", exchange.Round(parallel), quantity.Count(width, "call")), sc.replies[len(sc.replies)-1])
	}
	return sc.Held()
}
