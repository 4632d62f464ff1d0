package destsim

import (
	"fmt"
	"net/http"
	"sync"

	"golang.org/x/time/rate"

	"github.com/destkit/destkit/destsim/rpc"
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
	if l.requests == nil {
		return true
	}
	return l.requests.AllowN(l.sim.clock(), 1)
}

// allow takes the records of a batch.
func (l *limits) allow(id int64, records int64, speed rpc.Speed) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of(id, speed).records.AllowN(l.sim.clock(), int(records))
}

// enter admits a batch or answers the call; release is to be called either way.
func (l *limits) enter(c *call, b *batch) (release func(), ok bool) {
	speed, records := *l.sim.speed.Load(), int64(b.Len())
	if records > speed.MaximumBatchSize {
		c.refuse(http.StatusRequestEntityTooLarge, codeTooLarge,
			fmt.Sprintf("%d records are more than maximum_batch_size %d", records, speed.MaximumBatchSize))
		return func() {}, false
	}
	sync, ok := l.begin(b.Plan.SyncID, speed)
	if !ok {
		c.tooFast("more batches at once than maximum_parallel_batches")
		return func() {}, false
	}
	release = func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		sync.parallel--
	}
	if !l.allow(b.Plan.SyncID, records, speed) {
		c.tooFast("more records per second than maximum_records_per_second")
		return release, false
	}
	return release, true
}

// begin counts a batch of a sync, unless there are enough.
func (l *limits) begin(id int64, speed rpc.Speed) (*syncLimit, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sync := l.of(id, speed)
	if sync.parallel >= speed.MaximumParallelBatches {
		return nil, false
	}
	sync.parallel++
	return sync, true
}

// of finds or makes the limit of one sync; mu is held. A batch may be larger
// than a second's worth of records, so the burst is at least one batch.
func (l *limits) of(id int64, speed rpc.Speed) *syncLimit {
	s := l.syncs[id]
	if s == nil {
		perSecond := speed.MaximumRecordsPerSecond
		s = &syncLimit{records: rate.NewLimiter(rate.Limit(perSecond), int(max(perSecond, speed.MaximumBatchSize)))}
		l.syncs[id] = s
	}
	return s
}
