package destsim

import (
	"maps"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
)

// meter adds up what happens to the calls of one simulator. Figures and
// metrics are two views of it.
type meter struct {
	clock   func() time.Time
	calls   level
	batches level
	methods map[string]*methodMeter // read-only; unknown methods share "other"

	mu     sync.Mutex
	since  time.Time
	faults map[string]int64
}

// otherMethod gathers everything that is not one of the six methods, since
// clients choose the names.
const otherMethod = "other"

// methodMeter adds up the calls of one method.
type methodMeter struct {
	mu sync.Mutex
	methodSums
	slots [rateSlots]slot
	peak  slot
}

// methodSums are the sums that are copied for a reader.
type methodSums struct {
	calls, errors              int64
	records, succeeded, failed int64
	bytesIn, bytesOut          int64
	seconds                    float64
	longest                    time.Duration
	statuses                   map[int]int64
	bounds                     [len(durationBound)]uint64 // calls by durationBound, not cumulative
	fine                       [64 << fineBits]uint32
}

// slot counts one second.
type slot struct{ second, calls, records int64 }

const (
	rateSlots = 16
	rateSpan  = 10 // whole seconds that a rate is taken over
	fineBits  = 4  // 16 buckets for each power of two: within 6.25 %
)

func newMeter(clock func() time.Time) *meter {
	m := &meter{clock: clock, methods: map[string]*methodMeter{}}
	for _, name := range append(rpc.Methods(), otherMethod) {
		m.methods[name] = &methodMeter{}
	}
	m.reset()
	return m
}

// reset forgets all but the calls that are under way.
func (m *meter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.since, m.faults = m.clock(), map[string]int64{}
	m.calls.rest()
	m.batches.rest()
	for _, one := range m.methods {
		one.mu.Lock()
		one.methodSums = methodSums{statuses: map[int]int64{}}
		one.slots, one.peak = [rateSlots]slot{}, slot{}
		one.mu.Unlock()
	}
}

// seams note the beginning of calls and of batches.
func (m *meter) seams() seams {
	return seams{
		http: func(c *call) bool {
			m.calls.up()
			return false
		},
		parsed: func(c *call) {
			if c.method == rpc.MethodSyncBatch {
				c.metered = true
				m.batches.up()
			}
		},
	}
}

// done notes a finished call.
func (m *meter) done(c *call) {
	m.calls.down()
	if c.metered {
		m.batches.down()
	}
	one := m.methods[c.method]
	if one == nil {
		one = m.methods[otherMethod]
	}
	records := 0 // as sent; refused batches count too
	if c.isBatchText() {
		records = c.batch.Len()
	}
	succeeded, failed := c.recordCounts()
	status := c.answeredStatus()
	one.mu.Lock()
	defer one.mu.Unlock()
	one.calls++
	if c.err != nil || status < 200 || status > 299 {
		one.errors++
	}
	one.records += int64(records)
	one.succeeded += int64(succeeded)
	one.failed += int64(failed)
	one.bytesIn += int64(len(c.body))
	if status != 0 {
		one.bytesOut += int64(len(c.reply.sent))
	}
	one.statuses[status]++
	one.observe(max(c.end.Sub(c.start), 0))
	one.tick(c.end.Unix(), int64(records))
}

// observe adds one duration; the lock is held.
func (one *methodMeter) observe(d time.Duration) {
	one.seconds += d.Seconds()
	one.longest = max(one.longest, d)
	one.fine[fineBucket(d)]++
	for i, bound := range durationBound {
		if d.Seconds() <= bound {
			one.bounds[i]++
			break
		}
	}
}

// tick counts one call in its second; the lock is held. The most in a second
// shows whether a client kept to the speed that was declared (spec 8).
func (one *methodMeter) tick(second, records int64) {
	s := &one.slots[uint64(second)%rateSlots]
	if s.second != second {
		*s = slot{second: second}
	}
	s.calls++
	s.records += records
	one.peak.calls, one.peak.records = max(one.peak.calls, s.calls), max(one.peak.records, s.records)
}

// fineBucket numbers buckets that grow with the value; bucketEnd is the
// largest value of one.
func fineBucket(d time.Duration) int {
	n := uint64(d) + 1<<fineBits
	shift := bits.Len64(n) - 1 - fineBits
	return shift<<fineBits + int(n>>shift) - 1<<fineBits
}

func bucketEnd(bucket int) time.Duration {
	shift, low := bucket>>fineBits, bucket&(1<<fineBits-1)
	return time.Duration((uint64(1<<fineBits+low+1)<<shift - 1) - 1<<fineBits)
}

// quantile is the value that the share q of the calls does not exceed.
func (s *methodSums) quantile(q float64) time.Duration {
	rank, seen := int64(math.Ceil(q*float64(s.calls))), int64(0)
	for bucket, n := range s.fine {
		if seen += int64(n); n > 0 && seen >= rank {
			return min(bucketEnd(bucket), s.longest)
		}
	}
	return s.longest
}

// snapshot copies the sums of every method that was called.
func (m *meter) snapshot() map[string]methodSums {
	out := map[string]methodSums{}
	for name, one := range m.methods {
		one.mu.Lock()
		if one.calls > 0 {
			sums := one.methodSums
			sums.statuses = maps.Clone(sums.statuses)
			out[name] = sums
		}
		one.mu.Unlock()
	}
	return out
}

func (m *meter) faultFired(kind string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults[kind]++
}

func (m *meter) firedFaults() map[string]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.faults)
}

// level counts what is under way and remembers the most.
type level struct{ current, most atomic.Int64 }

func (l *level) up() {
	n := l.current.Add(1)
	for {
		most := l.most.Load()
		if n <= most || l.most.CompareAndSwap(most, n) {
			return
		}
	}
}

func (l *level) down()      { l.current.Add(-1) }
func (l *level) now() int64 { return l.current.Load() }
func (l *level) rest()      { l.most.Store(l.current.Load()) }
