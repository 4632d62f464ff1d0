package executor

import (
	"context"
	"sync"
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

// sharing is how many runs of this process share flightMemory.
var sharing atomic.Int64

// share is what the batches of one run may take.
func share() int64 { return flightMemory / max(1, sharing.Load()) }

// room is the place that one run has among all runs of an executor: to work at all, for
// wide rows, and for its batches on their way.
type room struct {
	runs, wides *semaphore   // places of all runs, and of those with wide rows
	flying      atomic.Int64 // bytes of batches on their way

	mu   sync.Mutex
	wide bool // it has the place of runs with wide rows
}

// enter gives a run its place among all others; leave gives it back, with that among
// the wide ones.
func (m *room) enter(ctx context.Context) error {
	if err := m.runs.take(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	sharing.Add(1)
	return nil
}

func (m *room) leave() {
	sharing.Add(-1)
	m.leaveWide()
	m.runs.give(1)
}

// widen waits for the place of runs with wide rows, which the run keeps to its end:
// such a row is there some ten times on its way.
func (m *room) widen(ctx context.Context) error {
	m.mu.Lock()
	has := m.wide
	m.wide = true
	m.mu.Unlock()
	if has {
		return nil
	}
	if err := m.wides.take(ctx, 1); err != nil {
		m.mu.Lock()
		m.wide = false
		m.mu.Unlock()
		return context.Cause(ctx)
	}
	return nil
}

func (m *room) leaveWide() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wide {
		m.wide = false
		m.wides.give(1)
	}
}

// admit waits until no batch of the semaphore is on its way where another one of some bytes
// would not fit into the share of the run, and accounts for it; one batch always fits.
func (m *room) admit(ctx context.Context, batches *semaphore, bytes int) (done func()) {
	cost := m.clear(ctx, batches, bytes)
	m.flying.Add(cost)
	return func() { m.flying.Add(-cost) }
}

// clear returns the cost of a batch of some bytes once there is room for it.
func (m *room) clear(ctx context.Context, batches *semaphore, bytes int) (cost int64) {
	cost = copies*int64(bytes) + rpc.LargeReply
	if m.flying.Load() > 0 && m.flying.Load()+cost > share() {
		batches.wait(ctx)
	}
	return cost
}

// batchBytes is the size of one of so many batches at once.
func batchBytes(parallel int64) int {
	return int(min(largestBatch, batchMemory/parallel, share()/(2*copies)))
}
