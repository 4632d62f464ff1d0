package executor

import (
	"context"
	"sync/atomic"

	"github.com/destkit/destkit/destsim/rpc"
)

const (
	// MostRuns is how many runs of a service work at once; others wait for a place.
	MostRuns = 64
	// flightMemory is what the batches of all runs of a process may take while they
	// are on their way: each is there as items, as a request and as its body, and has
	// a reply. Every run has the same share, so that none waits for another.
	flightMemory = 112 << 20
	copies       = 3
)

// sending is how many runs of this process share flightMemory.
var sending atomic.Int64

// share is what the batches of one run may take.
func share() int64 { return flightMemory / max(1, sending.Load()) }

// admit waits until nothing is on its way where another batch would not fit into the
// share of the run, and accounts for it; one batch always fits.
func (r *run) admit(ctx context.Context, b *batch) (done func()) {
	cost := r.makeRoom(ctx, len(b.arena))
	r.flying.Add(cost)
	return func() { r.flying.Add(-cost) }
}

// makeRoom returns the cost of a batch of some bytes once there is room for it.
func (r *run) makeRoom(ctx context.Context, bytes int) (cost int64) {
	cost = copies*int64(bytes) + rpc.LargeReply
	if r.flying.Load() > 0 && r.flying.Load()+cost > share() {
		r.crew.wait(ctx)
	}
	return cost
}

// batchBytes is the size of one batch of a run.
func (r *run) batchBytes() int {
	return int(min(largestBatch, batchMemory/r.speed.MaximumParallelBatches, share()/(2*copies)))
}

// enterRoom gives a run its place among all others; leaveRoom gives it back, with
// that among the wide ones.
func (r *run) enterRoom(ctx context.Context) error {
	if err := r.e.runs.take(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	sending.Add(1)
	return nil
}

func (r *run) leaveRoom() {
	sending.Add(-1)
	r.leaveWide()
	r.e.runs.give(1)
}

// widen waits for the place of runs with wide rows, which the run keeps to its end:
// such a row is there some ten times on its way.
func (r *run) widen(ctx context.Context) error {
	r.mu.Lock()
	has := r.wide
	r.wide = true
	r.mu.Unlock()
	if has {
		return nil
	}
	if err := r.e.wide.take(ctx, 1); err != nil {
		r.mu.Lock()
		r.wide = false
		r.mu.Unlock()
		return context.Cause(ctx)
	}
	return nil
}

func (r *run) leaveWide() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wide {
		r.wide = false
		r.e.wide.give(1)
	}
}
