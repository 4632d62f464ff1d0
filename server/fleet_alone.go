package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/destkit/destkit/server/internal/cluster/lease"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/clock"
)

// worldLease is the right to change what all processes have in common at one
// moment: the clock, the whole world. Who starts waits for its end.
const worldLease = "world"

// exclusive is the time for which this process has the installation for itself.
type exclusive struct {
	t    *lease.Held
	stop context.CancelFunc
	held int // by how many calls
}

// alone makes sure that no other process works on the installation until release.
// With others it is refused: they would go on with another world, or another time.
func (s *Server) alone(ctx context.Context) (release func(), err error) {
	f := s.fleet
	if f == nil {
		return func() {}, nil
	}
	if err := f.claim(ctx); err != nil {
		return nil, err
	}
	others, err := f.others(ctx)
	switch {
	case err != nil:
	case len(others) > 0:
		err = problem.Refuse(http.StatusConflict, "this is possible while a single process works on the installation; there are also %s: stop them first", listed(others))
	default:
		f.company.Store(0)
		err = s.engine.ExpectActive(ctx)
	}
	if err != nil {
		f.unclaim()
		return nil, err
	}
	return f.unclaim, nil
}

// listed names processes for people.
func listed(processes []lease.Process) string {
	names := make([]string, len(processes))
	for i, p := range processes {
		names[i] = fmt.Sprintf("%s (%s", p.ID, p.Role)
		if p.Address != "" {
			names[i] += ", " + p.Address
		}
		names[i] += ")"
	}
	return strings.Join(names, ", ")
}

// claim takes the right, or shares that of another call of this process.
func (f *fleet) claim(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.exclusive != nil {
		f.exclusive.held++
		return nil
	}
	t, err := f.leases.Hold(ctx, worldLease, f.pulse.world)
	if errors.Is(err, lease.ErrHeld) {
		return problem.Refuse(http.StatusConflict, "another process has the installation for itself at the moment")
	}
	if err != nil {
		return err
	}
	keeping, stop := context.WithCancel(f.ctx)
	f.exclusive = &exclusive{t: t, stop: stop, held: 1}
	f.work.Go(func() { t.Keep(keeping, f.pulse.runKeep, f.s.log) })
	return nil
}

func (f *fleet) unclaim() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.exclusive.held--; f.exclusive.held == 0 {
		f.exclusive.stop()
		f.give(f.exclusive.t)
		f.exclusive = nil
	}
}

// clockSetting holds how the clock of the installation stands to that of the system.
const clockSetting = "clock"

// keepClock stores a change of the clock for the processes to come.
func (f *fleet) keepClock(ctx context.Context) error {
	if f == nil {
		return nil
	}
	state, err := json.Marshal(f.s.clock.State())
	if err != nil {
		return err
	}
	return f.s.store.Update(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		if err := tx.SetSetting(clockSetting, string(state)); err != nil {
			return err
		}
		return tx.Notify(topicClock, f.id)
	})
}

// adoptClock puts the clock to where that of the installation stands.
func (f *fleet) adoptClock(ctx context.Context) error {
	var state clock.State
	err := f.s.store.View(ctx, func(tx *store.Tx) error {
		text, err := tx.Setting(clockSetting)
		if err != nil {
			return err
		}
		return json.Unmarshal([]byte(text), &state)
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the clock of the installation: %w", err)
	}
	if state == f.s.clock.State() {
		return nil
	}
	return f.s.clock.Restore(state)
}

// hearClock follows a change that another process has made.
func (f *fleet) hearClock() {
	f.mu.Lock()
	own := f.exclusive != nil
	f.mu.Unlock()
	if own {
		return // this one moves it
	}
	if err := f.adoptClock(f.ctx); err != nil && f.ctx.Err() == nil {
		f.s.log.Warn("the clock of the installation cannot be followed", "error", err)
	}
	f.s.schedule.Look()
}

// settle waits for the whole installation.
func (f *fleet) settle(ctx context.Context) error {
	for {
		others, err := f.others(ctx)
		if err == nil && len(others) == 0 {
			f.company.Store(0)
			err = f.s.engine.ExpectActive(ctx)
		}
		if err == nil {
			err = f.s.clock.Settle(ctx)
		}
		if err != nil {
			return err
		}
		quiet, err := f.quiet(ctx, len(others) == 0)
		if err != nil || quiet {
			return err
		}
		if err := pause(ctx, f.pulse.worldTry); err != nil {
			return fmt.Errorf("settle: runs are active: %w", err)
		}
	}
}

// quiet reports whether no run is active and nothing is left to be sent. Alone the
// clock knows: a run that sleeps until later is quiet.
func (f *fleet) quiet(ctx context.Context, alone bool) (quiet bool, err error) {
	if alone && f.s.config.Workers > 0 && f.s.leads() {
		return true, nil
	}
	err = f.s.store.View(ctx, func(tx *store.Tx) error {
		active, err := tx.EveryActiveRun()
		if err != nil {
			return err
		}
		untold, err := tx.UntoldRuns() // their events come a moment after their ends
		if err != nil {
			return err
		}
		quiet = len(active)+len(untold) == 0
		for _, part := range []func(*store.Tx) (bool, error){f.s.lifecycle.Quiet, f.s.mail.Quiet} {
			one, err := part(tx)
			if err != nil {
				return err
			}
			quiet = quiet && one
		}
		return nil
	})
	return quiet, err
}
