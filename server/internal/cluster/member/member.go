// Package member owns this process as one of several on one PostgreSQL: it is on the list of
// processes, hears what the others tell, takes runs off the queue, and leads when no other one
// does. Without others it is alone, and everything here says so at once.
//
// Who may do what is decided by leases with fences (cluster/lease) alone: each write that
// counts asks for its lease in its own transaction. What a process believes of itself only
// spares it futile work.
package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/server/internal/background"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/cluster/jobs"
	"github.com/destkit/destkit/server/internal/cluster/lease"
	"github.com/destkit/destkit/server/internal/cluster/quota"
	"github.com/destkit/destkit/server/internal/lifecycle"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/ledger"
	"github.com/destkit/destkit/server/internal/sync/pace"
)

// Pulse is how often what is done, in real time. The time that a lease lasts is the
// database's; a lease is kept three times in it.
type Pulse struct {
	Beat            time.Duration // the list of processes
	Lead, LeadKeep  time.Duration // the leader's lease
	Run, RunKeep    time.Duration // the lease of a run
	Look            time.Duration // for runs that no process works on
	Read            time.Duration // everything once more, as notices may be lost
	World, WorldTry time.Duration // the right to be alone
}

// UsualPulse is that of a service; tests have quicker ones.
var UsualPulse = Pulse{
	Beat: 2 * time.Second, Lead: 6 * time.Second, LeadKeep: 2 * time.Second, Run: 10 * time.Second, RunKeep: 3 * time.Second,
	Look: time.Second, Read: 30 * time.Second, World: 15 * time.Second, WorldTry: 100 * time.Millisecond,
}

// Parts are what a member needs of its service.
type Parts struct {
	Shared    *call.Shared
	Log       *slog.Logger
	Clock     *clock.Clock
	Work      *background.Work
	Engine    *runs.Engine
	Schedule  *runs.Schedule
	Live      *runs.Live
	Retries   *runs.Retries
	Retention *runs.Retention
	Lifecycle *lifecycle.Lifecycle
	Mail      *lifecycle.Mailer
	Ledger    func() *ledger.Ledger
	About     About
	Pulse     *Pulse // nil: the usual one
}

// About is what the others see of this process.
type About struct {
	ID, Role, Version, Address string
	Workers                    int // runs at once
	Began                      time.Time
}

// Member is one process. The zero value is one that is alone, before anything else was made.
type Member struct {
	Parts
	pulse  Pulse
	leases *lease.Leases // nil where the store is not shared
	queue  *jobs.Queue
	limits *quota.Limits

	ctx        context.Context // of everything below; ends after the runs were handed back
	stop       context.CancelFunc
	work       sync.WaitGroup
	dead       atomic.Bool   // tests: this process was killed, and does nothing any more
	buried     chan struct{} // tests: closed when its goroutines may go
	company    atomic.Int64  // other processes that are alive, a moment ago
	bus        atomic.Bool   // what others tell is heard
	started    atomic.Bool   // runs are taken off the queue
	drained    atomic.Bool   // … and no more
	leadership atomic.Pointer[leadership]
	notices    notices

	unlisted, leaderless bool // what fails, each for the goroutine that does it

	mu        sync.Mutex
	turns     map[int64]chan struct{} // syncs that a run of this process has
	exclusive *exclusive

	lost, takeovers, handed atomic.Int64 // for the figures
}

// Assemble gives it the parts that were made after it. It hears from now on what the
// others tell.
func (m *Member) Assemble(p Parts) {
	m.Parts = p
	m.hear()
}

// Shares reports whether other processes may share the installation with this one.
func (m *Member) Shares() bool { return m.leases != nil }

// Company is how many other processes are alive, a moment ago.
func (m *Member) Company() int64 { return m.company.Load() }

// Join makes this process one of those on the store, where several may be. restored says
// that its clock is that of a snapshot, which holds for the processes to come.
func (m *Member) Join(ctx context.Context, restored bool) error {
	if !m.Shared.Store.Shared() {
		return nil
	}
	m.pulse = UsualPulse
	if m.Pulse != nil {
		m.pulse = *m.Pulse
	}
	m.limits = quota.New(m.Shared.Store.Pool(), m.Log)
	m.turns, m.buried = map[int64]chan struct{}{}, make(chan struct{})
	m.ctx, m.stop = context.WithCancel(context.Background())
	m.leases = lease.New(m.Shared.Store.Pool(), m.About.ID)
	m.Engine.Share(m)
	m.Clock.BeforeStep(m.Led)
	if err := m.enter(ctx); err != nil {
		return err
	}
	if err := m.meet(ctx); err != nil {
		return err
	}
	if restored {
		return m.KeepClock(ctx)
	}
	return m.AdoptClock(ctx)
}

// Limiter makes the limit of a connection, which is that of all processes together
// (spec 8: whoever runs).
func (m *Member) Limiter(connection int64) *pace.Limiter {
	if !m.Shares() {
		return pace.NewLimiter()
	}
	return pace.NewSharedLimiter(pace.ShareOptions{Source: m.limits.Connection(connection), Now: m.Clock.Now, Runs: m.Clock.Runs})
}

// enter puts the process on the list, and waits until no process is alone: who then
// looks at the list sees it.
func (m *Member) enter(ctx context.Context) error {
	if err := m.leases.Enter(ctx, lease.Process{Role: m.About.Role, Version: m.About.Version, Address: m.About.Address}); err != nil {
		return err
	}
	for {
		held, err := m.leases.Held(ctx, worldLease)
		if err != nil || len(held) == 0 {
			return err
		}
		m.Log.Info("another process has the installation for itself; this one waits", "process", held[worldLease])
		if err := pause(ctx, m.pulse.WorldTry); err != nil {
			return fmt.Errorf("wait for process %s: %w", held[worldLease], err)
		}
	}
}

// Begin takes up everything: the queue, the leadership if no other process has it.
func (m *Member) Begin(ctx context.Context) (err error) {
	m.queue, err = jobs.Open(ctx, jobs.Options{
		Pool: m.Shared.Store.Pool(), Schema: m.Shared.Store.Schema(), Process: m.About.ID, Workers: m.About.Workers, Work: m.Carry, Log: m.Log,
	})
	if err != nil {
		return err
	}
	m.each(m.pulse.Beat, m.Beat)
	if err := m.Engine.ExpectActive(ctx); err != nil {
		return err
	}
	// At once, so that a process alone serves as soon as it has started.
	first, err := m.elect(ctx)
	if err != nil {
		return err
	}
	m.work.Go(func() { m.campaign(first) })
	if err := m.queue.Start(ctx); err != nil {
		return err
	}
	m.started.Store(true)
	return nil
}

// each calls fn again and again, until the end.
func (m *Member) each(every time.Duration, fn func(ctx context.Context)) {
	m.work.Go(func() {
		for pause(m.ctx, every) == nil {
			fn(m.ctx)
		}
	})
}

// Beat says that this process is alive, and looks who else is.
func (m *Member) Beat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, m.pulse.Run)
	defer cancel()
	err := m.leases.Beat(ctx)
	if err == nil {
		err = m.meet(ctx)
	}
	if m.ctx.Err() == nil {
		m.warn(&m.unlisted, "the list of processes cannot be kept", err)
	}
}

// warn logs the first of failures that follow one another, and that they are over:
// an outage is asked about every few seconds.
func (m *Member) warn(failing *bool, what string, err error) {
	switch {
	case err != nil && !*failing:
		m.Log.Warn(what, "error", err)
	case err == nil && *failing:
		m.Log.Info("this is over: " + what)
	}
	*failing = err != nil
}

// meet counts the others.
func (m *Member) meet(ctx context.Context) error {
	others, err := m.others(ctx)
	if err != nil {
		return err
	}
	m.company.Store(int64(len(others)))
	if len(others) > 0 {
		m.Engine.ExpectNothing() // what is queued may run anywhere
	}
	return nil
}

// others are the other processes that are alive.
func (m *Member) others(ctx context.Context) (others []lease.Process, err error) {
	all, err := m.leases.Processes(ctx)
	for _, p := range all {
		if p.Alive && p.ID != m.About.ID {
			others = append(others, p)
		}
	}
	return others, err
}

// Ready tells why this process should get no calls, nil when it should: what others tell is
// heard, runs are taken off the queue, and Drain was not called. One that is alone is ready.
func (m *Member) Ready() error {
	switch {
	case !m.Shares():
		return nil
	case m.drained.Load():
		return errors.New("the process is about to stop")
	case !m.started.Load():
		return errors.New("the process has not started yet")
	case !m.bus.Load() || !m.Shared.Store.Hears():
		return errors.New("what other processes tell is not heard")
	}
	return nil
}

// Drain takes no more runs, hands back those that are worked on, and lets others lead.
func (m *Member) Drain(ctx context.Context) error {
	if !m.Shares() || m.queue == nil || m.dead.Load() || m.drained.Swap(true) {
		return nil
	}
	m.Abdicate() // what falls due need not wait for runs that are slow to stop
	if err := m.queue.Stop(ctx); err != nil {
		return fmt.Errorf("hand back runs: %w", err)
	}
	return nil
}

// Close ends what Drain has left, and takes the process off the list.
func (m *Member) Close() error {
	if !m.Shares() {
		return nil
	}
	err := m.Drain(context.Background())
	m.stop()
	m.work.Wait()
	if m.dead.Load() {
		close(m.buried)
		return m.queue.Stop(context.Background())
	}
	// A process stops without its database, too.
	ctx, cancel := context.WithTimeout(context.Background(), m.pulse.Lead)
	defer cancel()
	if err := m.leases.Leave(ctx); err != nil {
		m.Log.Warn("the process stays on the list until it counts as dead", "error", err)
	}
	return err
}

// CloseLimits ends what keeps the limits of connections, when no call is made any more.
func (m *Member) CloseLimits() {
	if m.Shares() {
		m.limits.Close()
	}
}

// Kill is for tests: the process ends where it stands, as it does without power. It hands
// nothing back and says nothing. end stops what it works on.
func (m *Member) Kill(end func()) {
	m.dead.Store(true)
	m.stop()
	end()
	m.work.Wait()
}

// Leases are those of this process, for tests.
func (m *Member) Leases() *lease.Leases { return m.leases }

// Takeovers is how many runs this process, as the leader, let go on.
func (m *Member) Takeovers() int64 { return m.takeovers.Load() }

// Fence is that under which this process leads; 0 while it does not.
func (m *Member) Fence() int64 {
	if r := m.leadership.Load(); r != nil {
		return r.t.Fence
	}
	return 0
}

// give ends a lease.
func (m *Member) give(t *lease.Held) {
	if m.dead.Load() {
		return
	}
	if err := t.Give(); err != nil {
		m.Log.Warn("a lease cannot be given back, and has to run out", "lease", t.Name, "error", err)
	}
}

// pause waits in real time.
func pause(ctx context.Context, d time.Duration) error { return clock.Sleep(ctx, d) }
