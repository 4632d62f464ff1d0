package lease

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Held is a lease that this process keeps while it works under it. It is safe for
// parallel use.
type Held struct {
	Lease
	leases *Leases
	ttl    time.Duration
	lost   chan struct{} // closed when another has the lease

	mu      sync.Mutex
	until   time.Time     // by the monotonic clock of this process
	renewed chan struct{} // closed at the next renewal
}

// longestTake is how long the answer is waited for when a lease is asked for.
const longestTake = 5 * time.Second

// Hold takes a lease, to be kept with Keep and given back with Give. The time that it
// lasts is counted from before the call, so it ends here before it ends in the database.
// The errors are those of Take.
func (l *Leases) Hold(ctx context.Context, name string, ttl time.Duration) (*Held, error) {
	before := time.Now()
	taken, _, err := Unbroken(ctx, min(ttl/3, longestTake), func(ctx context.Context) (Lease, struct{}, error) {
		taken, err := l.Take(ctx, name, ttl)
		return taken, struct{}{}, err
	})
	if err == nil && ctx.Err() != nil {
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestTake)
		defer cancel()
		err = errors.Join(context.Cause(ctx), l.Give(back, taken))
	}
	if err != nil {
		return nil, err
	}
	return &Held{Lease: taken, leases: l, ttl: ttl, lost: make(chan struct{}), until: before.Add(ttl), renewed: make(chan struct{})}, nil
}

// Unbroken asks for something that is held from then on. A question that is broken off
// may have been answered all the same: then no process would know who holds it, until it
// counts as lost.
func Unbroken[A, B any](ctx context.Context, limit time.Duration, ask func(context.Context) (A, B, error)) (a A, b B, err error) {
	if ctx.Err() != nil {
		return a, b, context.Cause(ctx)
	}
	asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	return ask(asked)
}

// Valid reports whether the lease is still held: no other process can have it at this
// moment. A process that stood still, or could not reach the database, knows at once when
// it looks here.
func (h *Held) Valid() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Before(h.until) && !h.IsLost()
}

// Lost is closed when another process has the lease, as far as the database has said so.
func (h *Held) Lost() <-chan struct{} { return h.lost }

// IsLost reports whether Lost is closed.
func (h *Held) IsLost() bool {
	select {
	case <-h.lost:
		return true
	default:
		return false
	}
}

// Sure waits until no other process can have the lease: while the database cannot be
// asked, that is not known. The context ends when the lease is lost.
func (h *Held) Sure(ctx context.Context) error {
	for {
		h.mu.Lock()
		renewed := h.renewed
		h.mu.Unlock()
		if h.Valid() {
			return nil
		}
		select {
		case <-renewed:
		case <-ctx.Done(): // it ends when the lease is lost
			return context.Cause(ctx)
		}
	}
}

func (h *Held) renew(before time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = before.Add(h.ttl)
	close(h.renewed)
	h.renewed = make(chan struct{})
}

// Keep renews the lease every so often, until ctx ends or another process has it. That
// the database cannot be reached ends nothing: whether another one has taken the lease is
// known only when it answers again. Where nothing is heard on a connection, another one
// is tried while the lease still lasts.
func (h *Held) Keep(ctx context.Context, every time.Duration, log *slog.Logger) {
	failed := false
	for wait := every; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = every
		before := time.Now()
		var err error
		if !h.leases.frozen.unless(func() { err = h.keepOnce(ctx) }) {
			continue
		}
		switch {
		case err == nil:
			h.renew(before)
			failed = false
		case errors.Is(err, ErrLost):
			close(h.lost)
			return
		case ctx.Err() == nil:
			if wait = every / 3; !failed {
				log.Warn("a lease cannot be kept at the moment", "lease", h.Name, "error", err)
			}
			failed = true
		}
	}
}

func (h *Held) keepOnce(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, h.ttl/3)
	defer cancel()
	return h.leases.Keep(call, h.Lease, h.ttl)
}

// Freeze is for tests: from its return on until it ends nothing is kept, and nothing that
// keeps is on its way.
func (l *Leases) Freeze(on bool) { l.frozen.set(on) }

// UnlessFrozen does something that a frozen process does not do; did reports whether it
// has.
func (l *Leases) UnlessFrozen(do func()) (did bool) { return l.frozen.unless(do) }

// frost is what Freeze and UnlessFrozen share.
type frost struct {
	mu sync.RWMutex
	on bool
}

func (f *frost) set(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on = on
}

func (f *frost) unless(do func()) (did bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if !f.on {
		do()
	}
	return !f.on
}

// Give ends the lease. Where the database cannot be reached it runs out by itself.
func (h *Held) Give() error {
	ctx, cancel := context.WithTimeout(context.Background(), h.ttl)
	defer cancel()
	return h.leases.Give(ctx, h.Lease)
}
