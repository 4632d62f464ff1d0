package server

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/destkit/destkit/server/internal/store"
)

// background is the work that outlives the call that asked for it. Settle of
// the clock waits for it, and so does Close.
type background struct {
	ctx  context.Context
	stop context.CancelCauseFunc
	work sync.WaitGroup
}

// later runs fn beside the call. Its changes come first, since a client often waits for them.
func (s *Server) later(name string, fn func(context.Context)) {
	done := s.clock.Busy(name)
	s.background.work.Go(func() {
		defer done()
		fn(store.WithUrgency(s.background.ctx, store.Urgent))
	})
}

// flights lets calls that need the same answer at the same time share one
// attempt, keyed by what is asked for.
type flights struct {
	mu  sync.Mutex
	air map[string]*flight
}

// flight is one attempt that others may wait for.
type flight struct {
	landed chan struct{}
	err    error
}

// once runs fn unless the same key is in the air; then it waits for that one.
func (f *flights) once(ctx context.Context, later func(name string, fn func(context.Context)), key string, fn func(context.Context) error) error {
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
func (f *flights) start(later func(name string, fn func(context.Context)), key string, fn func(context.Context) error) *flight {
	own := &flight{landed: make(chan struct{})}
	if f.air == nil {
		f.air = map[string]*flight{}
	}
	f.air[key] = own
	later(key, func(ctx context.Context) {
		// Before landed is closed, so that whoever waits and asks again gets a new
		// attempt.
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
