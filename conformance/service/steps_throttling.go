package service

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// throttlingSteps are for THR, 429 and Retry-After, and about X-RateLimit-Limit, the limit
// that all calls of a connection share (spec 8).
func throttlingSteps() []engine.Step {
	return []engine.Step{
		step(`^the destination notes the time of every call$`, (*scenario).timesCalls),
		step(`^calls? (\d+)(?: to (\d+))? of ([a-z_]+) (?:is|are) answered with status (\d{3})(?: and ([A-Za-z-]+) "([^"]*)")?$`, (*scenario).refusesCalls),

		step(`^no call of the sync comes within (\d+) (seconds|ms) after status (\d{3})$`, (*scenario).restsAfter),
		step(`^a call of the sync comes within (\d+) (seconds|ms) after status (\d{3})$`, (*scenario).goesOnAfter),

		step(`^every answer(?: from batch (\d+) on)? then has X-RateLimit-Limit "([^"]*)"$`, (*scenario).limits),

		step(`^no second after X-RateLimit-Limit "([^"]*)" brings more than (\d+) calls$`, (*scenario).limitHolds),
		step(`^some second of the sync brings more than (\d+) calls$`, (*scenario).notThrottled),
		step(`^every run completes$`, (*scenario).runsComplete),
	}
}

// timesCalls asks the service's clock at every call: where time is moved, only
// the service knows how long it has waited.
func (sc *scenario) timesCalls() {
	times := &sc.dest.times
	sc.dest.behaves(func(c *endpoint.Call, _ *endpoint.Reply) {
		_ = caught(func() { times.Store(c.Number, sc.clockOf()) }) // no time, no verdict
	})
}

// timeOf is when a call came, by the service's clock.
func (d *destination) timeOf(c *endpoint.Call) (time.Time, bool) {
	at, known := d.times.Load(c.Number)
	if !known {
		return time.Time{}, false
	}
	return at.(time.Time), true
}

// inDate stands for a date of HTTP so much later than the answer, by the
// service's clock.
const inDate = "a date in "

// refusesCalls answers some calls of a method, counted from now on, with a
// failure of HTTP.
func (sc *scenario) refusesCalls(first int64, last, method string, status int, name, value string) {
	var end int64
	if _, err := fmt.Sscan(last, &end); err != nil {
		end = first
	}
	text, dated := strings.CutPrefix(value, inDate)
	var ahead time.Duration
	if dated {
		var err error
		ahead, err = time.ParseDuration(text)
		stop(err)
	}
	sc.dest.behaves(counted(method, first, end, func(_ *endpoint.Call, r *endpoint.Reply) {
		said := value
		if dated {
			_ = caught(func() { said = sc.clockOf().Add(ahead).Format(http.TimeFormat) })
		}
		if r.Fail(status); name != "" {
			r.AddHeader(name, said)
		}
	}))
}

// following are the calls to a destination after its first answer with a status, and how
// long after it they came.
func (sc *scenario) following(status int) (refused *endpoint.Call, later []*endpoint.Call, waits []time.Duration) {
	d := sc.latest().dest
	calls := d.Seen("")
	i := slices.IndexFunc(calls, func(c *endpoint.Call) bool { return c.Done && c.Status == status })
	if i < 0 {
		undecided("status %d was never answered", status)
	}
	began, known := d.timeOf(calls[i])
	if !known {
		undecided("it is not known when status %d was answered", status)
	}
	for _, c := range calls {
		if at, ok := d.timeOf(c); ok && c.Came.After(calls[i].Ended) {
			later, waits = append(later, c), append(waits, at.Sub(began))
		}
	}
	return calls[i], later, waits
}

func (sc *scenario) restsAfter(n int, unit string, status int) error {
	refused, later, waits := sc.following(status)
	if len(later) == 0 {
		undecided("no call came after status %d at all", status)
	}
	least := length(n, unit)
	for i, c := range later {
		if waits[i] < least {
			sc.brokenCall(fmt.Sprintf("no call within %s after status %d", least, status),
				fmt.Sprintf("%s after %s", c.Method, waits[i].Round(time.Millisecond)), refused, c)
		}
	}
	return sc.HeldBy("the first call after status %d came %s later", status, waits[0].Round(time.Millisecond))
}

func (sc *scenario) goesOnAfter(n int, unit string, status int) error {
	refused, later, waits := sc.following(status)
	most := length(n, unit)
	if len(later) == 0 || waits[0] > most {
		sc.brokenCall(fmt.Sprintf("a call within %s after status %d", most, status), fmt.Sprintf("calls after %v", waits), append(later, refused)...)
		return sc.Held()
	}
	return sc.HeldBy("the first call after status %d came %s later", status, waits[0].Round(time.Millisecond))
}

func length(n int, unit string) time.Duration {
	if unit == "ms" {
		return time.Duration(n) * time.Millisecond
	}
	return time.Duration(n) * time.Second
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
		sc.tooDense(most, "call", n, within)
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
		undecided("no run came to its end")
	}
	return sc.heldBy(runs, "run")
}
