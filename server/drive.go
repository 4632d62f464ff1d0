package server

import (
	"context"
	"time"

	"github.com/destkit/destkit/server/internal/controlapi"
	"github.com/destkit/destkit/server/internal/faults"
	"github.com/destkit/destkit/server/internal/journal"
)

// holding runs what the control API does while the state is held, as it holds it for a
// call.
func (g *base) holding(ctx context.Context, do func(ctx context.Context) error) error {
	hold := g.lock.Enter(ctx)
	defer hold.Leave()
	return hold.Failure(do(hold.Ctx))
}

// Clock moves the time of a service, as /_control/clock does.
type Clock struct{ s *Server }

// Clock gives the clock.
func (s *Server) Clock() Clock { return Clock{s} }

// Now is the moment of the service's clock.
func (c Clock) Now() time.Time { return c.s.clock.Now() }

// Advance adds to the clock and runs, in order, all that falls due on the way: schedules,
// retries, alerts. It returns when nothing runs that could end by itself. An error is a
// clock that another call is advancing, or a way beyond the years that it has.
func (c Clock) Advance(ctx context.Context, d time.Duration) error {
	_, err := c.s.timing.Advance(ctx, d)
	return err
}

// Freeze stops the clock, Resume lets it run on.
func (c Clock) Freeze(ctx context.Context) error {
	c.s.timing.Freeze(ctx, true)
	return nil
}

// Resume lets a clock run that Freeze has stopped.
func (c Clock) Resume(ctx context.Context) error {
	c.s.timing.Freeze(ctx, false)
	return nil
}

// Set sets the clock to a moment of the years 1970 to 9999. Overdue work then runs.
func (c Clock) Set(ctx context.Context, to time.Time) error {
	return c.s.timing.Set(ctx, to)
}

// Fault is one injected failure of the API, Trigger selects the calls it strikes,
// RetryAfter is the value that a refused client gets, and ArmedFault is one in force
// with its hits.
type (
	Fault      = faults.Fault
	Trigger    = faults.Trigger
	RetryAfter = faults.RetryAfter
	ArmedFault = faults.ArmedFault
)

// RetryIn is the value of Fault.RetryAfter in seconds, from 0 on.
func RetryIn(seconds int64) *RetryAfter { return faults.In(seconds) }

// Faults are those of a service, as /_control/faults has them.
type Faults struct{ s *Server }

// Faults gives the faults.
func (s *Server) Faults() Faults { return Faults{s} }

// Arm puts a fault into force for all calls that come later. An error names the fields
// that are wrong.
func (f Faults) Arm(ctx context.Context, fault Fault) (armed ArmedFault, err error) {
	err = f.s.holding(ctx, func(context.Context) error {
		armed, err = f.s.faults.Arm(fault)
		return err
	})
	return armed, err
}

// List gives all faults, in the order of arming.
func (f Faults) List(ctx context.Context) (list []ArmedFault, err error) {
	err = f.s.holding(ctx, func(context.Context) error {
		list = f.s.faults.All()
		return nil
	})
	return list, err
}

// Disarm takes one fault away, by its id, and gives what became of it.
func (f Faults) Disarm(ctx context.Context, id string) (gone ArmedFault, err error) {
	err = f.s.holding(ctx, func(context.Context) error {
		gone, err = f.s.faults.Disarm(id)
		return err
	})
	return gone, err
}

// Clear takes all faults away and gives what became of them.
func (f Faults) Clear(ctx context.Context) (gone []ArmedFault, err error) {
	err = f.s.holding(ctx, func(context.Context) error {
		gone = f.s.faults.Forget()
		return nil
	})
	return gone, err
}

// Unfired lists the faults that never struck and are still armed: a test
// that relies on one of them has tested nothing.
func (f Faults) Unfired() []ArmedFault { return f.s.faults.Unfired() }

// JournalFilter selects the listed entries of a journal; its zero value lists the
// first 1,000. JournalRequest is a request of the API, JournalCall a call of a
// destination, both without secrets.
type (
	JournalFilter  = journal.Filter
	JournalRequest = controlapi.RequestEntry
	JournalCall    = journal.CallEntry
)

// Journal is what a service keeps of requests and calls, as /_control/journal shows it.
type Journal struct{ s *Server }

// Journal gives the journal.
func (s *Server) Journal() Journal { return Journal{s} }

// Requests lists requests of the API, oldest first.
func (j Journal) Requests(ctx context.Context, filter JournalFilter) (list []JournalRequest, err error) {
	err = j.s.holding(ctx, func(context.Context) error {
		list, err = j.s.journal.ListRequests(filter)
		return err
	})
	return list, err
}

// Calls lists calls of destinations, oldest first.
func (j Journal) Calls(ctx context.Context, filter JournalFilter) (list []JournalCall, err error) {
	err = j.s.holding(ctx, func(ctx context.Context) error {
		list, err = j.s.journal.ListCalls(ctx, filter)
		return err
	})
	return list, err
}

// Clear forgets the entries so far.
func (j Journal) Clear(ctx context.Context) error {
	return j.s.holding(ctx, func(context.Context) error { j.s.journal.Forget(); return nil })
}

// Reset takes the service back to its first organization, as after its first start:
// runs are stopped, journals, faults and mailbox are emptied, and the clock runs on.
func (s *Server) Reset(ctx context.Context) error { return s.snapshots.Reset(ctx) }
