package judge

import (
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
