package faults

import (
	"math/rand/v2"
	"path"
	"strings"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
)

// board is what triggers look at, in the order of arming.
type board struct {
	next int64
	list []*ArmedFault
}

func (b *board) copies() []ArmedFault {
	list := make([]ArmedFault, len(b.list))
	for i, a := range b.list {
		list[i] = *a
	}
	return list
}

// fire evaluates every fault in the order of arming.
func (b *board) fire(c *call.Call, phase string) (fired []ArmedFault) {
	for _, a := range b.list {
		if a.Fault.Phase != phase || !a.Fault.meant(c) || !a.due() {
			continue
		}
		fired = append(fired, *a)
		if a.Fault.Kind != faultLatency {
			break
		}
	}
	return fired
}

// meant reports whether the trigger chooses a call.
func (t *Trigger) meant(c *call.Call) bool {
	if t.OrganizationID != 0 && t.OrganizationID != c.Who.OrganizationID ||
		t.WorkspaceID != 0 && t.WorkspaceID != c.Who.WorkspaceID {
		return false
	}
	if t.Operation == "" {
		return true
	}
	method, pattern, byPath := strings.Cut(t.Operation, " ")
	if !byPath {
		ok, _ := path.Match(t.Operation, c.Op.ID)
		return ok
	}
	if method != "*" && method != c.R.Method {
		return false
	}
	// A star does not cross a slash: /syncs/* is not /syncs/1/trigger.
	ok, _ := path.Match(strings.TrimSuffix(pattern, "/"), strings.TrimSuffix(strings.TrimPrefix(c.R.URL.Path, api.BasePath), "/"))
	return ok
}

// due counts a call that the fault is meant for and reports whether it strikes.
// The draw is made for every call, so that it does not depend on the counters.
func (a *ArmedFault) due() bool {
	t := &a.Fault.Trigger
	a.Matched++
	n := a.Matched - t.AfterN
	lucky := t.Probability == 0 || rand.New(a.draws).Float64() < t.Probability
	if n < 1 || t.FirstN > 0 && n > t.FirstN || t.Every > 0 && n%t.Every != 0 ||
		t.Times > 0 && a.Fired >= t.Times || !lucky {
		return false
	}
	a.Fired++
	return true
}

// failure is what the client gets.
func (a *ArmedFault) failure(now time.Time) error {
	if a.Fault.Kind == faultDrop {
		return &DroppedConnection{fault: a.ID}
	}
	f := &problem.Failure{Code: a.Fault.Status, Message: a.Fault.Message}
	if a.Fault.RetryAfter != nil {
		f.Retry = a.Fault.RetryAfter.header(now)
	}
	return f
}
