// Package descriptors owns the budget of file descriptors of the process: how many of
// them runs and connections may have, so that the store and the listener never go
// without. A request for more than is free waits its turn, for a bounded time.
//
// It counts reported use; it opens nothing itself, and knows no run.
package descriptors

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Timeout is how long a caller waits while nothing is given back. Whoever is served
// in turn waits longer than that where many are before.
const Timeout = 2 * time.Minute

// most is what a process without a limit, or with a very high one, budgets: each file
// takes memory, too.
const most = 1 << 15

// Shares are the parts of the limit. The remaining quarter is for the store, for
// those who call the service, and for the files of the moment.
type Shares struct {
	Limit       int64   // of open files, as far as it is budgeted
	Runs        *Budget // sources and ledgers of the runs that work
	Connections *Budget // to destinations
}

// Split makes the shares of a limit.
func Split(limit int64) *Shares {
	limit = max(min(limit, most), 1)
	part := limit * 3 / 8
	return &Shares{Limit: limit, Runs: New("sync runs", part), Connections: New("connections to destinations", part)}
}

// Process are the shares of this process, of all services in it together. The soft
// limit has been raised to the hard one by then: the runtime does that at the start of
// every program.
var Process = sync.OnceValue(func() *Shares { return Split(limit()) })

// Budget is a number of descriptors that some part may have open.
type Budget struct {
	what    string
	most    int64
	timeout time.Duration

	mu      sync.Mutex
	used    int64
	waiting []*waiter
	moved   time.Time // when something was given back last
	relieve []func()
}

type waiter struct {
	n       int64
	granted func()        // called before turn is closed
	turn    chan struct{} // closed when it has them
}

// New makes a budget; what names its users in errors.
func New(what string, most int64) *Budget {
	return &Budget{what: what, most: max(most, 1), timeout: Timeout}
}

// Figures are what a budget shows.
type Figures struct{ Used, Most, Waiting int64 }

// Figures of this moment.
func (b *Budget) Figures() Figures {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Figures{b.used, b.most, int64(len(b.waiting))}
}

// Relief registers a function that closes unneeded files before anybody waits; drop
// removes it.
func (b *Budget) Relief(relieve func()) (drop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := len(b.relieve)
	b.relieve = append(b.relieve, relieve)
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.relieve[at] = nil
		for len(b.relieve) > 0 && b.relieve[len(b.relieve)-1] == nil {
			b.relieve = b.relieve[:len(b.relieve)-1]
		}
	})
}

// ExhaustedError is the end of a wait in which nothing came free.
type ExhaustedError struct {
	What         string
	Wanted, Most int64
	Waited       time.Duration
}

func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("no file descriptor came free for %s (%d of the %d for %s wanted): raise the limit of open files (ulimit -n), or let less run at once",
		e.Waited.Round(time.Second), e.Wanted, e.Most, e.What)
}

// Try takes n descriptors if they are free and no caller waits for them. Who needs more
// than there are in all takes all of them.
func (b *Budget) Try(n int64) (release func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n = min(n, b.most); len(b.waiting) > 0 || b.used+n > b.most {
		return nil, false
	}
	b.used += n
	return b.releaser(n), true
}

// Take is Try that waits: until ctx ends, or until nothing was given back for a while
// (*ExhaustedError). granted, which may be nil, is called by whoever ends the wait,
// before it ends.
func (b *Budget) Take(ctx context.Context, n int64, granted func()) (release func(), err error) {
	if release, ok := b.Try(n); ok {
		return release, nil
	}
	b.mu.Lock()
	relieve := append([]func(){}, b.relieve...)
	b.mu.Unlock()
	for _, fn := range relieve {
		if fn != nil {
			fn()
		}
	}
	n = min(n, b.most)
	w := &waiter{n: n, granted: granted, turn: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, w)
	b.serve()
	b.mu.Unlock()
	since := time.Now()
	timer := time.NewTimer(b.timeout)
	defer timer.Stop()
	for {
		select {
		case <-w.turn:
			return b.releaser(n), nil
		case <-ctx.Done():
			err = ctx.Err()
		case <-timer.C:
			b.mu.Lock()
			from := since
			if b.moved.After(from) {
				from = b.moved
			}
			b.mu.Unlock()
			idle := time.Since(from)
			if idle < b.timeout {
				timer.Reset(b.timeout - idle)
				continue
			}
			err = &ExhaustedError{b.what, n, b.most, time.Since(since)}
		}
		return b.giveUp(w, err)
	}
}

// giveUp leaves the line, unless the turn has come at the same moment.
func (b *Budget) giveUp(w *waiter, err error) (func(), error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, one := range b.waiting {
		if one == w {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			b.serve() // who comes next may want less
			return nil, err
		}
	}
	return b.releaser(w.n), nil
}

// releaser gives n descriptors back, once.
func (b *Budget) releaser(n int64) func() {
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.used -= n
		b.moved = time.Now()
		b.serve()
	})
}

// serve lets those in who wait, in their order; the lock is held.
func (b *Budget) serve() {
	for len(b.waiting) > 0 && b.used+b.waiting[0].n <= b.most {
		w := b.waiting[0]
		b.waiting = b.waiting[1:]
		b.used += w.n
		if w.granted != nil {
			w.granted()
		}
		close(w.turn)
	}
}
