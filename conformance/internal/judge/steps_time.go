package judge

import (
	"strconv"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// timeSteps judge deadlines, stalls, and what errors say.
func timeSteps() []definition {
	return []definition{
		step(`^the service sends what processes have died of$`, func(sc *Scenario) any { return sc.sendsWhatIsDeadly }),
		step(`^the endpoint has (accepted connections all the time|answered every call when it was made)$`, func(sc *Scenario) any {
			return func(claim string) error {
				if claim == "accepted connections all the time" {
					return sc.stayedUp()
				}
				return sc.AnsweredFirst()
			}
		}),
		step(`^every call is answered$`, func(sc *Scenario) any { return sc.everyCallAnswered }),
	}
}

// everyCallAnswered judges the good calls that follow disturbed ones.
func (sc *Scenario) everyCallAnswered() error {
	for _, r := range sc.Replies {
		if r.Method != rpc.MethodListObjects || r.Status >= 300 && r.Status <= 399 {
			continue // HTTP-004 judges redirects
		}
		if r.Passing() && !sc.Confirming() {
			return wire.ErrAway // which may pass: judged once more, alone
		}
		if expected, actual := rules.SameID(r); actual != "" {
			sc.Broken(expected+": the answer to this call", actual, r)
		} else if r.Member("result") == nil && r.Member("error") == nil {
			sc.Broken("an answer to a good call", r.Short(), r)
		}
	}
	return sc.Held()
}

// callsAtRate sends calls at a share of the declared rate, for one second or
// the length of the load checks, whichever is shorter.
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
