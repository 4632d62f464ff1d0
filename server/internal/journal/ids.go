package journal

import (
	"context"
	"fmt"
	"sync"

	"github.com/destkit/destkit/server/internal/background"
	"github.com/destkit/destkit/server/internal/cluster/chronicle"
	"github.com/destkit/destkit/server/internal/store"
)

// requestIDs gives the ids of requests. They count, so that the same calls get the
// same ids; where several processes share an installation, each counts in blocks
// of its own.
type requestIDs struct {
	work *background.Work
	all  *chronicle.Chronicle // nil: alone

	Mu     sync.Mutex
	Last   int64
	end    int64 // the last one of the block
	spare  int64 // the first one of the next block; 0: there is none
	Asking bool
}

// RequestBlock is how many ids a process takes at a time, of the million blocks
// that twelve digits have.
const RequestBlock = 1_000_000

// share takes the first block.
func (r *requestIDs) share(ctx context.Context, all *chronicle.Chronicle) error {
	first, err := all.Numbers(ctx, Setting, RequestBlock)
	if err != nil {
		return store.Explained(err)
	}
	r.all, r.Last, r.end = all, first-1, first-1+RequestBlock
	return nil
}

// Next is the number of the next request. It never waits: half a block before its
// end the next one is asked for. Should the database be away for all of that half,
// nothing but refusals are numbered, and numbers of others may be among them.
func (r *requestIDs) Next() int64 {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if r.Last == r.end && r.spare > 0 {
		r.Last, r.end, r.spare = r.spare-1, r.spare-1+RequestBlock, 0
	}
	r.Last++
	if r.all != nil && r.spare == 0 && !r.Asking && r.end-r.Last < RequestBlock/2 {
		r.Asking = true
		r.work.Run(r.Ask)
	}
	return r.Last
}

// Ask takes another block; after a failure the next request asks again.
func (r *requestIDs) Ask() {
	ctx, cancel := context.WithTimeout(r.work.Ctx, writeTime)
	defer cancel()
	first, err := r.all.Numbers(ctx, Setting, RequestBlock)
	r.Mu.Lock()
	defer r.Mu.Unlock()
	r.Asking = false
	if err == nil {
		r.spare = first
	}
}

// At is where the ids stand, for a snapshot.
func (r *requestIDs) At() int64 {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	return r.Last
}

// Restore lets ids go on as they did in a snapshot. In an installation that others
// share they go on from where they are: none is given twice.
func (r *requestIDs) Restore(last int64, shared bool) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if r.all == nil && !shared {
		r.Last = last
	}
}

// requestID has a fixed width, so that ids sort as they were given.
func requestID(number int64) string { return fmt.Sprintf("req_%012d", number) }
