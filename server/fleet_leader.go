package server

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
	f     *fleet
	t     *lease.Held
	begun atomic.Bool // all that falls due is known
	since time.Time   // from when on schedules may not have been looked after, on the service's clock

	mu     sync.Mutex
	told   map[notice]bool
	signal chan struct{}
	lost   map[int64]bool // runs that nobody worked on at the last look
	stop   context.CancelFunc
}

// notice is what was told and is still to be done.
type notice struct{ topic, text string }

// leader is how parts of the service ask for the leader.
type leader struct{ s *Server }

func (l leader) Leads() bool { return l.s.leads() }

func (l leader) Tell(tx *store.Tx, topic, text string) error { return l.s.tellLeader(tx, topic, text) }

func (l leader) Leading(ctx context.Context, tx *store.Tx) error { return l.s.fleet.leading(ctx, tx) }

// leads reports whether this process does what falls due.
func (s *Server) leads() bool {
	f := s.fleet
	if f == nil {
		return true
	}
	r := f.leadership.Load()
	return r != nil && r.t.Valid()
}

// led waits until this process leads and knows what falls due. A machine that stood still
// has lost its leader without an end of any process, and a clock that is advanced
// meanwhile would pass by what has no timer. It waits for no longer than a new leader
// may take.
func (f *fleet) led(ctx context.Context) error {
	if f == nil {
		return nil
	}
	for began := time.Now(); time.Since(began) < 2*f.pulse.world && !f.dead.Load() && !f.drained.Load(); {
		if r := f.leadership.Load(); r != nil && r.t.Valid() && r.begun.Load() {
			return nil
		}
		if err := pause(ctx, f.pulse.worldTry); err != nil {
			return fmt.Errorf("wait for what falls due: %w", err)
		}
	}
	return nil
}

// leading fails with lease.ErrLost when another process leads.
func (f *fleet) leading(ctx context.Context, tx *store.Tx) error {
	if f == nil {
		return nil
	}
	if r := f.leadership.Load(); r != nil {
		return lease.Holds(ctx, tx.PostgreSQL(), r.t.Lease)
	}
	return lease.ErrLost
}

// elect makes this process the leader if nobody is; nil when somebody is.
func (f *fleet) elect(ctx context.Context) (*leadership, error) {
	// Before the lease is taken: its end is that of the leader before.
	var seconds float64
	err := f.s.store.Pool().QueryRow(ctx, `SELECT coalesce((SELECT extract(epoch FROM clock_timestamp() - until) FROM leases
		WHERE name = $1 AND isfinite(until)), 1e9)::float8`, leaderLease).Scan(&seconds)
	if err != nil {
		return nil, err
	}
	t, err := f.leases.Hold(ctx, leaderLease, f.pulse.lead)
	if errors.Is(err, lease.ErrHeld) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &leadership{f: f, t: t, told: map[notice]bool{}, signal: make(chan struct{}, 1), since: f.s.clock.Now()}
	if gap := time.Duration(seconds*float64(time.Second)) + f.pulse.lead; gap < vacancy {
		r.since = r.since.Add(-gap)
	}
	keeping, stop := context.WithCancel(f.ctx)
	r.stop = stop
	f.work.Go(func() { t.Keep(keeping, f.pulse.leadKeep, f.s.log) })
	f.leadership.Store(r)
	f.s.log.Info("this process leads", "fence", t.Fence)
	if err := r.begin(f.ctx); err != nil && f.ctx.Err() == nil {
		f.s.log.Error("not all that falls due is known yet", "error", err)
	}
	return r, nil
}

// campaign leads whenever nobody else does, until the end.
func (f *fleet) campaign(r *leadership) {
	for {
		if r != nil {
			r.hold(f.ctx)
		}
		if pause(f.ctx, f.pulse.leadKeep) != nil {
			return
		}
		r = nil
		if f.drained.Load() || f.dead.Load() {
			continue
		}
		ctx, cancel := context.WithTimeout(f.ctx, f.pulse.run)
		var err error
		r, err = f.elect(ctx)
		cancel()
		if f.ctx.Err() == nil {
			f.warn(&f.leaderless, "it cannot be found out who leads", err)
		}
	}
}

// begin takes up all that falls due, as a process does at its start.
func (r *leadership) begin(ctx context.Context) error {
	s := r.f.s
	r.f.forgetTimers()
	err := errors.Join(s.schedule.Since(ctx, r.since), s.retention.Look(ctx))
	s.lifecycle.Resume(ctx)
	s.mail.Resume(ctx)
	r.begun.Store(err == nil)
	return err
}

// forgetTimers drops all that waits to fall due. Work that has begun goes on.
func (f *fleet) forgetTimers() {
	f.s.schedule.Forget()
	f.s.retention.Forget()
	f.s.lifecycle.ForgetOpen()
	f.s.mail.Forget()
}

// hold leads until the lease is over: lost, given back, or not kept in time.
func (r *leadership) hold(ctx context.Context) {
	f := r.f
	defer r.stop()
	look, read := time.NewTicker(f.pulse.look), time.NewTicker(f.pulse.read)
	defer look.Stop()
	defer read.Stop()
	for ctx.Err() == nil && r.t.Valid() && f.leadership.Load() == r && !f.dead.Load() {
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
			f.s.log.Warn("the leader cannot do its work at the moment", "error", err)
		}
	}
	if f.dead.Load() {
		return
	}
	mine := f.leadership.CompareAndSwap(r, nil)
	f.forgetTimers() // given back in the middle of a look, that look may have set some
	if mine {
		f.s.log.Info("this process leads no more", "fence", r.t.Fence)
		f.give(r.t) // it may only have been late
	}
}

// abdicate lets another process lead at once.
func (f *fleet) abdicate() {
	if r := f.leadership.Swap(nil); r != nil {
		f.forgetTimers()
		f.give(r.t)
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
	r.f.s.lifecycle.Look(ctx, name)
	r.f.s.mail.Look(ctx, name)
}

// followSync does what was told of one sync.
func (r *leadership) followSync(ctx context.Context, topic string, id int64) error {
	s := r.f.s
	var y *store.Sync
	err := s.store.View(ctx, func(tx *store.Tx) error {
		some, err := tx.EverySync(id-1, 1)
		if err != nil || len(some) == 0 || some[0].ID != id {
			return err
		}
		y = some[0]
		return s.retries.Resume(tx, y)
	})
	switch {
	case err != nil:
		return err
	case y == nil:
		s.schedule.Drop(id)
		s.retries.Drop(id)
	case topic == cluster.TopicLive:
		s.live.Later(y)
	case topic == cluster.TopicSync:
		s.schedule.Changed(y)
	}
	return nil
}

// readAll finds what nobody has told.
func (r *leadership) readAll(ctx context.Context) error {
	s := r.f.s
	err := s.schedule.ChangedAll(ctx)
	s.lifecycle.Resume(ctx)
	s.mail.Resume(ctx)
	return err
}
