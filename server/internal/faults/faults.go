// Package faults owns the injected failures of the API: which faults are armed, which
// calls they strike and how often. It leaves the answer to a struck call to its
// caller.
package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/pause"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/sync/clock"
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
	// rate_limited defaults to 1.
	RetryAfter *RetryAfter `json:"retry_after,omitempty"`
	// Latency of the kind latency as a duration such as 250ms, in real time, at
	// most 1m0s: the virtual clock has no part in it, nor has freezing it.
	Latency string `json:"latency,omitempty"`
	Trigger
}

// Trigger selects the calls that a fault strikes. Omitted fields do not
// restrict; given ones must all hold. The first four choose calls, the others
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

// ArmedFault is a fault with its counters.
type ArmedFault struct {
	ID      string `json:"id"` // fault_1, fault_2, … in the order of arming
	Fault   Fault  `json:"fault"`
	Armed   bool   `json:"armed"`   // false once it was taken away
	Matched int64  `json:"matched"` // calls that it was meant for
	Fired   int64  `json:"fired"`   // calls that it struck

	latency time.Duration
	draws   *rand.PCG
}

// The bounds of a board.
const (
	maxFaults  = 1000
	maxLatency = time.Minute
)

// Faults is the board of one service.
type Faults struct {
	clock *clock.Clock
	fired func(kind string) // counts what struck
	ids   func() []string   // of the operations

	armed atomic.Int64 // calls look at nothing else while it is 0
	notes atomic.Int64 // calls that were struck and have not ended

	mu     sync.Mutex
	board  board
	struck map[*call.Call][]string
}

// Options are what faults need of the service.
type Options struct {
	Clock *clock.Clock
	// Fired counts a fault that struck by its kind; nil counts nothing.
	Fired func(kind string)
	// Operations gives the ids of the operations of the API.
	Operations func() []string
}

// New makes an empty board.
func New(o Options) *Faults {
	f := &Faults{clock: o.Clock, fired: o.Fired, ids: o.Operations, struck: map[*call.Call][]string{}}
	if f.ids == nil {
		f.ids = func() []string { return nil }
	}
	if f.fired == nil {
		f.fired = func(string) {}
	}
	return f
}

// DroppedConnection ends a call without an answer.
type DroppedConnection struct{ fault string }

func (d *DroppedConnection) Error() string { return "connection dropped by " + d.fault }

// Unfired lists the faults that never struck.
func (f *Faults) Unfired() []ArmedFault {
	return slices.DeleteFunc(f.All(), func(a ArmedFault) bool { return a.Fired > 0 })
}

// Arm puts a fault into force for all calls that come later.
func (f *Faults) Arm(fault Fault) (armed ArmedFault, err error) {
	latency, err := fault.check(f.ids())
	if err != nil {
		return ArmedFault{}, err
	}
	err = f.change(func(b *board) error {
		if len(b.list) >= maxFaults {
			return problem.Refuse(http.StatusConflict, "there are %d faults already; delete some", maxFaults)
		}
		b.next++
		a := &ArmedFault{
			ID: fmt.Sprintf("fault_%d", b.next), Fault: fault, Armed: true,
			latency: latency, draws: rand.NewPCG(fault.Seed, 0xfa017),
		}
		b.list = append(b.list, a)
		armed = *a
		return nil
	})
	return armed, err
}

// Disarm takes a fault out of force and off the board; 404 when it is not there.
func (f *Faults) Disarm(id string) (gone ArmedFault, err error) {
	err = f.change(func(b *board) error {
		at := slices.IndexFunc(b.list, func(a *ArmedFault) bool { return a.ID == id })
		if at < 0 {
			return problem.Refuse(http.StatusNotFound, "there is no fault %q", foreign.Clip(id, 40))
		}
		gone = *b.list[at]
		gone.Armed = false
		b.list = slices.Delete(b.list, at, at+1)
		return nil
	})
	return gone, err
}

// Forget takes all faults away and starts their numbers again.
func (f *Faults) Forget() (gone []ArmedFault) {
	_ = f.change(func(b *board) error {
		gone = b.copies()
		*b = board{}
		return nil
	})
	return gone
}

// change changes the board.
func (f *Faults) change(change func(*board) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := change(&f.board)
	f.armed.Store(int64(len(f.board.list)))
	return err
}

// All is a copy: the counters go on while it is written.
func (f *Faults) All() []ArmedFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.board.copies()
}

// Taken gives the faults that struck a call that ends.
func (f *Faults) Taken(c *call.Call) []string {
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

// Before and after let the faults of their phase strike a call. All latencies
// add up; the first fault of another kind ends the call, and later ones do not
// see it.
func (f *Faults) Before(c *call.Call) error { return f.strike(c, phaseBefore) }
func (f *Faults) After(c *call.Call) error  { return f.strike(c, phaseAfter) }

// strike waits outside of the lock, so that a slow call delays no other.
func (f *Faults) strike(c *call.Call, phase string) error {
	if f.armed.Load() == 0 {
		return nil
	}
	wait, fatal := f.decide(c, phase)
	if wait > 0 {
		err := c.Hold.Apart(func(ctx context.Context) error { return pause.For(ctx, min(wait, maxLatency)) })
		if err != nil {
			return err
		}
	}
	if fatal == nil {
		return nil
	}
	return fatal.failure(f.clock.Now())
}

// decide finds the faults that strike a call, and notes them.
func (f *Faults) decide(c *call.Call, phase string) (wait time.Duration, fatal *ArmedFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fired := f.board.fire(c, phase)
	for _, a := range fired {
		// The count lets calls that nothing struck end without the lock.
		if _, noted := f.struck[c]; !noted {
			f.notes.Add(1)
		}
		f.struck[c] = append(f.struck[c], a.ID)
		f.fired(a.Fault.Kind)
		if a.Fault.Kind != faultLatency {
			return wait, &a
		}
		wait += a.latency
	}
	return wait, nil
}

// Stamp changes with every fault that is armed, taken away, matched or fired.
func (f *Faults) Stamp() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	stamp := f.board.next<<32 + int64(len(f.board.list))
	for _, a := range f.board.list {
		stamp += a.Matched + a.Fired<<16
	}
	return stamp
}
