// Package latch owns who may use the state of the service at a moment: calls hold it
// while they read and change, let go of it while they wait for others, and a restore
// or a reset takes it from all of them.
package latch

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/destkit/destkit/server/internal/problem"
)

// Latch is what calls hold while they use the state of the service, and what takes it
// from them to restore or to end everything.
type Latch struct {
	// State is held for reading by every call, and for writing by what replaces or
	// ends everything: restore, reset. planting is the same for seeds,
	// which take longer than a call may be kept waiting.
	State    Lock
	Seeds    Lock
	Passages passages
	States   atomic.Int64 // counts the states of this process
}

// worldKey marks the context of a call that holds the world.
type worldKey struct{}

// Holding is the context of a call that has taken the world for reading.
func Holding(ctx context.Context) context.Context { return context.WithValue(ctx, worldKey{}, true) }

// Aside lets go of the world while fn waits for something else: a destination, a
// source, the latency of a fault. So no snapshot waits for them. A call whose
// world was replaced meanwhile ends with errWorldReplaced.
func (l *Latch) Aside(ctx context.Context, fn func(ctx context.Context) error) error {
	if ctx.Value(worldKey{}) != true {
		return fn(ctx)
	}
	was := l.States.Load()
	err := l.apart(ctx, fn)
	if l.States.Load() != was {
		return ErrReplaced
	}
	return err
}

// ErrReplaced says that the ids of a call mean other things by now. A call of the
// API begins anew; of others their callers know best whether they still want them.
var ErrReplaced = problem.Refuse(http.StatusConflict, "the world was replaced while this call waited; make it again")

// apart takes the world again whatever becomes of fn.
func (l *Latch) apart(ctx context.Context, fn func(ctx context.Context) error) error {
	l.State.RUnlock()
	defer l.State.RLock()
	return fn(context.WithValue(ctx, worldKey{}, false))
}

// passages are the calls that wait for the clock to move. They hold no world, so
// that a snapshot can be taken meanwhile, and end when it is replaced.
type passages struct {
	mu     sync.Mutex
	closed bool
	ends   map[*passage]bool
}

type passage struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// Stand keeps all calls out and ends those that wait for the clock: for what
// replaces or ends the world. Seeds end before; calls go on meanwhile.
func (l *Latch) Stand(ctx context.Context) (release func(), err error) {
	plant, err := l.Seeds.Lock(ctx)
	if err != nil {
		return nil, err
	}
	unlock, err := l.State.Lock(ctx)
	if err != nil {
		plant()
		return nil, err
	}
	open, err := l.Passages.stop(ctx)
	if err != nil {
		unlock()
		plant()
		return nil, err
	}
	return func() { open(); unlock(); plant() }, nil
}

// Through runs fn until the world is replaced.
func (p *passages) Through(caller context.Context, fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(caller)
	defer cancel()
	own := &passage{cancel, make(chan struct{})}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return ErrReplaced
	}
	if p.ends == nil {
		p.ends = map[*passage]bool{}
	}
	p.ends[own] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.ends, own)
		p.mu.Unlock()
		close(own.done)
	}()
	err := fn(ctx)
	// It was ended, also where who wanted to replace the state has given up since: the
	// caller has not left.
	if err != nil && ctx.Err() != nil && caller.Err() == nil {
		return ErrReplaced
	}
	return err
}

// stop ends all of them and lets none begin until open is called. It does not wait
// for them longer than ctx lasts.
func (p *passages) stop(ctx context.Context) (open func(), err error) {
	p.mu.Lock()
	p.closed = true
	var ends []*passage
	for one := range p.ends {
		ends = append(ends, one)
	}
	p.mu.Unlock()
	for _, one := range ends {
		one.cancel()
	}
	open = func() {
		p.mu.Lock()
		p.closed = false
		p.mu.Unlock()
	}
	for _, one := range ends {
		select {
		case <-one.done:
		case <-ctx.Done():
			open()
			return nil, ctx.Err()
		}
	}
	return open, nil
}

// errOtherWorld: the world was replaced while an attempt was under way.
var ErrOther = errors.New("the world was replaced")

// Waiting counts the calls that wait for the clock.
func (p *passages) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ends)
}
