package judge

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
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

// valuesOfOneBatch: parallel batches with the same keys may come in any order,
// but a record must be one of them whole.
func (sc *Scenario) valuesOfOneBatch() error {
	parts := sc.Parallel.Copies
	if err := sc.NeedReadback(); err != nil {
		return err
	}
	if !sc.acceptedTwice() {
		return sc.noneAccepted() // one batch alone shows nothing of several
	}
	seen, err := sc.Observe(parts[0])
	if err != nil {
		return err
	}
	for i, r := range parts[0] {
		got := seen[exchange.KeyText(r.Key)]
		whole := slices.ContainsFunc(parts, func(p []*write.Record) bool {
			e := write.AsSent(p[i])
			return !slices.ContainsFunc(slices.Collect(maps.Keys(e.Values)), func(name string) bool { return sc.fieldDiffers(e, name, got) })
		})
		if got.Count > 0 && whole {
			sc.Saw(conformance.SeenStored, 1)
		}
		if got.Count > 0 && !whole {
			sc.BrokenAs(sc.strangeValue(parts, i, got), rpc.OperationUpsert, "all values of "+string(r.Key)+" from one of the parallel batches", "a mixture: "+shown(got), sc.ReplyFor(r))
		}
	}
	return sc.Held()
}

// acceptedTwice reports whether some record was accepted from two of the batches.
func (sc *Scenario) acceptedTwice() bool {
	times := map[model.Place]int{}
	for _, b := range sc.Latest {
		for _, r := range b.Records {
			if b.Succeeded(r) {
				times[r.Place()]++
			}
		}
	}
	for _, n := range times {
		if n > 1 {
			return true
		}
	}
	return false
}

// strangeValue names a field whose value is none of those that were sent: it is
// stored wrongly, not mixed up. "" for a mixture.
func (sc *Scenario) strangeValue(parts [][]*write.Record, i int, got write.Observed) string {
	for name := range parts[0][i].Values {
		sent := slices.ContainsFunc(parts, func(p []*write.Record) bool {
			return !sc.fieldDiffers(write.AsSent(p[i]), name, got)
		})
		if !sent {
			return "value of " + name
		}
	}
	return ""
}

func (sc *Scenario) notesStored() error {
	seen, err := sc.Observe(write.RecordsOf(sc.expectations(exists)))
	if err != nil {
		return err
	}
	first := sc.History[0].Records[0]
	same := true
	for name := range first.Values {
		same = same && !sc.fieldDiffers(write.AsSent(first), name, seen[exchange.KeyText(first.Key)])
	}
	if same {
		sc.Note("an older batch that is sent again after a newer one wins: the last arrival counts")
	} else {
		sc.Note("an older batch that is sent again after a newer one leaves the newer values")
	}
	return nil
}
