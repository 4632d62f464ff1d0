package service

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// timeoutsSteps are for TOUT: requests that take too long (spec 8).
func timeoutsSteps() []engine.Step {
	return []engine.Step{
		step(`^the first call of ([a-z_]+) is (not answered|carried out, and answered only by half)$`, (*scenario).stalls),
		step(`^a client connects a destination that does not answer ([a-z_]+)$`, (*scenario).connectsSilent),

		step(`^the service gives the first call of ([a-z_]+) up$`, (*scenario).givesUp),
		step(`^the records of the first batch are sent again$`, (*scenario).firstIsRepeated),
	}
}

// How long an unanswered request is held where it is unknown how long the service
// waits; --patient has more time. Both are no round numbers: a deadline of the
// service is one, and would end at the same moment.
const (
	shortHold = 3500 * time.Millisecond
	longHold  = 5*time.Minute + 30*time.Second
)

// unanswered are the sentences of such a request.
var unanswered = regexp.MustCompile(`^the first call of [a-z_]+ is (?:not answered|carried out, and answered only by half)$|^a client connects a destination that does not answer `)

// isHeld reports whether a check leaves a request without an answer.
func isHeld(c *conformance.Check) bool {
	return slices.ContainsFunc(c.Steps, func(step string) bool { return unanswered.MatchString(sentence(step)) })
}

// room is how much later than it is known to a request may be given up: whoever says
// how long the service waits says its own deadline, and neither that nor the way to
// here is exact. A request that is given up with more delay shows neither a service
// that waits for ever nor one that keeps to what is known; the judge holds it for
// as long again, so that an answer is never a matter of who was first.
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

// silent lets the first call of a method wait, from the beginning or in the
// middle of its answer. When the service does not give it up it is answered
// after all.
func (sc *scenario) silent(method string, half bool) twist {
	return counted(method, 1, 1, func(_ *endpoint.Call, r *endpoint.Reply) {
		if half {
			r.Stalls = after(sc.hold())
		} else {
			r.Before = after(sc.hold())
		}
	})
}

func (sc *scenario) stalls(method, how string) {
	sc.dest.behaves(sc.silent(method, how != "not answered"))
}

func (sc *scenario) connectsSilent(method string) {
	sc.triesConnecting(connecting{twist: sc.silent(method, false)})
}

// heldCall is the first call of a method, once it is over: the service may go on
// a moment before its going away is seen here.
func (sc *scenario) heldCall(method string) *endpoint.Call {
	calls := sc.dest.Seen(method)
	if len(calls) == 0 {
		undecided("no call of %s came", method)
	}
	sc.waits(func() bool { calls = sc.dest.Seen(method); return calls[0].Done }, "a call of %s does not end", method)
	return calls[0]
}

// givenUp is the call that the service did not wait for any longer. One that it
// waited for decides nothing, unless it is known how long it may.
func (sc *scenario) givenUp(method string) *endpoint.Call {
	c := sc.heldCall(method)
	waitedOn, err := waitedOn(c, sc.opts.RequestTimeout, sc.hold())
	if waitedOn {
		sc.brokenCall(fmt.Sprintf("the service gives up a request that is not answered within %s", sc.opts.RequestTimeout),
			fmt.Sprintf("it was still waiting after %s", inWords(sc.hold())), c)
		stop(sc.Held())
	}
	stop(err)
	return c
}

// waitedOn reports whether the service did not give a call up that was held, although it
// is known after how long it does; 0 is not known. What decides nothing is an error.
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

func (sc *scenario) givesUp(method string) error {
	c := sc.givenUp(method)
	return sc.HeldBy("given up after %s", c.Ended.Sub(c.Came).Round(time.Millisecond))
}

func (sc *scenario) firstIsRepeated() error {
	first := sc.givenUp(rpc.MethodSyncBatch)
	batches := sc.dest.Batches()
	later := identifiersIn(batches[1:]...)
	for _, id := range identifiersIn(first) {
		if !slices.Contains(later, id) {
			sc.brokenCall("the record "+id+" is sent again", "it is not", batches...)
		}
	}
	return sc.HeldBy("%s, %s", quantity.Count(len(first.Records()), "record"), quantity.Count(len(batches), "batch"))
}
