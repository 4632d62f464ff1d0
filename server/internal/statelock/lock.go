// Package statelock owns the one lock of the service's state: calls hold it for reading;
// snapshot, restore and reset hold it for writing, after they have stopped the runs. What
// is copied or replaced under it is left to package snapshot.
package statelock

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/server/internal/problem"
)

// grace is how long a snapshot, restore or reset waits for the calls under way. Then it
// ends them with ErrHeld.
const grace = 5 * time.Second

// ErrHeld answers a call that a snapshot, restore or reset has ended.
var ErrHeld error = &problem.Failure{
	Code: http.StatusServiceUnavailable, Retry: "1",
	Message: "the state of the service is being copied or replaced; send the request again",
}

// Lock is a read-write lock. Who waits to write keeps new readers out; who gives up lets
// them in again. The zero value is free.
type Lock struct {
	Grace   time.Duration // 0: grace
	mu      sync.Mutex
	readers map[*reader]bool
	waits   map[*reader]bool // for the clock or a latency, without the lock
	takers  int              // that write or wait to
	swaps   int              // those of them that replace the state
	writing bool
	changed chan struct{}
	number  atomic.Int64
}

// reader is a call under way.
type reader struct{ end context.CancelCauseFunc }

// Hold is the lock, held for reading by one call.
type Hold struct {
	// Ctx is the context of the call. It ends when the lock is taken away.
	Ctx    context.Context
	lock   *Lock
	reader *reader
}

// Enter waits until no one writes or waits to. Leave ends the hold.
func (l *Lock) Enter(ctx context.Context) *Hold {
	ctx, end := context.WithCancelCause(ctx)
	h := &Hold{Ctx: ctx, lock: l, reader: &reader{end}}
	h.enter()
	return h
}

func (h *Hold) enter() {
	l := h.lock
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.takers > 0 {
		l.await(nil)
	}
	put(&l.readers, h.reader)
}

// Leave lets go of the lock.
func (h *Hold) Leave() {
	h.lock.drop(h.lock.readers, h.reader)
	h.reader.end(nil)
}

// Failure is ErrHeld where a call failed because the lock was taken away, else err.
func (h *Hold) Failure(err error) error {
	if err != nil && context.Cause(h.Ctx) == ErrHeld {
		return ErrHeld
	}
	return err
}

// Apart lets go of the lock while fn waits; see Lock.Wait. It is ErrHeld, too, where the
// state was replaced after the wait: what the call knows is void then.
func (h *Hold) Apart(fn func(ctx context.Context) error) error {
	number := h.lock.Number()
	h.lock.drop(h.lock.readers, h.reader)
	err := h.lock.Wait(h.Ctx, fn)
	h.enter()
	if h.lock.Number() != number {
		return ErrHeld
	}
	return err
}

// Wait runs what waits for the clock or for a latency, without the lock. A snapshot does
// not wait for it; a restore or a reset ends it with ErrHeld.
func (l *Lock) Wait(ctx context.Context, fn func(ctx context.Context) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	own := &reader{end}
	l.mu.Lock()
	for l.swaps > 0 {
		l.await(nil)
	}
	put(&l.waits, own)
	l.mu.Unlock()
	defer l.drop(l.waits, own)
	if err := fn(ctx); err != nil {
		return (&Hold{Ctx: ctx}).Failure(err)
	}
	return nil
}

// Take keeps calls out until release. It gives those under way the time of Grace, and
// gives up when ctx ends.
func (l *Lock) Take(ctx context.Context) (release func(), err error) { return l.take(ctx, 0) }

// Replace is Take for what replaces the state: it also ends the calls that wait.
func (l *Lock) Replace(ctx context.Context) (release func(), err error) { return l.take(ctx, 1) }

func (l *Lock) take(ctx context.Context, swaps int) (release func(), err error) {
	late := time.AfterFunc(cmp.Or(l.Grace, grace), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		finish(l.readers)
	})
	defer late.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.takers++
	l.swaps += swaps
	leave := func() {
		l.takers--
		l.swaps -= swaps
		l.notify()
	}
	for l.writing || len(l.readers) > 0 || swaps > 0 && len(l.waits) > 0 {
		if swaps > 0 {
			finish(l.waits)
		}
		l.await(ctx.Done())
		if ctx.Err() != nil {
			leave()
			return nil, ctx.Err()
		}
	}
	l.writing = true
	l.number.Add(int64(swaps))
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.writing = false
		leave()
	}), nil
}

// Number counts the states of this process: what was read of another one is void.
func (l *Lock) Number() int64 { return l.number.Load() }

func put(set *map[*reader]bool, r *reader) {
	if *set == nil {
		*set = map[*reader]bool{}
	}
	(*set)[r] = true
}

func (l *Lock) drop(set map[*reader]bool, r *reader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(set, r)
	l.notify()
}

// finish ends calls; they leave by themselves.
func finish(set map[*reader]bool) {
	for r := range set {
		r.end(ErrHeld)
	}
}

// await waits for the next change, or until done; l.mu is held before and after.
func (l *Lock) await(done <-chan struct{}) {
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	changed := l.changed
	l.mu.Unlock()
	select {
	case <-changed:
	case <-done:
	}
	l.mu.Lock()
}

// notify makes all who wait look again; l.mu is held.
func (l *Lock) notify() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}
