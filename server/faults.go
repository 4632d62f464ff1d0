package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/server/clock"
)

// Fault is one thing that goes wrong on purpose in front of the API. It strikes
// calls that carry a token that is known, and never the control API.
type Fault struct {
	// Kind is latency, status, rate_limited or drop.
	Kind string `json:"kind"`
	// Phase is before (default): nothing has been done, or after: the call has
	// succeeded, its changes are committed, and only its answer is lost.
	Phase string `json:"phase,omitempty"`
	// Status of the kind status, 400 to 599 and 500 by default.
	Status int `json:"status,omitempty"`
	// Message of the kinds status and rate_limited.
	Message string `json:"message,omitempty"`
	// RetryAfter of the kinds status and rate_limited: seconds or an HTTP date.
	// rate_limited says 1 without it.
	RetryAfter *retryAfter `json:"retry_after,omitempty"`
	// Latency of the kind latency as a duration such as 250ms, in real time, at
	// most 1m0s: the virtual clock has no part in it, nor has freezing it.
	Latency string `json:"latency,omitempty"`
	Trigger
}

// Trigger says which calls a fault strikes. What is left out does not restrict;
// what is given must hold together. The first four choose calls, the others
// count the chosen ones, so that the same calls meet the same faults.
type Trigger struct {
	// Operation is an id of the OpenAPI document such as updateSync, a pattern
	// such as list*, or a method and a path such as "PATCH /syncs/*".
	Operation      string `json:"operation,omitempty"`
	OrganizationID int64  `json:"organization_id,omitempty"`
	WorkspaceID    int64  `json:"workspace_id,omitempty"`
	AfterN         int64  `json:"after_n,omitempty"` // not the first N
	FirstN         int64  `json:"first_n,omitempty"` // only the first N, counted behind after_n
	Every          int64  `json:"every,omitempty"`   // every Kth, counted behind after_n
	// Probability from 0 to 1, drawn from Seed; 0: always.
	Probability float64 `json:"probability,omitempty"`
	Seed        uint64  `json:"seed,omitempty"`
	Times       int64   `json:"times,omitempty"` // strikes at most so often
}

// Kinds and phases of a fault.
const (
	faultLatency     = "latency"
	faultStatus      = "status"
	faultRateLimited = "rate_limited"
	faultDrop        = "drop"
	phaseBefore      = "before"
	phaseAfter       = "after"
)

// ArmedFault is a fault with what has become of it.
type ArmedFault struct {
	ID      string `json:"id"` // fault_1, fault_2, … in the order of arming
	Fault   Fault  `json:"fault"`
	Armed   bool   `json:"armed"`   // false once it was taken away
	Matched int64  `json:"matched"` // calls that it was meant for
	Fired   int64  `json:"fired"`   // calls that it struck

	latency time.Duration
	chance  *rand.Rand
}

// The bounds of a board.
const (
	maxFaults  = 1000
	maxLatency = time.Minute
)

// faults is the board of one service.
type faults struct {
	s     *Server
	armed atomic.Int64 // calls look at nothing else while it is 0
	notes atomic.Int64 // calls that were struck and have not ended

	mu     sync.Mutex
	next   int64
	list   []*ArmedFault
	struck map[*call][]string
}

// newFaults makes an empty board.
func newFaults(s *Server) *faults { return &faults{s: s, struck: map[*call][]string{}} }

// droppedConnection ends a call without an answer.
type droppedConnection struct{ fault string }

func (d *droppedConnection) Error() string { return "connection dropped by " + d.fault }

// UnfiredFaults lists the faults that never struck, whether or not they still
// stand: a test that relies on one of them has tested nothing.
func (s *Server) UnfiredFaults() []ArmedFault {
	return slices.DeleteFunc(s.faults.all(), func(a ArmedFault) bool { return a.Fired > 0 })
}

// arm puts a fault into force for all calls that come later.
func (f *faults) arm(fault Fault) (ArmedFault, error) {
	latency, err := fault.check(f.s)
	if err != nil {
		return ArmedFault{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.list) >= maxFaults {
		return ArmedFault{}, refuse(http.StatusConflict, "there are %d faults already; delete some", maxFaults)
	}
	f.next++
	a := &ArmedFault{
		ID: fmt.Sprintf("fault_%d", f.next), Fault: fault, Armed: true,
		latency: latency, chance: rand.New(rand.NewPCG(fault.Seed, 0xfa017)),
	}
	f.list = append(f.list, a)
	f.armed.Add(1)
	return *a, nil
}

// disarm takes a fault out of force and off the board; 404 when it is not there.
func (f *faults) disarm(id string) (ArmedFault, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := slices.IndexFunc(f.list, func(a *ArmedFault) bool { return a.ID == id })
	if at < 0 {
		return ArmedFault{}, refuse(http.StatusNotFound, "there is no fault %q", clip(id, 40))
	}
	a := f.list[at]
	f.list = slices.Delete(f.list, at, at+1)
	f.armed.Add(-1)
	a.Armed = false
	return *a, nil
}

// forget takes all faults away and starts their numbers again.
func (f *faults) forget() []ArmedFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	gone := f.copies()
	f.list, f.next = nil, 0
	f.armed.Store(0)
	return gone
}

// all is a copy: the counters go on while it is written.
func (f *faults) all() []ArmedFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.copies()
}

func (f *faults) copies() []ArmedFault {
	list := make([]ArmedFault, len(f.list))
	for i, a := range f.list {
		list[i] = *a
	}
	return list
}

// taken gives the faults that struck a call that ends.
func (f *faults) taken(c *call) []string {
	if f.notes.Load() == 0 {
		return []string{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	ids, ok := f.struck[c]
	if !ok {
		return []string{}
	}
	delete(f.struck, c)
	f.notes.Add(-1)
	return ids
}

// before and after let the faults of their phase strike a call. All latencies
// add up; the first fault of another kind ends the call, and later ones do not
// see it.
func (f *faults) before(c *call) error { return f.strike(c, phaseBefore) }
func (f *faults) after(c *call) error  { return f.strike(c, phaseAfter) }

// strike waits outside of the lock, so that a slow call delays no other.
func (f *faults) strike(c *call, phase string) error {
	if f.armed.Load() == 0 {
		return nil
	}
	wait, fatal := f.decide(c, phase)
	if wait > 0 {
		err := f.s.aside(c.ctx, func(ctx context.Context) error { return clock.Sleep(ctx, min(wait, maxLatency)) })
		if err != nil {
			return err
		}
	}
	if fatal == nil {
		return nil
	}
	return fatal.failure(f.s.clock.Now())
}

// decide asks every fault in the order of arming.
func (f *faults) decide(c *call, phase string) (wait time.Duration, fatal *ArmedFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.list {
		if a.Fault.Phase != phase || !a.Fault.meant(c) || !a.due() {
			continue
		}
		// The count lets calls that nothing struck end without the lock.
		if _, noted := f.struck[c]; !noted {
			f.notes.Add(1)
		}
		f.struck[c] = append(f.struck[c], a.ID)
		f.s.figures.fault(a.Fault.Kind)
		if a.Fault.Kind != faultLatency {
			copied := *a
			return wait, &copied
		}
		wait += a.latency
	}
	return wait, nil
}

// meant tells whether the trigger chooses a call.
func (t *Trigger) meant(c *call) bool {
	if t.OrganizationID != 0 && t.OrganizationID != c.who.OrganizationID ||
		t.WorkspaceID != 0 && t.WorkspaceID != c.who.WorkspaceID {
		return false
	}
	if t.Operation == "" {
		return true
	}
	method, pattern, byPath := strings.Cut(t.Operation, " ")
	if !byPath {
		ok, _ := path.Match(t.Operation, c.op.ID)
		return ok
	}
	if method != "*" && method != c.r.Method {
		return false
	}
	// A star does not cross a slash: /syncs/* is not /syncs/1/trigger.
	ok, _ := path.Match(strings.TrimSuffix(pattern, "/"), strings.TrimSuffix(strings.TrimPrefix(c.r.URL.Path, BasePath), "/"))
	return ok
}

// due counts a call that the fault is meant for and says whether it strikes.
// The draw is made for every call, so that it does not depend on the counters.
func (a *ArmedFault) due() bool {
	t := &a.Fault.Trigger
	a.Matched++
	n := a.Matched - t.AfterN
	lucky := t.Probability == 0 || a.chance.Float64() < t.Probability
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
		return &droppedConnection{fault: a.ID}
	}
	f := &failure{code: a.Fault.Status, message: a.Fault.Message}
	if a.Fault.RetryAfter != nil {
		f.retry = a.Fault.RetryAfter.header(now)
	}
	return f
}

// clip shortens a text that a client chose.
func clip(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
