// Package meter adds up the calls of one simulated destination: how many there
// were, how long they took, and how many ran at once. It sees the answers to
// calls, and nothing of how they are made.
package meter

import (
	"maps"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
)

// Meter adds up what happens to the calls of one simulator. Figures and
// Handler are two views of it.
type Meter struct {
	clock   func() time.Time
	calls   level
	batches level
	methods map[string]*method // read-only; unknown methods share "other"

	mu     sync.Mutex
	since  time.Time
	faults map[string]int64
}

// otherMethod gathers everything that is not one of the six methods, since
// clients choose the names.
const otherMethod = "other"

// method adds up the calls of one method.
type method struct {
	mu sync.Mutex
	sums
	slots [rateSlots]slot
	peak  slot
}

// sums are the counts, copied for a reader.
type sums struct {
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

// New makes a meter that takes the time from clock.
func New(clock func() time.Time) *Meter {
	m := &Meter{clock: clock, methods: map[string]*method{}}
	for _, name := range append(rpc.Methods(), otherMethod) {
		m.methods[name] = &method{}
	}
	m.Reset()
	return m
}

// Reset forgets all but the calls that are under way.
func (m *Meter) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.since, m.faults = m.clock(), map[string]int64{}
	m.calls.rest()
	m.batches.rest()
	for _, one := range m.methods {
		one.mu.Lock()
		one.sums = sums{statuses: map[int]int64{}}
		one.slots, one.peak = [rateSlots]slot{}, slot{}
		one.mu.Unlock()
	}
}

// Call is a call that has ended.
type Call struct {
	Method  string
	Batch   bool // BeginBatch was called for it
	Refused bool // it has no result
	Status  int  // HTTP status; 0: the connection ended without an answer
	// Records as they were sent, and as they were answered.
	Records, Succeeded, Failed int
	BytesIn, BytesOut          int
	Start, End                 time.Time
}

// Begin notes the beginning of a call.
func (m *Meter) Begin() { m.calls.up() }

// BeginBatch notes that the call under way is a batch.
func (m *Meter) BeginBatch() { m.batches.up() }

// Done notes the end of a call.
func (m *Meter) Done(c *Call) {
	m.calls.down()
	if c.Batch {
		m.batches.down()
	}
	one := m.methods[c.Method]
	if one == nil {
		one = m.methods[otherMethod]
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.calls++
	if c.Refused || c.Status < 200 || c.Status > 299 {
		one.errors++
	}
	one.records += int64(c.Records)
	one.succeeded += int64(c.Succeeded)
	one.failed += int64(c.Failed)
	one.bytesIn += int64(c.BytesIn)
	if c.Status != 0 {
		one.bytesOut += int64(c.BytesOut)
	}
	one.statuses[c.Status]++
	one.observe(max(c.End.Sub(c.Start), 0))
	one.tick(c.End.Unix(), int64(c.Records))
}

// observe adds one duration; the lock is held.
func (one *method) observe(d time.Duration) {
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
func (one *method) tick(second, records int64) {
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
func (s *sums) quantile(q float64) time.Duration {
	rank, seen := int64(math.Ceil(q*float64(s.calls))), int64(0)
	for bucket, n := range s.fine {
		if seen += int64(n); n > 0 && seen >= rank {
			return min(bucketEnd(bucket), s.longest)
		}
	}
	return s.longest
}

// snapshot copies the sums of every method that was called.
func (m *Meter) snapshot() map[string]sums {
	out := map[string]sums{}
	for name, one := range m.methods {
		one.mu.Lock()
		if one.calls > 0 {
			copied := one.sums
			copied.statuses = maps.Clone(copied.statuses)
			out[name] = copied
		}
		one.mu.Unlock()
	}
	return out
}

// FaultFired counts a fault that has struck.
func (m *Meter) FaultFired(kind string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults[kind]++
}

func (m *Meter) firedFaults() map[string]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.faults)
}

// level counts calls under way and remembers the maximum.
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
