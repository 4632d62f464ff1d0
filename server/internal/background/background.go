// Package background owns work that outlives the call that started it, and attempts
// that several callers share.
package background

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/clock"
)

// Work outlives the call that started it. Settle of the clock and closing the
// service wait for it.
type Work struct {
	Ctx   context.Context
	Stop  context.CancelCauseFunc
	group sync.WaitGroup
	clock *clock.Clock
}

// NewWork begins with nothing to do.
func NewWork(c *clock.Clock) *Work {
	w := &Work{clock: c}
	w.Ctx, w.Stop = context.WithCancelCause(context.Background())
	return w
}

// Run runs fn until the service ends; the clock does not wait for it.
func (w *Work) Run(fn func()) { w.group.Go(fn) }

// Wait waits for all of it.
func (w *Work) Wait() { w.group.Wait() }

// Later runs fn concurrently. Its changes come first: a client often waits for them.
func (w *Work) Later(name string, fn func(context.Context)) {
	done := w.clock.Busy(name)
	w.group.Go(func() {
		defer done()
		fn(store.WithUrgency(w.Ctx, store.Urgent))
	})
}

// Flights lets calls that need the same answer at the same time share one
// attempt, keyed by the request.
type Flights struct {
	mu  sync.Mutex
	air map[string]*flight
}

// flight is one attempt that others may wait for.
type flight struct {
	landed chan struct{}
	err    error
}

// Once runs fn unless the same key is in the air; then it waits for that one.
func (f *Flights) Once(ctx context.Context, later func(name string, fn func(context.Context)), key string, fn func(context.Context) error) error {
	f.mu.Lock()
	own, ok := f.air[key]
	if !ok {
		own = f.start(later, key, fn)
	}
	f.mu.Unlock()
	select {
	case <-own.landed:
		return own.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start begins an attempt, which no caller can end; the lock is held.
func (f *Flights) start(later func(name string, fn func(context.Context)), key string, fn func(context.Context) error) *flight {
	own := &flight{landed: make(chan struct{})}
	if f.air == nil {
		f.air = map[string]*flight{}
	}
	f.air[key] = own
	later(key, func(ctx context.Context) {
		// Before landed is closed, so that a waiting caller that retries gets a
		// new attempt.
		defer func() {
			if p := recover(); p != nil { // it must not take the service with it
				own.err = fmt.Errorf("panic in %s: %v\n%s", key, p, debug.Stack())
			}
			f.mu.Lock()
			delete(f.air, key)
			f.mu.Unlock()
			close(own.landed)
		}()
		own.err = fn(ctx)
	})
	return own
}
