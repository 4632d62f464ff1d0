package loadgen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// Subject is the subject of the load: objects, or the API of a service.
func (r *Result) Subject() string {
	if r.Load.Scenario != "" {
		return "the REST API (" + r.Load.Scenario + ")"
	}
	return foreign.Line(strings.Join(names(r.Target.Objects), ", "))
}

// Remarks are the notes that say more than the reasons of Generator.
func (r *Result) Remarks() (list []string) {
	for _, note := range r.Notes {
		if reason, ok := strings.CutPrefix(note, limitNote); !ok || !slices.Contains(r.Generator.Reasons, reason) {
			list = append(list, note)
		}
	}
	return list
}

// MayDoBetter reports whether a target may take more than was measured: the generator was
// a limit, and the target refused nothing.
func (r *Result) MayDoBetter() bool { return r.Generator.Limited && r.LostShare() <= 0.001 }

// RateMissed reports whether an open loop has completed less than 99 % of its rate.
func (r *Result) RateMissed() bool {
	return r.Load.Mode == "open" && r.Ended == stopTime.String() && r.RequestsPerSecond < reachedShare*r.Load.Rate
}

// unansweredKinds are the errors of requests that got no complete reply.
var unansweredKinds = []string{
	wire.KindDescriptors, wire.KindPorts, wire.KindDNS, wire.KindRefused, wire.KindConnect, wire.KindTLS, wire.KindTimeout,
	wire.KindReset, wire.KindClosed, wire.KindTruncated, wire.KindTooLarge, wire.KindHTTP, wire.KindInterrupted,
}

// Answered counts the requests that got a complete reply, whatever it said.
func (r *Result) Answered() int64 {
	answered := r.Requests
	for _, kind := range unansweredKinds {
		answered -= r.ErrorsByKind[kind]
	}
	return max(answered, 0)
}

// Useless returns why the figures of a load mean nothing for a working
// destination, "" when they do: not one record was acknowledged.
func (r *Result) Useless() string {
	sent := r.Requests + r.Generator.Unanswered
	if f := r.Service; f != nil && f.Runs != nil && f.Runs.Failed+f.Runs.Unfinished > 0 && f.Runs.Completed+f.Runs.Skipped+f.Runs.Canceled == 0 {
		return fmt.Sprintf("%s: %s", none(f.Runs.Started, "run has not completed", "runs has completed"), foreign.Line(f.Runs.Failure))
	}
	if r.Acknowledged > 0 {
		return ""
	}
	if sent == 0 {
		return "nothing was sent before the load ended: " + r.Ended
	}
	most := ""
	if len(r.ErrorMessages) > 0 {
		most = ": " + foreign.Line(slices.MaxFunc(r.ErrorMessages, func(a, b ErrorMessage) int { return cmp.Compare(a.Count, b.Count) }).Message)
	}
	if r.Answered() == 0 {
		return none(sent, "request got no complete reply", "requests got a complete reply") + most
	}
	if r.Service != nil {
		return none(sent, "request was not answered as it must be", "requests was answered as it must be") + most
	}
	return fmt.Sprintf("not one record was acknowledged, of %s%s", quantity.Count(sent, "request"), most)
}

// none states that of n things not one did something: "the only …" with 1, else
// "not one of 20 …".
func none(n int64, one, many string) string {
	if n == 1 {
		return "the only " + one
	}
	return fmt.Sprintf("not one of %d %s", n, many)
}
