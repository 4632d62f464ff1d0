package line

import (
	"context"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/pause"
)

// pace keeps the judge inside the endpoint's own limits: get_sync_speed for
// records and parallel batches, X-RateLimit-Limit for requests (spec 8).
type pace struct {
	mu       sync.Mutex
	requests float64 // per second
	records  float64 // per second, 0: not declared
	nextCall time.Time
	nextRec  time.Time
	free     chan struct{} // one token for each batch that may be under way
}

// DefaultRateLimit is the connection-wide limit of spec 8 in requests/s.
const DefaultRateLimit = 50_000

func newPace() *pace { return &pace{requests: DefaultRateLimit} }

// wait returns when the next call with n records may be sent.
func (p *pace) wait(ctx context.Context, n int) error {
	p.mu.Lock()
	now := time.Now()
	at := now
	if p.nextCall.After(at) {
		at = p.nextCall
	}
	if n > 0 && p.nextRec.After(at) {
		at = p.nextRec
	}
	p.nextCall = at.Add(share(1, p.requests))
	if n > 0 && p.records > 0 {
		p.nextRec = at.Add(share(n, p.records))
	}
	p.mu.Unlock()
	d := at.Sub(now)
	if d < time.Millisecond {
		return ctx.Err()
	}
	return pause.For(ctx, d)
}

// share is the time that n of so many in a second take up, never too short.
func share(n int, perSecond float64) time.Duration {
	return time.Duration(math.Ceil(float64(n) * float64(time.Second) / perSecond))
}

// Declare takes over a declared speed.
func (p *pace) Declare(speed rpc.Speed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.records = float64(speed.MaximumRecordsPerSecond)
	p.free = make(chan struct{}, ParallelCap(speed))
}

// ParallelCap is the number of batches that the service sends at once.
func ParallelCap(speed rpc.Speed) int {
	return int(max(1, min(speed.MaximumParallelBatches, 50)))
}

// enter waits for a free batch slot; leave gives it back.
func (p *pace) enter(ctx context.Context) (leave func(), err error) {
	p.mu.Lock()
	free := p.free
	p.mu.Unlock()
	if free == nil {
		return func() {}, nil
	}
	select {
	case free <- struct{}{}:
		return func() { <-free }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// noticeRateLimit takes over a valid X-RateLimit-Limit of any reply (spec 8).
func (s *Session) noticeRateLimit(r *wire.Reply) {
	n, err := strconv.ParseInt(strings.TrimSpace(r.Header.Get("X-RateLimit-Limit")), 10, 64)
	if err != nil || n < 1 {
		return
	}
	s.Pace.mu.Lock()
	s.Pace.requests = float64(n)
	s.Pace.mu.Unlock()
}
