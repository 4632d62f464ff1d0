package service

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim/rpc"
)

// timeoutsSteps are for TOUT: requests that take too long (spec 8).
func timeoutsSteps() []conformance.Step {
	return []conformance.Step{
		step(`^the first call of ([a-z_]+) is (not answered|carried out, and answered only by half)$`, func(p *play) any { return p.stalls }),
		step(`^a client connects a destination that does not answer ([a-z_]+)$`, func(p *play) any { return p.connectsSilent }),

		step(`^the service gives the first call of ([a-z_]+) up$`, func(p *play) any { return p.givesUp }),
		step(`^the records of the first batch are sent again$`, func(p *play) any { return p.firstIsRepeated }),
		step(`^other batches come while the first is not answered$`, func(p *play) any { return p.othersCome }),
	}
}

// How long an unanswered request is held where nobody knows how long the service
// waits; --patient has more time. Both are no round numbers: a deadline of the
// service is one, and would end at the same moment.
const (
	shortHold = 3500 * time.Millisecond
	longHold  = 5*time.Minute + 30*time.Second
)

// unanswered are the sentences of such a request.
var unanswered = regexp.MustCompile(`^the first call of [a-z_]+ is (?:not answered|carried out, and answered only by half)$|^a client connects a destination that does not answer `)

// isHeld tells that a check leaves a request without an answer.
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
func (p *play) hold() time.Duration {
	switch {
	case p.opts.RequestTimeout > 0:
		return p.opts.RequestTimeout + 2*room(p.opts.RequestTimeout)
	case p.opts.Patient:
		return longHold
	}
	return shortHold
}

// silent lets the first call of a method wait, from the beginning or in the
// middle of its answer. When the service does not give it up it is answered
// after all.
func (p *play) silent(method string, half bool) twist {
	return counted(method, 1, 1, func(_ *call, r *reply) {
		if half {
			r.stalls = after(p.hold())
		} else {
			r.before = after(p.hold())
		}
	})
}

func (p *play) stalls(method, how string) {
	p.dest.behaves(p.silent(method, how != "not answered"))
}

func (p *play) connectsSilent(method string) error {
	return p.triesConnecting(connecting{script: scripted(p.silent(method, false))})
}

// heldCall is the first call of a method, once it is over: the service may go on
// a moment before its going away is seen here.
func (p *play) heldCall(method string) (*call, error) {
	for deadline := time.Now().Add(p.hold()); ; {
		calls := p.dest.seen(method)
		switch {
		case len(calls) == 0:
			return nil, conformance.Outcome(conformance.Inconclusive, "", "no call of %s came", method)
		case calls[0].done:
			return calls[0], nil
		case time.Now().After(deadline):
			return nil, conformance.Outcome(conformance.HarnessError, "", "a call of %s does not end", method)
		}
		if err := p.sleep(pollEvery); err != nil {
			return nil, err
		}
	}
}

// givenUp is the call that the service did not wait for any longer. One that it
// waited for decides nothing, unless it is known how long it may.
func (p *play) givenUp(method string) (*call, error) {
	c, err := p.heldCall(method)
	if err != nil {
		return nil, err
	}
	waitedOn, err := c.waitedOn(p.opts.RequestTimeout, p.hold())
	if waitedOn {
		p.brokenCall(fmt.Sprintf("the service gives up a request that is not answered within %s", p.opts.RequestTimeout),
			fmt.Sprintf("it was still waiting after %s", inWords(p.hold())), c)
		return c, p.Held()
	}
	return c, err
}

// waitedOn tells that the service did not give a call up that was held, although it
// is known after how long it does; 0 is not known. What decides nothing is an error.
func (c *call) waitedOn(known, held time.Duration) (bool, error) {
	took := c.ended.Sub(c.came).Round(time.Millisecond)
	switch {
	case c.aborted && (known == 0 || took <= known+room(known)):
		return false, nil
	case c.aborted:
		return false, conformance.Outcome(conformance.Inconclusive, "",
			"the service gave the request up after %s, which is later than %s and not by much: is --request-timeout right?", took, inWords(known))
	case known > 0:
		return true, nil
	}
	return false, conformance.Outcome(conformance.Inconclusive, "--request-timeout",
		"the service waits for longer than %s: say with --request-timeout how long it may", inWords(held))
}

func (p *play) givesUp(method string) error {
	c, err := p.givenUp(method)
	if err != nil {
		return err
	}
	p.Proof("given up after %s", c.ended.Sub(c.came).Round(time.Millisecond))
	return p.Held()
}

func (p *play) firstIsRepeated() error {
	first, err := p.givenUp(rpc.MethodSyncBatch)
	if err != nil {
		return err
	}
	batches := p.dest.batches()
	later := identifiersOf(batches[1:])
	for _, id := range identifiersIn(first) {
		if !slices.Contains(later, id) {
			p.brokenCall("the record "+id+" is sent again", "it is not", batches...)
		}
	}
	p.Proof("%d records, %d batches", len(first.records()), len(batches))
	return p.Held()
}

// identifiersOf are those of all the records of batches.
func identifiersOf(batches []*call) []string {
	var out []string
	for _, c := range batches {
		out = append(out, identifiersIn(c)...)
	}
	return out
}

func (p *play) othersCome() error {
	first, err := p.heldCall(rpc.MethodSyncBatch)
	if err != nil {
		return err
	}
	// Its end is seen a little late here: others that come in its first half do not
	// come because of that.
	half := first.came.Add(first.ended.Sub(first.came) / 2)
	n := 0
	for _, c := range p.dest.batches()[1:] {
		if c.came.Before(half) {
			n++
		}
	}
	if n == 0 {
		p.brokenCall("batches beside the one that is not answered", "none", first)
	}
	p.Proof("%d batches beside it", n)
	return p.Held()
}
