package write

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/quantity"
)

// Send sends one request and reads its reply. An error means that the judge
// failed or that the run is over; what the endpoint does wrong is in the reply.
func (sc *Scenario) Send(req line.Request) (*exchange.Reply, error) {
	r, err := sc.Session.Send(sc.Ctx, sc.Check().ID, req)
	if r != nil {
		sc.Replies = append(sc.Replies, r)
	}
	return r, err
}

// Reserve waits until the answers about all these objects have room beside those that
// other scenarios keep. Calls are counted twice: some are made again.
func (sc *Scenario) Reserve(calls []line.Request) error {
	size := 0
	for _, c := range calls {
		if o := sc.Catalog.Object(c.Object); o != nil {
			size += 2 * o.size
		}
	}
	if size < line.FewBytes || sc.reserved > 0 {
		return nil
	}
	n := int64(min(size, line.KeptBodies))
	if err := sc.Wide.Acquire(sc.Ctx, n); err != nil {
		return line.Overtime(sc.Ctx)
	}
	sc.reserved = n
	return nil
}

// Release gives the room to others.
func (sc *Scenario) Release() {
	if sc.reserved > 0 {
		sc.Wide.Release(sc.reserved)
	}
	sc.reserved = 0
}

// AnsweredFirst judges the disturbances of the run.
func (sc *Scenario) AnsweredFirst() error {
	sc.Disturbed.Mu.Lock()
	defer sc.Disturbed.Mu.Unlock()
	count := map[string]int{}
	lost, inPlace := 0, true
	for _, r := range sc.Disturbed.Replies {
		what := fmt.Sprintf("HTTP %d", r.Status)
		if r.Status == 0 {
			what = "a lost connection"
			lost++
		}
		count[what]++
		inPlace = inPlace && r.InPlace()
	}
	n := len(sc.Disturbed.Replies)
	if n == lost && lost < line.FewLostAnswer {
		return sc.Held()
	}
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%s (%s)", what, quantity.Count(count[what], "time")))
	}
	sc.BrokenAs(line.SymptomDisturbed, "", "an answer to each call when it is made",
		fmt.Sprintf("%s of %d had none at first, and were answered when they were made again: %s; the first was %s",
			quantity.Count(n, "call"), sc.Replicas.Calls(), strings.Join(parts, ", "), cmp.Or(sc.Disturbed.Replies[0].What(), "a call")),
		sc.Disturbed.Replies[:min(n, 4)]...)
	if inPlace {
		sc.Explain(func(s string) bool { return s == line.SymptomDisturbed },
			"a platform, gateway or balancer answers "+quantity.List(slices.Sorted(maps.Keys(count)))+" in place of the endpoint now and then: its workers are full or restart, or it has a limit below the one that is declared.", false)
	}
	return sc.Held()
}

// ServesOneConnection is the finding about an endpoint that serves one connection at a
// time.
func (sc *Scenario) ServesOneConnection() error {
	sc.Add(conformance.Finding{
		Expected: "calls over several connections at once are answered",
		Actual:   line.OneConnection + ": " + sc.Queued.Method + " had no answer within " + exchange.Round(sc.Queued.Total).String() + ", and was answered at once when the other connection was closed",
		Fix:      line.OneConnectionFix,
	}, line.SymptomOneConnection, []conformance.Exchange{sc.Queued.Exchange()})
	sc.Explain(func(s string) bool { return s == line.SymptomOneConnection },
		"one worker serves a connection until its end: a connection that is kept for the next call keeps out all others.", true)
	return sc.Held()
}

// NeedsSecondConnection ends a check of what happens at the same time where nothing does.
func (sc *Scenario) NeedsSecondConnection() error {
	if sc.Queued == nil {
		return nil
	}
	return engine.NotRun("", "%s (PAR-001)", line.OneConnection)
}

// hookAway decides whether a hook that got no answer ran into an outage: authors serve
// read-back from the process that is judged.
func (sc *Scenario) hookAway(err error, started time.Time) error {
	if k := hook.KindOf(err); k != hook.KindUnreachable && k != hook.KindTimeout {
		return nil
	}
	sc.Watch.Mu.Lock()
	off := sc.Watch.Off > 0
	sc.Watch.Mu.Unlock()
	if off {
		return nil
	}
	if away := sc.OutageAt(sc.Ctx, sc.Client, started, &line.Outage{Call: "the read-back of " + sc.Check().ID}); away != nil {
		return away
	}
	if line.BrokenOff(err) && !sc.JudgesAlone.Load() {
		return wire.ErrAway // a restart may be over already: judged once more, alone
	}
	return nil
}
