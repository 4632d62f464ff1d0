package destsim

import (
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"golang.org/x/time/rate"
)

// authorised reports whether a call carries the token and the URL secret that
// are configured (spec 5.2.2, 5.2.3).
func (s *Sim) authorised(r *http.Request) bool {
	token := *s.token.Load()
	return (token == "" || tokenMatches(token, r.Header["Authorization"])) && s.config.URLSecret.matches(r.URL)
}

// tokenMatches wants exactly one Authorization header with exactly the token.
func tokenMatches(token string, headers []string) bool {
	if token == "" {
		return true
	}
	if len(headers) != 1 {
		return false
	}
	given, ok := strings.CutPrefix(headers[0], "Bearer ")
	return ok && same(given, token)
}

// matches looks for the secret. A parameter that is repeated must be right
// every time, or an attacker could hide a guess behind another.
func (u URLSecret) matches(at *url.URL) bool {
	switch {
	case u.Query != "":
		values := at.Query()[u.Query]
		for _, v := range values {
			if !same(v, u.Value) {
				return false
			}
		}
		return len(values) > 0
	case u.Path != nil:
		segments := strings.Split(strings.TrimPrefix(at.EscapedPath(), "/"), "/")
		if *u.Path >= len(segments) {
			return false
		}
		segment, err := url.PathUnescape(segments[*u.Path])
		return err == nil && same(segment, u.Value)
	}
	return true
}

// same compares in constant time.
func same(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

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
