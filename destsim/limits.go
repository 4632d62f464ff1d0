package destsim

import (
	"fmt"
	"net/http"
	"sync"

	"golang.org/x/time/rate"
)

// limits enforces what the destination declares (spec 8): X-RateLimit-Limit
// over the whole connection, get_sync_speed for one sync.
type limits struct {
	sim      *Sim
	requests *rate.Limiter
	mu       sync.Mutex
	syncs    map[int64]*syncLimit
}

type syncLimit struct {
	parallel int64
	records  *rate.Limiter
}

// newLimits starts with full buckets, as after a restart.
func newLimits(s *Sim) *limits {
	l := &limits{sim: s, syncs: map[int64]*syncLimit{}}
	if n := s.rateLimit.Load(); n > 0 {
		l.requests = rate.NewLimiter(rate.Limit(n), int(n))
	}
	return l
}

// request takes one request from the connection-wide limit.
func (l *limits) request() bool {
	return l.requests == nil || l.requests.AllowN(l.sim.clock(), 1)
}

// enter admits a batch or answers the call; release is to be called either way.
func (l *limits) enter(c *call, b *batch) (release func(), ok bool) {
	speed, records := *l.sim.speed.Load(), int64(b.Len())
	if records > speed.MaximumBatchSize {
		c.refuse(http.StatusRequestEntityTooLarge, codeTooLarge,
			fmt.Sprintf("%d records are more than maximum_batch_size %d", records, speed.MaximumBatchSize))
		return func() {}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	sync := l.syncs[b.Plan.SyncID]
	if sync == nil {
		// A batch may be larger than a second's worth of records, so the burst is at
		// least one batch.
		perSecond := speed.MaximumRecordsPerSecond
		sync = &syncLimit{records: rate.NewLimiter(rate.Limit(perSecond), int(max(perSecond, speed.MaximumBatchSize)))}
		l.syncs[b.Plan.SyncID] = sync
	}
	if sync.parallel >= speed.MaximumParallelBatches {
		c.tooFast("more batches at once than maximum_parallel_batches")
		return func() {}, false
	}
	sync.parallel++
	release = func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		sync.parallel--
	}
	if !sync.records.AllowN(l.sim.clock(), int(records)) {
		c.tooFast("more records per second than maximum_records_per_second")
		return release, false
	}
	return release, true
}
