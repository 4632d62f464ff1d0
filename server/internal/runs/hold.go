package runs

import (
	"context"
	"errors"

	"github.com/destkit/destkit/server/internal/sync/executor"
)

// Hold stops the active runs, each between two batches, and keeps others from
// starting, so that store, ledgers and destinations can be copied or replaced
// in one consistent state. It waits for calls of destinations that are on their
// way for as long as the executor's grace, no longer. The clock does not count
// as quiet meanwhile. Release starts the runs that the store then holds.
func (e *Engine) Hold(ctx context.Context) (release func(), err error) {
	select {
	case e.turn <- struct{}{}: // one at a time
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	busy := e.Clock.Busy("stopped sync runs")
	release = func() {
		e.mu.Lock()
		e.held = false
		e.mu.Unlock()
		// The context of a caller who gives up must not leave runs behind.
		if err := e.Resume(e.Work.Ctx); err != nil && e.Work.Ctx.Err() == nil {
			e.Log.Error("stopped runs cannot be read", "error", err)
		}
		busy()
		<-e.turn
	}
	e.mu.Lock()
	e.held = true
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

// Held reports whether the runs are held.
func (e *Engine) Held() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.held
}

// stopped reports whether a run was stopped to go on later.
func stopped(ctx context.Context) bool { return errors.Is(context.Cause(ctx), executor.ErrStop) }
