// Package statelock owns the one lock of the service's state: calls hold it for reading;
// snapshot, restore and reset hold it for writing, after they have stopped the runs.
// Package snapshot decides what is copied or replaced under it.
package statelock

import (
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
// them in again.
type Lock struct {
	Grace   time.Duration // as grace
	mu      sync.Mutex
	changed *sync.Cond
	calls   map[*Hold]bool // under way; true: it waits for the clock or a latency, without the lock
	takers  int            // that write or wait to
	swaps   int            // those of them that replace the state
	writing bool
	number  atomic.Int64
}

// New returns a free lock.
func New() *Lock {
	l := &Lock{Grace: grace, calls: map[*Hold]bool{}}
	l.changed = sync.NewCond(&l.mu)
	return l
}

// Hold is the lock, held for reading by one call.
type Hold struct {
	// Ctx is the context of the call. It ends when the lock is taken away.
	Ctx  context.Context
	end  context.CancelCauseFunc
	lock *Lock
}

// Enter waits until no one writes or waits to. Leave ends the hold.
func (l *Lock) Enter(ctx context.Context) *Hold {
	return l.begin(ctx, false)
}

func (l *Lock) begin(ctx context.Context, waits bool) *Hold {
	h := &Hold{lock: l}
	h.Ctx, h.end = context.WithCancelCause(ctx)
	h.set(waits)
	return h
}

// set notes a call once there is no one who keeps it out.
func (h *Hold) set(waits bool) {
	l := h.lock
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.takers > 0 && !waits || l.swaps > 0 {
		l.changed.Wait()
	}
	l.calls[h] = waits
}

func (h *Hold) drop() {
	h.lock.mu.Lock()
	defer h.lock.mu.Unlock()
	delete(h.lock.calls, h)
	h.lock.changed.Broadcast()
}

// Leave lets go of the lock.
func (h *Hold) Leave() {
	h.drop()
	h.end(nil)
}

// Failure is ErrHeld where a call failed because the lock was taken away, else err.
func (h *Hold) Failure(err error) error {
	if err != nil && context.Cause(h.Ctx) == ErrHeld {
		return ErrHeld
	}
	return err
}

// Apart lets go of the lock while fn waits; see Lock.Wait. It is ErrHeld, too, where the
// state was replaced after the wait: the data of the call is void then.
func (h *Hold) Apart(fn func(ctx context.Context) error) error {
	number := h.lock.Number()
	h.drop()
	err := h.lock.Wait(h.Ctx, fn)
	h.set(false)
	if h.lock.Number() != number {
		return ErrHeld
	}
	return err
}

// Wait runs what waits for the clock or for a latency, without the lock. A snapshot does
// not wait for it; a restore or a reset ends it with ErrHeld.
func (l *Lock) Wait(ctx context.Context, fn func(ctx context.Context) error) error {
	h := l.begin(ctx, true)
	defer h.Leave()
	return h.Failure(fn(h.Ctx))
}

// Take keeps calls out until release. It gives those under way the time of Grace, and
// gives up when ctx ends. To replace the state, it also ends the calls that wait.
func (l *Lock) Take(ctx context.Context, replace bool) (release func(), err error) {
	locked := func(fn func()) func() {
		return func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			fn()
		}
	}
	defer time.AfterFunc(l.Grace, locked(func() { l.finish(false) })).Stop()
	defer context.AfterFunc(ctx, locked(l.changed.Broadcast))()
	l.mu.Lock()
	defer l.mu.Unlock()
	swaps := 0
	if replace {
		swaps = 1
	}
	l.takers++
	l.swaps += swaps
	leave := func() {
		l.takers--
		l.swaps -= swaps
		l.changed.Broadcast()
	}
	for l.writing || l.busy(replace) {
		if replace {
			l.finish(true)
		}
		if ctx.Err() != nil {
			leave()
			return nil, ctx.Err()
		}
		l.changed.Wait()
	}
	l.writing = true
	l.number.Add(int64(swaps))
	return sync.OnceFunc(locked(func() {
		l.writing = false
		leave()
	})), nil
}

// busy reports whether there is a call that holds the lock, or also one that waits.
func (l *Lock) busy(alsoWaits bool) bool {
	for _, waits := range l.calls {
		if !waits || alsoWaits {
			return true
		}
	}
	return false
}

// finish ends the calls that wait, or those that hold the lock; they leave by themselves.
func (l *Lock) finish(waiting bool) {
	for h, waits := range l.calls {
		if waits == waiting {
			h.end(ErrHeld)
		}
	}
}

// Number counts the states of this process: data read from another one is void.
func (l *Lock) Number() int64 { return l.number.Load() }
