package service

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// refusalSteps are for THR, 429 and Retry-After, about X-RateLimit-Limit, the limit that
// all calls of a connection share, and for TOUT, requests that take too long (spec 8).
var refusalSteps = []step{
	// Where time is moved, only the service knows how long it has waited.
	{`^the destination notes the time of every call$`, func(sc *scenario) {
		times := &sc.dest.times
		sc.dest.Behave(func(c *endpoint.Call, _ *endpoint.Reply) {
			_ = caught(func() { times.Store(c.Number, sc.clockOf()) }) // no time, no verdict
		})
	}},
	// They are counted from now on. A value such as "a date in 30s" is by the service's clock.
	{`^calls? (\d+)(?: to (\d+))? of ([a-z_]+) (?:is|are) answered with status (\d{3})(?: and ([A-Za-z-]+) "([^"]*)")?$`,
		func(sc *scenario, first int64, last, method string, status int, name, value string) {
			end, err := strconv.ParseInt(last, 10, 64)
			if err != nil {
				end = first
			}
			text, dated := strings.CutPrefix(value, "a date in ")
			var ahead time.Duration
			if dated {
				ahead, err = time.ParseDuration(text)
				stop(err)
			}
			sc.dest.Behave(counted(method, first, end, func(_ *endpoint.Call, r *endpoint.Reply) {
				said := value
				if dated {
					_ = caught(func() { said = sc.clockOf().Add(ahead).Format(http.TimeFormat) })
				}
				if r.Fail(status); name != "" {
					r.AddHeader(name, said)
				}
			}))
		}},
	{`^every answer(?: from batch (\d+) on)? then has X-RateLimit-Limit "([^"]*)"$`, func(sc *scenario, first, limit string) {
		named := func(_ *endpoint.Call, r *endpoint.Reply) {
			delete(r.Header, endpoint.RateLimitHeader)
			r.AddHeader(endpoint.RateLimitHeader, limit)
		}
		if n, err := strconv.ParseInt(first, 10, 64); err == nil {
			named = counted(rpc.MethodSyncBatch, n, 0, named)
		}
		sc.dest.Behave(named)
	}},
	{`^the first call of ([a-z_]+) is (not answered|carried out, and answered only by half)$`, func(sc *scenario, method, how string) {
		sc.dest.Behave(sc.silent(method, how != "not answered"))
	}},
	{`^a client connects a destination that does not answer ([a-z_]+)$`, func(sc *scenario, method string) {
		sc.triesConnecting(connecting{twist: sc.silent(method, false)})
	}},

	{`^(no|a) call of the sync comes within (\d+) (seconds|ms) after status (\d{3})$`, (*scenario).comesAfter},
	{`^every run completes$`, func(sc *scenario) error {
		runs := slices.Concat(lists.Of(sc.syncs, func(s *syncing) []*answer { return s.runs })...)
		mustSee(len(runs), "no run came to its end")
		return each(sc, "run", runs, func(run *answer) {
			sc.expect(run.text("data", "status") == "completed", "the run completes", run.short(), run)
		})
	}},
	{`^the service gives the first call of ([a-z_]+) up$`, func(sc *scenario, method string) error {
		c := sc.givenUp(method)
		return sc.HeldBy("given up after %s", c.Ended.Sub(c.Came).Round(time.Millisecond))
	}},
	{`^the records of the first batch are sent again$`, func(sc *scenario) error {
		first := sc.givenUp(rpc.MethodSyncBatch)
		batches := sc.dest.Batches()
		later := identifiersIn(batches[1:]...)
		for _, id := range identifiersIn(first) {
			sc.expectCall(slices.Contains(later, id), "the record "+id+" is sent again", "it is not", batches...)
		}
		return sc.HeldBy("%s, %s", quantity.Count(len(first.Records()), "record"), quantity.Count(len(batches), "batch"))
	}},
}

// timeOf is when a call came, by the service's clock.
func (d *destination) timeOf(c *endpoint.Call) (time.Time, bool) {
	at, _ := d.times.Load(c.Number)
	moment, known := at.(time.Time)
	return moment, known
}

// comesAfter looks how long after its first answer with a status a destination was called: first, or at all.
func (sc *scenario) comesAfter(which string, n int, unit string, status int) error {
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
	bound := time.Duration(n) * map[string]time.Duration{"ms": time.Millisecond, "seconds": time.Second}[unit]
	var later []*endpoint.Call
	var waits []time.Duration
	for _, c := range calls {
		at, ok := d.timeOf(c)
		if !ok || !c.Came.After(calls[i].Ended) {
			continue
		}
		later, waits = append(later, c), append(waits, at.Sub(began))
		sc.expectCall(which == "a" || at.Sub(began) >= bound, fmt.Sprintf("no call within %s after status %d", bound, status),
			fmt.Sprintf("%s after %s", c.Method, at.Sub(began).Round(time.Millisecond)), calls[i], c)
	}
	if which == "a" && (len(waits) == 0 || waits[0] > bound) {
		expected := fmt.Sprintf("a call within %s after status %d", bound, status)
		sc.brokenCall(expected, fmt.Sprintf("calls after %v", waits), append(later, calls[i])...)
		return sc.Held()
	}
	mustSee(len(waits), "no call came after status %d at all", status)
	return sc.HeldBy("the first call after status %d came %s later", status, waits[0].Round(time.Millisecond))
}

// How long an unanswered request is held where the deadline of the service is unknown: a round number could be that.
const shortHold, longHold = 3500 * time.Millisecond, 5*time.Minute + 30*time.Second

// unanswered are the sentences of such a request.
var unanswered = regexp.MustCompile(`^the first call of [a-z_]+ is (?:not answered|carried out, and answered only by half)$|` +
	`^a client connects a destination that does not answer `)

// isHeld reports whether a check leaves a request without an answer.
func isHeld(c *conformance.Check) bool {
	return slices.ContainsFunc(c.Steps, func(step string) bool { return unanswered.MatchString(sentence(step)) })
}

// room is how much later than configured the service may give a request up: its deadline is not exact. With more delay the
// request shows nothing; the judge holds it for as long again, so that an answer never depends on who was first.
func room(known time.Duration) time.Duration { return known/3 + 500*time.Millisecond }

// hold is how long a request stays without an answer.
func (sc *scenario) hold() time.Duration {
	switch {
	case sc.opts.RequestTimeout > 0:
		return sc.opts.RequestTimeout + 2*room(sc.opts.RequestTimeout)
	case sc.opts.Patient:
		return longHold
	}
	return shortHold
}

// silent lets the first call of a method wait, or stop in the middle of its answer; in the end it is answered.
func (sc *scenario) silent(method string, half bool) endpoint.Twist {
	return counted(method, 1, 1, func(_ *endpoint.Call, r *endpoint.Reply) {
		if half {
			r.Stalls = after(sc.hold())
		} else {
			r.Before = after(sc.hold())
		}
	})
}

// givenUp is the first call of a method, given up by the service; else nothing is decided without its deadline.
func (sc *scenario) givenUp(method string) *endpoint.Call {
	calls := sc.dest.Seen(method)
	mustSee(len(calls), "no call of %s came", method)
	// The service may go on a moment before its going away is seen here.
	sc.waits(func() bool { calls = sc.dest.Seen(method); return calls[0].Done }, "a call of %s does not end", method)
	waitedOn, err := waitedOn(calls[0], sc.opts.RequestTimeout, sc.hold())
	sc.expectCall(!waitedOn, fmt.Sprintf("the service gives up a request that is not answered within %s", sc.opts.RequestTimeout),
		fmt.Sprintf("it was still waiting after %s", inWords(sc.hold())), calls[0])
	stop(sc.Held())
	stop(err)
	return calls[0]
}

// waitedOn reports whether the service waited longer than known, where 0 is unknown; an undecided case is an error.
func waitedOn(c *endpoint.Call, known, held time.Duration) (bool, error) {
	took := c.Ended.Sub(c.Came).Round(time.Millisecond)
	switch {
	case c.Aborted && (known == 0 || took <= known+room(known)):
		return false, nil
	case c.Aborted:
		return false, engine.Inconclusive("",
			"the service gave the request up after %s, which is later than %s and not by much: is --request-timeout right?", took, inWords(known))
	case known > 0:
		return true, nil
	}
	return false, engine.Inconclusive("--request-timeout",
		"the service waits for longer than %s: say with --request-timeout how long it may", inWords(held))
}
