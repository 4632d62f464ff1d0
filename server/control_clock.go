package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/sync/clock"
)

// clockRoutes are the routes of the virtual clock.
func (s *Server) clockRoutes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("GET", "/clock", "shows the service's clock", func(*call.Control) (any, error) { return s.shownClock(nil), nil }),
		call.Route("POST", "/clock", `one of {"advance":"24h"}, {"freeze":true}, {"freeze":false}, {"set":"2026-12-01T00:00:00Z"}; advance answers when all that fell due has run, and nothing runs that could end by itself`, s.controlClock),
		call.Route("GET", "/clock/journal", "lists the last changes of the clock in this process, newest first, with what each advance has run", func(c *call.Control) (any, error) {
			_, err := c.Query()
			return map[string]any{"changes": s.clockChanges.all()}, err
		}),
		call.Route("POST", "/settle", "answers when nothing runs that could end by itself, and nothing is due", func(c *call.Control) (any, error) {
			if err := s.settled(c.R.Context()); err != nil {
				return nil, err
			}
			return s.shownClock(nil), nil
		}),
	}
}

// settled waits until all is quiet, for a call that holds the world: it lets go
// of it meanwhile.
func (s *Server) settled(ctx context.Context) error {
	return s.latch.Aside(ctx, func(ctx context.Context) error { return s.latch.Passages.Through(ctx, s.Settle) })
}

// lulled waits in the same way until nothing runs at this moment. Runs that wait for
// another attempt are ended by who asks.
func (s *Server) lulled(ctx context.Context) error {
	return s.latch.Aside(ctx, func(ctx context.Context) error { return s.latch.Passages.Through(ctx, s.clock.Lull) })
}

// clockShown is the clock as the control API shows it.
type clockShown struct {
	Now    time.Time     `json:"now"`
	Offset string        `json:"offset"` // to the system clock, such as 24h0m0s
	Frozen bool          `json:"frozen"`
	Ran    *clock.Report `json:"ran,omitempty"` // what an advance did
}

// shownClock is read after the change, so that a reply shows what holds now.
func (s *Server) shownClock(ran *clock.Report) clockShown {
	return clockShown{Now: s.clock.Now(), Offset: s.clock.Offset().Round(time.Millisecond).String(), Frozen: s.clock.State().Frozen, Ran: ran}
}

// controlClock changes one thing at a time: the order of two changes would
// matter and could not be told from a JSON object.
func (s *Server) controlClock(c *call.Control) (any, error) {
	var body struct {
		Advance *string   `json:"advance"`
		Freeze  *bool     `json:"freeze"`
		Set     *api.Time `json:"set"`
	}
	if err := c.Body(&body); err != nil {
		return nil, err
	}
	given := 0
	for _, is := range []bool{body.Advance != nil, body.Freeze != nil, body.Set != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, problem.Refuse(http.StatusBadRequest, "the body must have exactly one of advance, freeze and set")
	}
	release, err := s.alone(c.R.Context())
	if err != nil {
		return nil, err
	}
	defer release()
	from := s.clock.Now()
	shown, err := s.changeClock(c, body.Advance, body.Freeze, body.Set)
	if err == nil {
		s.clockChanges.add(clockChange{Real: time.Now().UTC(), Change: changeName(body.Freeze, body.Set), From: from, To: s.clock.Now(), Ran: ranBy(shown)})
	}
	return shown, errors.Join(err, s.fleet.keepClock(c.R.Context()))
}

// changeClock makes the one change that is given.
func (s *Server) changeClock(c *call.Control, advance *string, freeze *bool, set *api.Time) (any, error) {
	switch {
	case freeze != nil:
		s.clock.Freeze(*freeze)
	case set != nil:
		if err := s.fleet.led(c.R.Context()); err != nil {
			return nil, err
		}
		if err := s.clock.Set(set.Time); err != nil {
			return nil, clockRefused("set", err)
		}
		// What was overdue runs; the rest falls due by the new time, also where that
		// lies before the old one.
		if err := s.schedule.Again(c.R.Context()); err != nil {
			return nil, err
		}
	default:
		d, err := time.ParseDuration(*advance)
		if err != nil {
			return nil, problem.InvalidField("advance", "must be a duration such as 24h or 90m")
		}
		var report clock.Report
		err = s.latch.Aside(c.R.Context(), func(ctx context.Context) error {
			return s.latch.Passages.Through(ctx, func(ctx context.Context) (err error) {
				report, err = s.clock.Advance(ctx, d)
				return err
			})
		})
		if err != nil {
			return nil, clockRefused("advance", err)
		}
		return s.shownClock(&report), nil
	}
	return s.shownClock(nil), nil
}

// clockRefused tells a wish that cannot be met from a clock that is busy.
func clockRefused(field string, err error) error {
	if errors.Is(err, clock.ErrAdvancing) || errors.Is(err, clock.ErrWithin) {
		return problem.Refuse(http.StatusConflict, "%v", err)
	}
	if problem.Of(err).Code != http.StatusInternalServerError {
		return err // the caller gave up, the service stops
	}
	return problem.InvalidField(field, "%v", err)
}

// clockChange is one change that a caller made to the clock.
type clockChange struct {
	Real   time.Time     `json:"at"`     // by the clock of the system
	Change string        `json:"change"` // advance, freeze, run or set
	From   time.Time     `json:"from"`
	To     time.Time     `json:"to"`
	Ran    *clock.Report `json:"ran,omitempty"` // what an advance did
}

func changeName(freeze *bool, set *api.Time) string {
	switch {
	case freeze != nil && *freeze:
		return "freeze"
	case freeze != nil:
		return "run"
	case set != nil:
		return "set"
	}
	return "advance"
}

// ranBy is what an advance has run.
func ranBy(shown any) *clock.Report {
	if c, ok := shown.(clockShown); ok {
		return c.Ran
	}
	return nil
}

// mostClockChanges bounds what is kept of the changes of the clock.
const mostClockChanges = 100

// clockChanges keeps the last changes of the clock in this process.
type clockChanges struct {
	mu   sync.Mutex
	list []clockChange
}

func (k *clockChanges) add(change clockChange) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.list = append(k.list, change); len(k.list) > mostClockChanges {
		k.list = slices.Delete(k.list, 0, 1)
	}
}

// all are the changes, newest first.
func (k *clockChanges) all() []clockChange {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := append([]clockChange{}, k.list...)
	slices.Reverse(list)
	return list
}

// controlReset goes back to the first organization, as after the first start.
func (s *Server) controlReset(c *call.Control) (any, error) {
	ctx := c.R.Context()
	release, err := s.alone(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	// Work that was begun must not write into what is emptied.
	if err := s.lulled(ctx); err != nil {
		return nil, err
	}
	left, err := s.organizations.ResetAll(ctx)
	if err != nil {
		return nil, err
	}
	// What they hold is about things that are gone. So it goes, whether the caller is
	// still there or not.
	ctx = context.WithoutCancel(ctx)
	_, err = s.faults.Forget(ctx)
	if err := errors.Join(err, s.journal.Forget(ctx), s.organizations.Drop(left)); err != nil {
		return nil, err
	}
	return call.Done, nil
}
