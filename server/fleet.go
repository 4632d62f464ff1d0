package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/internal/cluster/jobs"
	"github.com/destkit/destkit/server/internal/cluster/lease"
	"github.com/destkit/destkit/server/internal/cluster/quota"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/pace"
)

// The roles of Config.Role.
const (
	RoleAll    = "all"    // serves the API and runs syncs
	RoleAPI    = "api"    // serves the API; others run syncs
	RoleWorker = "worker" // runs syncs; others serve the API
)

// DefaultWorkers is Config.Workers where it is zero.
const DefaultWorkers = 4

// pulse is how often what is done, in real time. The time that a lease lasts is the
// database's; a lease is kept three times in it.
type pulse struct {
	beat            time.Duration // the list of processes
	lead, leadKeep  time.Duration // the leader's lease
	run, runKeep    time.Duration // the lease of a run
	look            time.Duration // for runs that nobody works on
	read            time.Duration // everything once more, as notices may be lost
	world, worldTry time.Duration // the right to be alone
}

var usualPulse = pulse{
	beat: 2 * time.Second, lead: 6 * time.Second, leadKeep: 2 * time.Second, run: 10 * time.Second, runKeep: 3 * time.Second,
	look: time.Second, read: 30 * time.Second, world: 15 * time.Second, worldTry: 100 * time.Millisecond,
}

// fleet is this process as one of several on one PostgreSQL: it is on the list of
// processes, hears what the others tell, takes runs off the queue, and is their
// leader when nobody else is. nil where the store is not shared.
//
// Who may do what is decided by leases with fences (server/internal/cluster/lease) alone: each write
// that counts asks for its lease in its own transaction. What a process believes
// of itself only spares it futile work.
type fleet struct {
	s      *Server
	id     string
	pulse  pulse
	leases *lease.Leases
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

	unlisted, leaderless bool // what fails, each for the goroutine that does it

	mu        sync.Mutex
	turns     map[int64]chan struct{} // syncs that a run of this process has
	exclusive *exclusive

	lost, takeovers, handed atomic.Int64 // for the figures
}

// completeFleet checks the part of the configuration that is about several processes.
func (c *Config) completeFleet() error {
	switch c.Role = cmp.Or(c.Role, RoleAll); c.Role {
	case RoleAll, RoleAPI, RoleWorker:
	default:
		return fmt.Errorf("unknown role %q: must be one of %s, %s, %s", foreign.Clip(c.Role, 64), RoleAll, RoleAPI, RoleWorker)
	}
	if c.Role != RoleAll && c.Store == "" {
		return fmt.Errorf("the role %s needs a store that several processes share: postgres://…", c.Role)
	}
	if c.Workers < 0 {
		return fmt.Errorf("the number of workers must be above 0, not %d", c.Workers)
	}
	c.Workers = cmp.Or(c.Workers, DefaultWorkers)
	if c.Role == RoleAPI {
		c.Workers = 0
	}
	if c.Process == "" {
		// Not from Config.Random: two processes with one seed are two.
		var id [8]byte
		if _, err := rand.Read(id[:]); err != nil {
			return fmt.Errorf("name the process: %w", err)
		}
		c.Process = hex.EncodeToString(id[:])
	}
	return nil
}

// join makes this process one of those on the store, where several may be.
func (s *Server) join(ctx context.Context) error {
	if !s.store.Shared() {
		return nil
	}
	f := &fleet{
		s: s, id: s.config.Process, pulse: usualPulse, leases: lease.New(s.store.Pool(), s.config.Process),
		limits: quota.New(s.store.Pool(), s.log), turns: map[int64]chan struct{}{}, buried: make(chan struct{}),
	}
	if s.config.pulse != nil {
		f.pulse = *s.config.pulse
	}
	f.ctx, f.stop = context.WithCancel(context.Background())
	s.fleet = f
	s.engine.Share(f)
	s.clock.BeforeStep(f.led)
	if err := f.enter(ctx); err != nil {
		return err
	}
	if err := f.meet(ctx); err != nil {
		return err
	}
	if s.config.Restore != nil {
		return f.keepClock(ctx)
	}
	return f.adoptClock(ctx)
}

// limiter makes the limit of a connection, which is that of all processes together
// (spec 8: whoever runs).
func (s *Server) limiter(id int64) *pace.Limiter {
	if s.fleet == nil {
		return pace.NewLimiter()
	}
	return pace.NewSharedLimiter(pace.ShareOptions{Source: s.fleet.limits.Connection(id), Now: s.clock.Now, Runs: s.clock.Runs})
}

// enter puts the process on the list, and waits until nobody is alone: who then
// looks at the list sees it.
func (f *fleet) enter(ctx context.Context) error {
	c := f.s.config
	if err := f.leases.Enter(ctx, lease.Process{Role: c.Role, Version: c.Version, Address: c.Advertise}); err != nil {
		return err
	}
	for {
		held, err := f.leases.Held(ctx, worldLease)
		if err != nil || len(held) == 0 {
			return err
		}
		f.s.log.Info("another process has the installation for itself; this one waits", "process", held[worldLease])
		if err := pause(ctx, f.pulse.worldTry); err != nil {
			return fmt.Errorf("wait for process %s: %w", held[worldLease], err)
		}
	}
}

// begin takes up everything: the queue, the leadership if nobody has it.
func (f *fleet) begin(ctx context.Context) (err error) {
	f.queue, err = jobs.Open(ctx, jobs.Options{
		Pool: f.s.store.Pool(), Schema: f.s.store.Schema(), Process: f.id, Workers: f.s.config.Workers, Work: f.carry, Log: f.s.log,
	})
	if err != nil {
		return err
	}
	f.each(f.pulse.beat, f.beat)
	if err := f.s.engine.ExpectActive(ctx); err != nil {
		return err
	}
	// At once, so that a process alone serves as soon as it has started.
	first, err := f.elect(ctx)
	if err != nil {
		return err
	}
	f.work.Go(func() { f.campaign(first) })
	if err := f.queue.Start(ctx); err != nil {
		return err
	}
	f.started.Store(true)
	return nil
}

// each calls fn again and again, until the end.
func (f *fleet) each(every time.Duration, fn func(ctx context.Context)) {
	f.work.Go(func() {
		for pause(f.ctx, every) == nil {
			fn(f.ctx)
		}
	})
}

// beat says that this process is alive, and looks who else is.
func (f *fleet) beat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, f.pulse.run)
	defer cancel()
	err := f.leases.Beat(ctx)
	if err == nil {
		err = f.meet(ctx)
	}
	if f.ctx.Err() == nil {
		f.warn(&f.unlisted, "the list of processes cannot be kept", err)
	}
}

// warn logs the first of failures that follow one another, and that they are over:
// an outage is asked about every few seconds.
func (f *fleet) warn(failing *bool, what string, err error) {
	switch {
	case err != nil && !*failing:
		f.s.log.Warn(what, "error", err)
	case err == nil && *failing:
		f.s.log.Info("this is over: " + what)
	}
	*failing = err != nil
}

// meet counts the others.
func (f *fleet) meet(ctx context.Context) error {
	others, err := f.others(ctx)
	if err != nil {
		return err
	}
	f.company.Store(int64(len(others)))
	if len(others) > 0 {
		f.s.engine.ExpectNothing() // what is queued may run anywhere
	}
	return nil
}

// others are the other processes that are alive.
func (f *fleet) others(ctx context.Context) (others []lease.Process, err error) {
	all, err := f.leases.Processes(ctx)
	for _, p := range all {
		if p.Alive && p.ID != f.id {
			others = append(others, p)
		}
	}
	return others, err
}

// Ready tells why this process should get no calls, nil when it should: the store
// answers, the data directory takes a file, what others tell is heard, runs are taken off the queue, and Drain was
// not called. Where the store is not shared it is about the first two alone.
func (s *Server) Ready(ctx context.Context) error {
	if err := s.store.View(ctx, func(*store.Tx) error { return nil }); err != nil {
		return fmt.Errorf("the store does not answer: %w", err)
	}
	if err := s.writable(); err != nil {
		return err
	}
	f := s.fleet
	switch {
	case f == nil:
		return nil
	case f.drained.Load():
		return errors.New("the process is about to stop")
	case !f.started.Load():
		return errors.New("the process has not started yet")
	case !f.bus.Load() || !s.store.Hears():
		return errors.New("what other processes tell is not heard")
	}
	return nil
}

// Drain makes ready for the end of this process: it takes no more runs, hands back
// those that it works on (each stops between two batches, and another process goes
// on), and lets others lead. Calls are still answered, and Close is still needed.
// Where the store is not shared it does nothing: Close stops the runs, and the next
// start goes on.
func (s *Server) Drain(ctx context.Context) error {
	f := s.fleet
	if f == nil || f.queue == nil || f.dead.Load() || f.drained.Swap(true) {
		return nil
	}
	f.abdicate() // what falls due need not wait for runs that are slow to stop
	if err := f.queue.Stop(ctx); err != nil {
		return fmt.Errorf("hand back runs: %w", err)
	}
	return nil
}

// close ends what Drain has left, and takes the process off the list.
func (f *fleet) close() error {
	err := f.s.Drain(context.Background())
	f.stop()
	f.work.Wait()
	if f.dead.Load() {
		close(f.buried)
		return f.queue.Stop(context.Background())
	}
	// A database that is gone keeps nobody from stopping.
	ctx, cancel := context.WithTimeout(context.Background(), f.pulse.lead)
	defer cancel()
	if err := f.leases.Leave(ctx); err != nil {
		f.s.log.Warn("the process stays on the list until it counts as dead", "error", err)
	}
	return err
}

// give ends a lease.
func (f *fleet) give(t *lease.Held) {
	if f.dead.Load() {
		return
	}
	if err := t.Give(); err != nil {
		f.s.log.Warn("a lease cannot be given back, and has to run out", "lease", t.Name, "error", err)
	}
}

// pause waits in real time.
func pause(ctx context.Context, d time.Duration) error { return clock.Sleep(ctx, d) }
