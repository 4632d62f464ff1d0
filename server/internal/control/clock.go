package control

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/statelock"
	"github.com/destkit/destkit/server/internal/sync/clock"
)

// Clock moves the clock of one service.
type Clock struct {
	Clock    *clock.Clock
	Lock     *statelock.Lock
	Schedule *runs.Schedule

	changes changes
}

// Routes are those of the clock.
func (k *Clock) Routes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("GET", "/clock", "shows the service's clock, and what settle and advance wait for at this moment", k.now),
		call.Route("POST", "/clock", `one of {"advance":"24h"}, {"freeze":true}, {"freeze":false}, {"set":"2026-12-01T00:00:00Z"}; advance answers when all that fell due has run, and nothing runs that could end by itself`, k.post),
		call.Route("GET", "/clock/journal", "lists the last changes of the clock newest first, with what each advance has run", func(c *call.Control) (any, error) {
			_, err := c.Query()
			return map[string]any{"changes": k.changes.all()}, err
		}),
		call.Route("POST", "/settle", "answers when nothing runs that could end by itself, and nothing is due", func(c *call.Control) (any, error) {
			if err := k.through(c.R.Context(), k.Clock.Settle); err != nil {
				return nil, err
			}
			return k.show(nil), nil
		}),
	}
}

// through waits until the state is replaced.
func (k *Clock) through(ctx context.Context, wait func(context.Context) error) error {
	err := k.Lock.Wait(ctx, wait)
	if errors.Is(err, statelock.ErrHeld) {
		return problem.Refuse(http.StatusConflict, "the state of the service was replaced while this call waited for the clock; look at the clock and call again")
	}
	return err
}

// shown is the clock as the control API shows it.
type shown struct {
	Now    time.Time     `json:"now"`
	Offset string        `json:"offset"` // to the system clock, such as 24h0m0s
	Frozen bool          `json:"frozen"`
	Ran    *clock.Report `json:"ran,omitempty"` // what an advance did
	// What settle and advance wait for, if only the clock was requested.
	Running   []string `json:"running,omitempty"`
	Advancing bool     `json:"advancing,omitempty"`
}

// mostRunning bounds the names that are shown.
const mostRunning = 100

// now is the clock with what keeps it from being quiet.
func (k *Clock) now(*call.Control) (any, error) {
	c := k.show(nil)
	running := k.Clock.Running()
	c.Running, c.Advancing = running[:min(len(running), mostRunning)], k.Clock.Advancing()
	return c, nil
}

// show is read after the change, so that a reply shows what holds now.
func (k *Clock) show(ran *clock.Report) shown {
	return shown{Now: k.Clock.Now(), Offset: k.Clock.Offset().Round(time.Millisecond).String(), Frozen: k.Clock.State().Frozen, Ran: ran}
}

// post changes one thing at a time: the order of two changes would
// matter and a JSON object does not hold it.
func (k *Clock) post(c *call.Control) (any, error) {
	var body struct {
		Advance *string `json:"advance"`
		Freeze  *bool   `json:"freeze"`
		Set     *string `json:"set"`
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
	ctx := c.R.Context()
	var ran *clock.Report
	var err error
	switch {
	case given != 1:
		return nil, problem.Refuse(http.StatusBadRequest, "the body must have exactly one of advance, freeze and set")
	case body.Freeze != nil:
		k.Freeze(ctx, *body.Freeze)
	case body.Set != nil:
		to, unread := time.Parse(time.RFC3339Nano, *body.Set)
		if unread != nil {
			return nil, problem.InvalidField("set", "must be a time such as 2026-01-31T12:00:00Z, not %q", foreign.Clip(*body.Set, 60))
		}
		err = k.Set(ctx, to)
	default:
		d, unread := time.ParseDuration(*body.Advance)
		if unread != nil {
			return nil, problem.InvalidField("advance", "must be a duration such as 24h or 90m")
		}
		if d < 0 {
			return nil, problem.InvalidField("advance", "must be 0 or more, not %s: time runs forwards only; set goes back", foreign.Clip(*body.Advance, 60))
		}
		ran, err = k.Advance(ctx, d)
	}
	if err != nil {
		return nil, err
	}
	return k.show(ran), nil
}

// Advance adds to the clock, runs in order all that falls due on the way, and returns
// what that was when nothing runs that could end by itself.
func (k *Clock) Advance(ctx context.Context, d time.Duration) (*clock.Report, error) {
	var report clock.Report
	err := k.change("advance", &report, func() error {
		return refused("advance", k.through(ctx, func(ctx context.Context) (err error) {
			report, err = k.Clock.Advance(ctx, d)
			return err
		}))
	})
	return &report, err
}

// Freeze stops the clock, or lets it run on.
func (k *Clock) Freeze(ctx context.Context, frozen bool) {
	defer k.Lock.Enter(ctx).Leave()
	name := "run"
	if frozen {
		name = "freeze"
	}
	_ = k.change(name, nil, func() error {
		k.Clock.Freeze(frozen)
		return nil
	})
}

// Set sets the clock to a moment of the years 1970 to 9999.
func (k *Clock) Set(ctx context.Context, to time.Time) error {
	hold := k.Lock.Enter(ctx)
	defer hold.Leave()
	return k.change("set", nil, func() error {
		if err := k.Clock.Set(to); err != nil {
			return refused("set", err)
		}
		// Overdue work runs; the rest falls due by the new time, also where that is
		// before the old one.
		return hold.Failure(k.Schedule.Again(hold.Ctx))
	})
}

// change makes one change, and notes it.
func (k *Clock) change(name string, ran *clock.Report, make func() error) error {
	from := k.Clock.Now()
	if err := make(); err != nil {
		return err
	}
	k.changes.add(change{Real: time.Now().UTC(), Change: name, From: from, To: k.Clock.Now(), Ran: ran})
	return nil
}

// refused distinguishes a change that cannot be met from a clock that is busy.
func refused(field string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, clock.ErrAdvancing) || errors.Is(err, clock.ErrWithin) {
		return problem.Refuse(http.StatusConflict, "%v", err)
	}
	if problem.Of(err).Code != http.StatusInternalServerError {
		return err // the caller gave up, the service stops
	}
	return problem.InvalidField(field, "%v", err)
}
