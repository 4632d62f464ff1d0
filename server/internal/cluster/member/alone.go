package member

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

// Alone makes sure that no other process works on the installation until release.
// With others it is refused: they would go on with another world, or another time.
func (m *Member) Alone(ctx context.Context) (release func(), err error) {
	if !m.Shares() {
		return func() {}, nil
	}
	if err := m.claim(ctx); err != nil {
		return nil, err
	}
	others, err := m.others(ctx)
	switch {
	case err != nil:
	case len(others) > 0:
		err = problem.Refuse(http.StatusConflict, "this is possible while a single process works on the installation; there are also %s: stop them first", listed(others))
	default:
		m.company.Store(0)
		err = m.Engine.ExpectActive(ctx)
	}
	if err != nil {
		m.unclaim()
		return nil, err
	}
	return m.unclaim, nil
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
func (m *Member) claim(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.exclusive != nil {
		m.exclusive.held++
		return nil
	}
	t, err := m.leases.Hold(ctx, worldLease, m.pulse.World)
	if errors.Is(err, lease.ErrHeld) {
		return problem.Refuse(http.StatusConflict, "another process has the installation for itself at the moment")
	}
	if err != nil {
		return err
	}
	keeping, stop := context.WithCancel(m.ctx)
	m.exclusive = &exclusive{t: t, stop: stop, held: 1}
	m.work.Go(func() { t.Keep(keeping, m.pulse.RunKeep, m.Log) })
	return nil
}

func (m *Member) unclaim() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.exclusive.held--; m.exclusive.held == 0 {
		m.exclusive.stop()
		m.give(m.exclusive.t)
		m.exclusive = nil
	}
}

// clockSetting holds how the clock of the installation stands to that of the system.
const clockSetting = "clock"

// KeepClock stores a change of the clock for the processes to come.
func (m *Member) KeepClock(ctx context.Context) error {
	if !m.Shares() {
		return nil
	}
	state, err := json.Marshal(m.Clock.State())
	if err != nil {
		return err
	}
	return m.Shared.Store.Update(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		if err := tx.SetSetting(clockSetting, string(state)); err != nil {
			return err
		}
		return tx.Notify(TopicClock, m.About.ID)
	})
}

// AdoptClock puts the clock to where that of the installation stands.
func (m *Member) AdoptClock(ctx context.Context) error {
	var state clock.State
	err := m.Shared.Store.View(ctx, func(tx *store.Tx) error {
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
	if state == m.Clock.State() {
		return nil
	}
	return m.Clock.Restore(state)
}

// hearClock follows a change that another process has made.
func (m *Member) hearClock() {
	m.mu.Lock()
	own := m.exclusive != nil
	m.mu.Unlock()
	if own {
		return // this one moves it
	}
	if err := m.AdoptClock(m.ctx); err != nil && m.ctx.Err() == nil {
		m.Log.Warn("the clock of the installation cannot be followed", "error", err)
	}
	m.Schedule.Look()
}

// Settle waits until nothing runs here that could end by itself, and beside other processes
// until no run is active in any of them, and nothing that is due is left to be sent.
func (m *Member) Settle(ctx context.Context) error {
	if !m.Shares() {
		return m.Clock.Settle(ctx)
	}
	for {
		others, err := m.others(ctx)
		if err == nil && len(others) == 0 {
			m.company.Store(0)
			err = m.Engine.ExpectActive(ctx)
		}
		if err == nil {
			err = m.Clock.Settle(ctx)
		}
		if err != nil {
			return err
		}
		quiet, err := m.quiet(ctx, len(others) == 0)
		if err != nil || quiet {
			return err
		}
		if err := pause(ctx, m.pulse.WorldTry); err != nil {
			return fmt.Errorf("settle: runs are active: %w", err)
		}
	}
}

// quiet reports whether no run is active and nothing is left to be sent. Alone the
// clock knows: a run that sleeps until later is quiet.
func (m *Member) quiet(ctx context.Context, alone bool) (quiet bool, err error) {
	if alone && m.About.Workers > 0 && m.Leads() {
		return true, nil
	}
	err = m.Shared.Store.View(ctx, func(tx *store.Tx) error {
		active, err := tx.EveryActiveRun()
		if err != nil {
			return err
		}
		untold, err := tx.UntoldRuns() // their events come a moment after their ends
		if err != nil {
			return err
		}
		quiet = len(active)+len(untold) == 0
		for _, part := range []func(*store.Tx) (bool, error){m.Lifecycle.Quiet, m.Mail.Quiet} {
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
