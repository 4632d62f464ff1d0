package server

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// hold stops the runs under way where they stand, each between two batches, and
// keeps others from starting, so that store, books and destinations can be
// copied or replaced as they are at one moment. It waits for calls of
// destinations that are on their way for as long as the executor's grace, no
// longer. The clock does not pass for quiet meanwhile. Release starts what the
// store then says is to run.
func (e *engine) hold(ctx context.Context) (release func(), err error) {
	select {
	case e.turn <- struct{}{}: // one at a time
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	busy := e.s.clock.Busy("stopped sync runs")
	release = func() {
		e.mu.Lock()
		e.held = false
		close(e.released)
		e.mu.Unlock()
		// The context of a caller who gives up must not leave runs behind.
		if err := e.resume(e.s.background.ctx); err != nil && e.s.background.ctx.Err() == nil {
			e.s.log.Error("stopped runs cannot be read", "error", err)
		}
		busy()
		<-e.turn
	}
	e.mu.Lock()
	e.held, e.released = true, make(chan struct{})
	var ends []chan struct{}
	for _, run := range e.working {
		run.cancel(executor.ErrStop)
		ends = append(ends, run.done)
	}
	e.mu.Unlock()
	for _, end := range ends {
		select {
		case <-end:
		case <-ctx.Done():
			release()
			return nil, ctx.Err()
		}
	}
	return release, nil
}

// stopped tells that a run was told to stop and go on later.
func stopped(ctx context.Context) bool { return errors.Is(context.Cause(ctx), executor.ErrStop) }

// worldKey marks the context of a call that holds the world.
type worldKey struct{}

// holding is the context of a call that has taken the world for reading.
func holding(ctx context.Context) context.Context { return context.WithValue(ctx, worldKey{}, true) }

// aside lets go of the world while fn waits for somebody else: a destination, a
// source, the latency of a fault. So no snapshot waits for them. A call whose
// world was replaced meanwhile ends with errWorldReplaced.
func (s *Server) aside(ctx context.Context, fn func(ctx context.Context) error) error {
	if ctx.Value(worldKey{}) != true {
		return fn(ctx)
	}
	was := s.worlds.Load()
	err := s.apart(ctx, fn)
	if s.worlds.Load() != was {
		return errWorldReplaced
	}
	return err
}

// errWorldReplaced says that the ids of a call mean other things by now. A call of the
// API begins anew; of others their callers know best whether they still want them.
var errWorldReplaced = problem.Refuse(http.StatusConflict, "the world was replaced while this call waited; make it again")

// apart takes the world again whatever becomes of fn.
func (s *Server) apart(ctx context.Context, fn func(ctx context.Context) error) error {
	s.world.RUnlock()
	defer s.world.RLock()
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

// errReplaced ends a passage.
var errReplaced = errors.New("the world is replaced by a snapshot")

// stand keeps all calls out and ends those that wait for the clock: for what
// replaces or ends the world. Seeds end before; calls go on meanwhile.
func (s *Server) stand(ctx context.Context) (release func(), err error) {
	plant, err := s.planting.Lock(ctx)
	if err != nil {
		return nil, err
	}
	unlock, err := s.world.Lock(ctx)
	if err != nil {
		plant()
		return nil, err
	}
	open, err := s.passages.stop(ctx)
	if err != nil {
		unlock()
		plant()
		return nil, err
	}
	return func() { open(); unlock(); plant() }, nil
}

// through runs fn until the world is replaced.
func (p *passages) through(ctx context.Context, fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	own := &passage{cancel, make(chan struct{})}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return errReplaced
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
	return fn(ctx)
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
