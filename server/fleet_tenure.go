package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/destkit/destkit/server/internal/cluster/lease"
)

// tenure is a lease that this process keeps while it works under it.
type tenure struct {
	lease lease.Lease
	ttl   time.Duration
	lost  chan struct{} // closed when another has the lease

	mu      sync.Mutex
	until   time.Time     // by the monotonic clock of this process
	renewed chan struct{} // closed at the next renewal
}

// longestTake is how long the answer is waited for when a lease is asked for.
const longestTake = 5 * time.Second

// take takes a lease. The time that it lasts is counted from before the call, so
// it ends here before it ends in the database.
func (f *fleet) take(ctx context.Context, name string, ttl time.Duration) (*tenure, error) {
	before := time.Now()
	l, _, err := unbroken(ctx, min(ttl/3, longestTake), func(ctx context.Context) (lease.Lease, struct{}, error) {
		l, err := f.leases.Take(ctx, name, ttl)
		return l, struct{}{}, err
	})
	if err == nil && ctx.Err() != nil {
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestTake)
		defer cancel()
		err = errors.Join(context.Cause(ctx), f.leases.Give(back, l))
	}
	if err != nil {
		return nil, err
	}
	return &tenure{lease: l, ttl: ttl, lost: make(chan struct{}), until: before.Add(ttl), renewed: make(chan struct{})}, nil
}

// unbroken asks for something that is held from then on. A question that is broken off
// may have been answered all the same: nobody would know who holds it until it counts
// as lost.
func unbroken[A, B any](ctx context.Context, limit time.Duration, ask func(context.Context) (A, B, error)) (a A, b B, err error) {
	if ctx.Err() != nil {
		return a, b, context.Cause(ctx)
	}
	asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	return ask(asked)
}

// good reports whether nobody else can have the lease at this moment. A process that
// stood still, or could not reach the database, knows at once when it looks here.
func (t *tenure) good() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Now().Before(t.until) && !t.isLost()
}

// isLost tells that the database has said so.
func (t *tenure) isLost() bool {
	select {
	case <-t.lost:
		return true
	default:
		return false
	}
}

// sure waits until nobody else can have the lease: while the database cannot be
// asked, that is not known. The context ends when the lease is lost.
func (t *tenure) sure(ctx context.Context) error {
	for {
		t.mu.Lock()
		renewed := t.renewed
		t.mu.Unlock()
		if t.good() {
			return nil
		}
		select {
		case <-renewed:
		case <-ctx.Done(): // it ends when the lease is lost
			return context.Cause(ctx)
		}
	}
}

func (t *tenure) renew(before time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = before.Add(t.ttl)
	close(t.renewed)
	t.renewed = make(chan struct{})
}

// keep renews a lease until ctx ends or another has it. That the database cannot be
// reached ends nothing: whether somebody else has taken the lease is known only when
// it answers again. Where nothing is heard on a connection, another one is tried while
// the lease still lasts.
func (f *fleet) keep(ctx context.Context, t *tenure, every time.Duration) {
	failed := false
	for wait := every; pause(ctx, wait) == nil; {
		wait = every
		before := time.Now()
		var err error
		if !f.frozen.unless(func() { err = f.keepOnce(ctx, t) }) {
			continue
		}
		switch {
		case err == nil:
			t.renew(before)
			failed = false
		case errors.Is(err, lease.ErrLost):
			close(t.lost)
			return
		case ctx.Err() == nil:
			if wait = every / 3; !failed {
				f.s.log.Warn("a lease cannot be kept at the moment", "lease", t.lease.Name, "error", err)
			}
			failed = true
		}
	}
}

func (f *fleet) keepOnce(ctx context.Context, t *tenure) error {
	call, cancel := context.WithTimeout(ctx, t.ttl/3)
	defer cancel()
	return f.leases.Keep(call, t.lease, t.ttl)
}

// frost lets tests freeze a process: from the return of set on it keeps nothing, and
// nothing that keeps is on its way.
type frost struct {
	mu sync.RWMutex
	on bool
}

func (f *frost) set(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on = on
}

// unless does something that a frozen process does not; did reports whether it has.
func (f *frost) unless(do func()) (did bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if !f.on {
		do()
	}
	return !f.on
}

// give ends a lease; it runs out by itself where the database cannot be reached.
func (f *fleet) give(t *tenure) {
	if f.dead.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), t.ttl)
	defer cancel()
	if err := f.leases.Give(ctx, t.lease); err != nil {
		f.s.log.Warn("a lease cannot be given back, and has to run out", "lease", t.lease.Name, "error", err)
	}
}
