package lifecycle

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/clock"
)

// Sending is what an outbox needs of the service.
type Sending struct {
	Shared *call.Shared
	Log    *slog.Logger
	Clock  *clock.Clock
}

// outbox sends the open messages of the store: to each receiver one after the
// other, in the order in which it was made, again after a failure, and after a
// restart. Only the store knows the open ones; the outbox only knows when to
// look. All of its work is due on the service's clock, so settle and advance
// wait for it and Close ends it.
type outbox struct {
	Sending
	name string // in the reports of the clock

	// open reads the open ones with an id above after, in the order of the ids.
	open func(tx *store.Tx, after int64) ([]outgoing, error)
	// send makes one attempt and stores with keep what became of it. It gives
	// the moment of the next attempt, zero when there is none. Open rows stay
	// open when ctx ends: the next start goes on.
	send func(ctx context.Context, id int64, keep func(change func(*store.Tx) error) error) (next time.Time, err error)

	mu     sync.Mutex
	world  int64 // counts the worlds: data read in one is not stored into another
	seen   int64 // the highest id that was looked at
	timers map[int64]*clock.Timer
	lanes  map[int64][]int64 // by receiver, while a worker is there
}

// outgoing is one thing that is open, and when it is to be tried.
type outgoing struct {
	id, receiver int64
	at           time.Time
}

// lookAgain is how long the outbox waits after the store has failed it.
const lookAgain = time.Minute

// wake makes the outbox look for new messages. It may be called from within the change that
// makes something: the look is a change too, and so waits for it.
func (o *outbox) wake() { o.Clock.AfterFunc(0, o.name, o.look) }

// wakeForNews wakes the outbox where there is something new. It is called after the
// change that may have made it, and reads only.
func (o *outbox) wakeForNews(ctx context.Context) {
	found := false
	err := o.Shared.Store.View(ctx, func(tx *store.Tx) error {
		o.mu.Lock()
		seen := o.seen
		o.mu.Unlock()
		list, err := o.open(tx, seen)
		found = len(list) > 0
		return err
	})
	if found || err != nil {
		o.wake()
	}
}

// look takes over everything that is new, in the order of the ids. A start calls
// it directly: a clock on which nothing waits has nothing to run.
func (o *outbox) look(ctx context.Context) {
	err := o.Shared.Store.Update(ctx, func(tx *store.Tx) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		list, err := o.open(tx, o.seen)
		for _, item := range list {
			o.seen = item.id
			o.put(item)
		}
		return err
	})
	if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrClosed) {
		o.Log.Error("what is to be sent cannot be read", "what", o.name, "error", err)
		o.Clock.AfterFunc(lookAgain, o.name, o.look)
	}
}

// put queues an item for its moment; the lock is held.
func (o *outbox) put(item outgoing) {
	if !item.at.After(o.Clock.Now()) {
		o.queue(item)
		return
	}
	if o.timers == nil {
		o.timers = map[int64]*clock.Timer{}
	}
	world := o.world
	// For a while, which a clock that is set back leaves as it is.
	o.timers[item.id] = o.Clock.AfterFunc(item.at.Sub(o.Clock.Now()), o.name, func(context.Context) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.world == world {
			delete(o.timers, item.id)
			o.queue(item)
		}
	})
}

// queue hands an item to the lane of its receiver; the lock is held. A slow
// receiver keeps no other one waiting.
func (o *outbox) queue(item outgoing) {
	if o.lanes == nil {
		o.lanes = map[int64][]int64{}
	}
	waiting, busy := o.lanes[item.receiver]
	o.lanes[item.receiver] = append(waiting, item.id)
	if !busy {
		o.Clock.AfterFunc(0, o.name, func(ctx context.Context) { o.work(ctx, item.receiver) })
	}
}

// next takes the first item of a lane; a lane without items ends.
func (o *outbox) next(receiver int64) (id, world int64, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	waiting := o.lanes[receiver]
	if len(waiting) == 0 {
		delete(o.lanes, receiver)
		return 0, 0, false
	}
	o.lanes[receiver] = waiting[1:]
	return waiting[0], o.world, true
}

// work sends everything of one lane.
func (o *outbox) work(ctx context.Context, receiver int64) {
	for {
		id, world, ok := o.next(receiver)
		if !ok {
			return
		}
		if ctx.Err() != nil {
			continue // it stays open in the store
		}
		next, err := o.send(ctx, id, func(change func(*store.Tx) error) error { return o.keep(ctx, world, change) })
		switch {
		case err == nil:
		case ctx.Err() != nil, errors.Is(err, errForgotten), errors.Is(err, store.ErrNotFound):
			continue // the process stops, or the message is gone
		default:
			o.Log.Error("an attempt to send cannot be recorded", "what", o.name, "id", id, "error", err)
			next = o.Clock.Now().Add(lookAgain)
		}
		o.again(outgoing{id: id, receiver: receiver, at: next}, world)
	}
}

// again queues the next attempt, unless there is none.
func (o *outbox) again(item outgoing, world int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !item.at.IsZero() && o.world == world {
		o.put(item)
	}
}

// errForgotten means that the state in which an attempt began is gone.
var errForgotten = errors.New("the state was replaced")

// keep stores what became of an attempt, in the state in which it began only: ids of
// another state mean other things.
func (o *outbox) keep(ctx context.Context, world int64, change func(*store.Tx) error) error {
	return o.Shared.Store.Update(ctx, func(tx *store.Tx) error {
		o.mu.Lock()
		same := o.world == world
		o.mu.Unlock()
		if !same {
			return errForgotten
		}
		return change(tx)
	})
}

// forget drops everything that waits, before another world takes the place of
// this one; look afterwards takes over the open ones there.
func (o *outbox) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, timer := range o.timers {
		timer.Stop()
	}
	clear(o.timers)
	for receiver := range o.lanes { // who works there ends by itself
		o.lanes[receiver] = nil
	}
	o.world++
	o.seen = 0
}
