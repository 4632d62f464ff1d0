package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// These steps judge what calls and batches at the same time come to.
var parallelSentences = sentences{
	`^every witness sees its record$`:                                          (*Scenario).WitnessesSee,
	`^every record has the values of one batch$`:                               (*Scenario).valuesOfOneBatch,
	`^every field that one of the batches wrote is stored$`:                    (*Scenario).fieldsStored,
	`^it is noted which values are stored$`:                                    (*Scenario).notesStored,
	`^the latency in parallel stays within three times that of a single call$`: (*Scenario).latencyHolds,
}

// sendAtOnce sends calls in parallel and keeps their replies in order.
func (sc *Scenario) sendAtOnce(calls []line.Request) error {
	if err := sc.Reserve(calls); err != nil {
		return err
	}
	replies, errs := make([]*exchange.Reply, len(calls)), make([]error, len(calls))
	var wg sync.WaitGroup
	for i, c := range calls {
		wg.Go(func() { replies[i], errs[i] = sc.Session.Send(sc.Ctx, sc.Check().ID, c) })
	}
	wg.Wait()
	for i, r := range replies {
		if errs[i] != nil {
			return errs[i]
		}
		sc.Replies = append(sc.Replies, r)
	}
	return nil
}

func (sc *Scenario) callsInParallel(method, count string) error {
	if sc.Queued != nil {
		return sc.ServesOneConnection()
	}
	objects := sc.methodCalls(method)
	if len(objects) == 0 {
		return noObjectListed
	}
	times, _ := strconv.Atoi(count) // digits
	return sc.sendAtOnce(slices.Repeat(objects, times/len(objects)+1)[:times])
}

// callsAsDeclared sends calls as batches are declared, and keeps the fastest of three rounds: the rest is noise.
func (sc *Scenario) callsAsDeclared(method string) error {
	if sc.Catalog.Speed == nil {
		return engine.Inconclusive("", "no speed is declared")
	}
	if err := sc.NeedsSecondConnection(); err != nil {
		return err
	}
	n := line.ParallelCap(*sc.Catalog.Speed)
	sc.Measured.Single = median(sc.Replies)
	var rounds []time.Duration
	for range 3 {
		from := len(sc.Replies)
		if err := sc.sendAtOnce(slices.Repeat([]line.Request{{Method: method}}, n)); err != nil {
			return err
		}
		rounds = append(rounds, median(sc.Replies[from:]))
	}
	sc.Measured.AtOnce, sc.Measured.Width = slices.Min(rounds), n
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

func (sc *Scenario) latencyHolds() error {
	single, parallel, width := sc.Measured.Single, sc.Measured.AtOnce, sc.Measured.Width
	sc.Note("median latency of one call %s, of %s at once %s", exchange.Round(single), quantity.Count(width, "call"), exchange.Round(parallel))
	if parallel > 3*single && parallel > 100*time.Millisecond { // below it the machine is seen
		sc.BrokenFor("", fmt.Sprintf("at most three times the %s of a single call", exchange.Round(single)),
			fmt.Sprintf("%s with %s at once", exchange.Round(parallel), quantity.Count(width, "call")), sc.Replies[len(sc.Replies)-1])
	}
	return sc.Held()
}

// callsAtRate sends calls at a share of the declared rate, for a second or the length of the load checks.
func (sc *Scenario) callsAtRate(method, share string) error {
	percent, _ := strconv.Atoi(share)
	limit := sc.Catalog.RateLimit
	if limit < 1 {
		limit = line.DefaultRateLimit
	}
	rate := float64(limit) * float64(percent) / 100
	length := min(sc.Opts.LoadDuration, time.Second)
	n := int(rate * length.Seconds())
	if n > 20_000 {
		return engine.Inconclusive("a load test", "the declared %d requests/s are more than the judge sends: measure them with a load test", limit)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, 64)
	start := time.Now()
	for i := range n {
		// The intended time of the i-th call; lost time is not made good.
		due := start.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		if d := time.Until(due); d > 0 {
			if err := line.Elapse(sc.Ctx, d); err != nil {
				return err
			}
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			r, err := sc.Session.Send(sc.Ctx, sc.Check().ID, line.Request{Method: method, Unrepeated: true})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				sc.Replies = append(sc.Replies, r)
			}
		})
	}
	wg.Wait()
	sc.Measured.Reached = new(float64(n) / time.Since(start).Seconds() / rate)
	return nil
}

// valuesOfOneBatch: parallel batches may come in any order, but a record must be one of them whole.
func (sc *Scenario) valuesOfOneBatch() error {
	parts := sc.Parallel.Copies
	accepted, several := map[model.Place]bool{}, false
	for b, r := range write.Each(sc.Latest) {
		if b.Succeeded(r) {
			several = several || accepted[r.Place()]
			accepted[r.Place()] = true
		}
	}
	if i := slices.IndexFunc(sc.Latest, func(b *write.Batch) bool { return b.Reply.IsError() }); i >= 0 {
		sc.Note("of batches that name the same records at the same time some have errors, and must be repeated: %s", sc.Latest[i].Reply.Short())
	}
	if !several {
		return sc.noneAccepted() // one batch alone shows nothing of several
	}
	seen, err := sc.Observe(parts[0])
	if err != nil {
		return err
	}
	for i, r := range parts[0] {
		got := seen[exchange.KeyText(r.Key)]
		switch whole := slices.ContainsFunc(parts, func(p []*write.Record) bool { return sc.isStored(p[i], got) }); {
		case got.Count == 0:
		case whole:
			sc.Saw(conformance.SeenStored, 1)
		default:
			shown := lists.Of(slices.Sorted(maps.Keys(got.Fields)), func(name string) string { return name + "=" + foreign.Clip(string(got.Fields[name]), 40) })
			sc.BrokenAs(sc.strangeValue(parts, i, got), rpc.OperationUpsert, "all values of "+string(r.Key)+" from one of the parallel batches",
				"a mixture: "+foreign.Clip(strings.Join(shown, " "), 240), sc.ReplyFor(r))
		}
	}
	return sc.Held()
}

// isStored reports whether a record has all values with which it was sent.
func (sc *Scenario) isStored(r *write.Record, got write.Observed) bool {
	names := slices.Collect(maps.Keys(r.Values))
	return !slices.ContainsFunc(names, func(name string) bool { return sc.fieldDiffers(write.AsSent(r), name, got) })
}

// strangeValue names a field with a value that was not sent: it is stored wrongly; "" for a mixture.
func (sc *Scenario) strangeValue(parts [][]*write.Record, i int, got write.Observed) string {
	for name := range parts[0][i].Values {
		sent := slices.ContainsFunc(parts, func(p []*write.Record) bool {
			return !sc.fieldDiffers(write.AsSent(p[i]), name, got)
		})
		if !sent {
			return map[bool]string{true: "no "}[model.OrNull(got.Fields[name]) == "null"] + "value of " + name
		}
	}
	return ""
}

// fieldsStored: of parallel batches that write other fields of a record, none takes back what another one wrote.
func (sc *Scenario) fieldsStored() error {
	seen, err := sc.Observe(sc.ofSets())
	for b, r := range write.Each(sc.Latest) {
		for _, d := range sc.same([]*write.Expected{write.AsSent(r)}, seen) {
			if b.Succeeded(r) {
				sc.BrokenAs("lost update", b.Operation, d.Expected+" by a parallel batch of this field alone", d.Actual, b.Reply)
			}
		}
	}
	return cmp.Or(err, sc.Held())
}

func (sc *Scenario) notesStored() error {
	seen, err := sc.Observe(write.RecordsOf(sc.expectations(exists)))
	if err != nil {
		return err
	}
	first, what := sc.History[0].Records[0], "leaves the newer values"
	if sc.isStored(first, seen[exchange.KeyText(first.Key)]) {
		what = "wins: the last arrival counts"
	}
	sc.Note("an older batch that is sent again after a newer one %s", what)
	return nil
}
