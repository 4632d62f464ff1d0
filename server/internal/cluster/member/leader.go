package member

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/server/internal/cluster"
	"github.com/destkit/destkit/server/internal/cluster/lease"
	"github.com/destkit/destkit/server/internal/store"
)

// leaderLease is the right to do what falls due: schedules, retries, live syncs,
// what is to be sent, retention, runs that were left.
const leaderLease = "leader"

// vacancy bounds for how long without a leader schedules are made up for. After a
// longer time the whole installation stood still, as a process alone does between
// its end and its next start.
const vacancy = 2 * time.Minute

// leadership is the time for which this process leads. It ends by its lease: what
// a leader without it still does is refused (outbox), or is done once whoever does
// it (schedules, retries, alerts).
type leadership struct {
	m     *Member
	t     *lease.Held
	begun atomic.Bool // all that falls due is known
	since time.Time   // from when on schedules may not have been looked after, on the service's clock

	mu     sync.Mutex
	told   map[notice]bool
	signal chan struct{}
	lost   map[int64]bool // runs that no process worked on at the last look
	stop   context.CancelFunc
}

// notice is what was told and is still to be done.
type notice struct{ topic, text string }

// Leads reports whether this process does what falls due.
func (m *Member) Leads() bool {
	if !m.Shares() {
		return true
	}
	r := m.leadership.Load()
	return r != nil && r.t.Valid()
}

// Led waits until this process leads and knows what falls due. A machine that stood still
// has lost its leader without an end of any process, and a clock that is advanced
// meanwhile would pass by what has no timer. It waits for no longer than a new leader
// may take.
func (m *Member) Led(ctx context.Context) error {
	if !m.Shares() {
		return nil
	}
	for began := time.Now(); time.Since(began) < 2*m.pulse.World && !m.dead.Load() && !m.drained.Load(); {
		if r := m.leadership.Load(); r != nil && r.t.Valid() && r.begun.Load() {
			return nil
		}
		if err := pause(ctx, m.pulse.WorldTry); err != nil {
			return fmt.Errorf("wait for what falls due: %w", err)
		}
	}
	return nil
}

// Leading fails with lease.ErrLost when another process leads.
func (m *Member) Leading(ctx context.Context, tx *store.Tx) error {
	if !m.Shares() {
		return nil
	}
	if r := m.leadership.Load(); r != nil {
		return lease.Holds(ctx, tx.PostgreSQL(), r.t.Lease)
	}
	return lease.ErrLost
}

// elect makes this process the leader if there is none; nil when there is one.
func (m *Member) elect(ctx context.Context) (*leadership, error) {
	// Before the lease is taken: its end is that of the leader before.
	var seconds float64
	err := m.Shared.Store.Pool().QueryRow(ctx, `SELECT coalesce((SELECT extract(epoch FROM clock_timestamp() - until) FROM leases
		WHERE name = $1 AND isfinite(until)), 1e9)::float8`, leaderLease).Scan(&seconds)
	if err != nil {
		return nil, err
	}
	t, err := m.leases.Hold(ctx, leaderLease, m.pulse.Lead)
	if errors.Is(err, lease.ErrHeld) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &leadership{m: m, t: t, told: map[notice]bool{}, signal: make(chan struct{}, 1), since: m.Clock.Now()}
	if gap := time.Duration(seconds*float64(time.Second)) + m.pulse.Lead; gap < vacancy {
		r.since = r.since.Add(-gap)
	}
	keeping, stop := context.WithCancel(m.ctx)
	r.stop = stop
	m.work.Go(func() { t.Keep(keeping, m.pulse.LeadKeep, m.Log) })
	m.leadership.Store(r)
	m.Log.Info("this process leads", "fence", t.Fence)
	if err := r.begin(m.ctx); err != nil && m.ctx.Err() == nil {
		m.Log.Error("not all that falls due is known yet", "error", err)
	}
	return r, nil
}

// campaign leads whenever no other process does, until the end.
func (m *Member) campaign(r *leadership) {
	for {
		if r != nil {
			r.hold(m.ctx)
		}
		if pause(m.ctx, m.pulse.LeadKeep) != nil {
			return
		}
		r = nil
		if m.drained.Load() || m.dead.Load() {
			continue
		}
		ctx, cancel := context.WithTimeout(m.ctx, m.pulse.Run)
		var err error
		r, err = m.elect(ctx)
		cancel()
		if m.ctx.Err() == nil {
			m.warn(&m.leaderless, "it cannot be found out who leads", err)
		}
	}
}

// begin takes up all that falls due, as a process does at its start.
func (r *leadership) begin(ctx context.Context) error {
	m := r.m
	r.m.forgetTimers()
	err := errors.Join(m.Schedule.Since(ctx, r.since), m.Retention.Look(ctx))
	m.Lifecycle.Resume(ctx)
	m.Mail.Resume(ctx)
	r.begun.Store(err == nil)
	return err
}

// forgetTimers drops all that waits to fall due. Work that has begun goes on.
func (m *Member) forgetTimers() {
	m.Schedule.Forget()
	m.Retention.Forget()
	m.Lifecycle.ForgetOpen()
	m.Mail.Forget()
}

// hold leads until the lease is over: lost, given back, or not kept in time.
func (r *leadership) hold(ctx context.Context) {
	m := r.m
	defer r.stop()
	look, read := time.NewTicker(m.pulse.Look), time.NewTicker(m.pulse.Read)
	defer look.Stop()
	defer read.Stop()
	for ctx.Err() == nil && r.t.Valid() && m.leadership.Load() == r && !m.dead.Load() {
		var err error
		select {
		case <-ctx.Done():
		case <-r.t.Lost():
		case <-r.signal:
			err = r.follow(ctx)
		case <-look.C:
			if !r.begun.Load() { // else what fell due before it led would be forgotten
				err = r.begin(ctx)
			}
			err = errors.Join(err, r.rescue(ctx))
		case <-read.C:
			err = r.readAll(ctx)
		}
		if err != nil && ctx.Err() == nil {
			m.Log.Warn("the leader cannot do its work at the moment", "error", err)
		}
	}
	if m.dead.Load() {
		return
	}
	mine := m.leadership.CompareAndSwap(r, nil)
	m.forgetTimers() // given back in the middle of a look, that look may have set some
	if mine {
		m.Log.Info("this process leads no more", "fence", r.t.Fence)
		m.give(r.t) // it may only have been late
	}
}

// Abdicate lets another process lead at once.
func (m *Member) Abdicate() {
	if r := m.leadership.Swap(nil); r != nil {
		m.forgetTimers()
		m.give(r.t)
	}
}

// hear notes what was told; "" in the place of an id is everything.
func (r *leadership) hear(topic, text string) {
	r.mu.Lock()
	r.told[notice{topic, text}] = true
	r.mu.Unlock()
	select {
	case r.signal <- struct{}{}:
	default:
	}
}

// follow does what was told.
func (r *leadership) follow(ctx context.Context) error {
	r.mu.Lock()
	told := r.told
	r.told = map[notice]bool{}
	r.mu.Unlock()
	var failures []error
	all := false
	for n := range told {
		id, err := strconv.ParseInt(n.text, 10, 64)
		switch {
		case n.topic == cluster.TopicLook && n.text != "":
			r.look(ctx, n.text)
		case err != nil:
			all = true
		default:
			failures = append(failures, r.followSync(ctx, n.topic, id))
		}
	}
	if all {
		failures = append(failures, r.readAll(ctx))
	}
	return errors.Join(failures...)
}

// look makes an outbox look for what is new.
func (r *leadership) look(ctx context.Context, name string) {
	r.m.Lifecycle.Look(ctx, name)
	r.m.Mail.Look(ctx, name)
}

// followSync does what was told of one sync.
func (r *leadership) followSync(ctx context.Context, topic string, id int64) error {
	m := r.m
	var y *store.Sync
	err := m.Shared.Store.View(ctx, func(tx *store.Tx) error {
		some, err := tx.EverySync(id-1, 1)
		if err != nil || len(some) == 0 || some[0].ID != id {
			return err
		}
		y = some[0]
		return m.Retries.Resume(tx, y)
	})
	switch {
	case err != nil:
		return err
	case y == nil:
		m.Schedule.Drop(id)
		m.Retries.Drop(id)
	case topic == cluster.TopicLive:
		m.Live.Later(y)
	case topic == cluster.TopicSync:
		m.Schedule.Changed(y)
	}
	return nil
}

// readAll finds what was not told.
func (r *leadership) readAll(ctx context.Context) error {
	m := r.m
	err := m.Schedule.ChangedAll(ctx)
	m.Lifecycle.Resume(ctx)
	m.Mail.Resume(ctx)
	return err
}
