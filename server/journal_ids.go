package server

import (
	"context"
	"fmt"
	"sync"

	"github.com/destkit/destkit/server/internal/cluster/chronicle"
	"github.com/destkit/destkit/server/internal/store"
)

// requestIDs gives the ids of requests. They count, so that the same calls get the
// same ids; where several processes share an installation, each counts in blocks
// of its own.
type requestIDs struct {
	s   *Server
	all *chronicle.Chronicle // nil: alone

	mu     sync.Mutex
	last   int64
	end    int64 // the last one of the block
	spare  int64 // the first one of the next block; 0: there is none
	asking bool
}

// requestBlock is how many ids a process takes at a time, of the million blocks
// that twelve digits have.
const requestBlock = 1_000_000

// share takes the first block.
func (r *requestIDs) share(ctx context.Context, s *Server, all *chronicle.Chronicle) error {
	first, err := all.Numbers(ctx, settingJournal, requestBlock)
	if err != nil {
		return store.Explained(err)
	}
	r.s, r.all, r.last, r.end = s, all, first-1, first-1+requestBlock
	return nil
}

// next is the number of the next request. It never waits: half a block before its
// end the next one is asked for. Should the database be away for all of that half,
// nothing but refusals are numbered, and numbers of others may be among them.
func (r *requestIDs) next() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == r.end && r.spare > 0 {
		r.last, r.end, r.spare = r.spare-1, r.spare-1+requestBlock, 0
	}
	r.last++
	if r.all != nil && r.spare == 0 && !r.asking && r.end-r.last < requestBlock/2 {
		r.asking = true
		r.s.background.work.Go(r.ask)
	}
	return r.last
}

// ask takes another block; after a failure the next request asks again.
func (r *requestIDs) ask() {
	ctx, cancel := context.WithTimeout(r.s.background.ctx, writeTime)
	defer cancel()
	first, err := r.all.Numbers(ctx, settingJournal, requestBlock)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking = false
	if err == nil {
		r.spare = first
	}
}

// at is where the ids stand, for a snapshot.
func (r *requestIDs) at() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// restore lets ids go on as they did in a snapshot. In an installation that others
// share they go on from where they are: none is given twice.
func (r *requestIDs) restore(last int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil && !r.s.store.Shared() {
		r.last = last
	}
}

// requestID has a fixed width, so that ids sort as they were given.
func requestID(number int64) string { return fmt.Sprintf("req_%012d", number) }
