package pace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// pause is a time in which a process stands still, or does not reach the window.
type pause struct{ at, length time.Duration }

// fate is what a process meets.
type fate struct {
	senders int
	busy    time.Duration
	killed  time.Duration // 0: never
	frozen  []pause
	cut     []pause
	ways    []time.Duration // of exchanges, there and back
	connect []time.Duration // from the moment it was let go to the first byte
	sizes   []int64         // of batches
	limits  []Units         // announced, at moments since the beginning
	pauses  []pause         // announced
}

func drawFate(t *rapid.T, limit, records int64) fate {
	some := func(label string, most time.Duration) time.Duration {
		scale := rapid.SampledFrom([]int64{1, 10, 100}).Draw(t, label+" scale")
		return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, label) / scale)
	}
	pauses := func(label string, least, n int, most time.Duration) (list []pause) {
		for range rapid.IntRange(least, n).Draw(t, label+" times") {
			at := time.Duration(rapid.Int64Range(0, int64(4*time.Second)).Draw(t, label+" at"))
			list = append(list, pause{at, time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, label))})
		}
		return list
	}
	f := fate{
		senders: rapid.IntRange(1, 12).Draw(t, "senders"), busy: some("busy", 100*time.Millisecond),
		frozen: pauses("frozen", 0, 3, 2500*time.Millisecond), cut: pauses("cut", 0, 2, time.Second), pauses: pauses("429", 0, 1, time.Second),
	}
	if rapid.IntRange(0, 3).Draw(t, "mortal") == 0 {
		f.killed = some("killed", 4*time.Second)
	}
	slow := rapid.SampledFrom([]time.Duration{0, 0, 20 * time.Millisecond, 900 * time.Millisecond}).Draw(t, "connections")
	far := rapid.SampledFrom([]time.Duration{0, 3 * time.Millisecond, 200 * time.Millisecond}).Draw(t, "distance")
	for range 7 {
		f.ways = append(f.ways, some("way", far))
		f.connect = append(f.connect, some("connecting", slow))
		f.sizes = append(f.sizes, rapid.Int64Range(1, min(records, 20)).Draw(t, "records"))
	}
	for range rapid.IntRange(0, 1).Draw(t, "changes") {
		f.limits = append(f.limits, Units{epoch.Add(some("changed", 3*time.Second)), rapid.Int64Range(1, 2*limit).Draw(t, "to")})
	}
	return f
}

// world is several processes around the windows of requests and of records.
type world struct {
	begin             time.Time
	requests, records *table
	offset            time.Duration // of the windows' clock

	mu     sync.Mutex
	sent   []Units // of each request its records
	limits []Units // of requests, when the window heard of them
}

// process is one of them.
type process struct {
	*world
	fate
	mu    sync.Mutex
	turns int
}

// turn takes the next of a list.
func turn[T any](p *process, list []T) T {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns++
	return list[p.turns%len(list)]
}

func (p *process) dead() bool { return p.killed > 0 && time.Since(p.begin) >= p.killed }

// stand holds a process for as long as it is frozen.
func (p *process) stand() {
	for _, f := range p.frozen {
		if now := time.Since(p.begin); now >= f.at && now < f.at+f.length {
			time.Sleep(f.at + f.length - now)
		}
	}
}

func (p *process) isCut() bool {
	for _, c := range p.cut {
		if now := time.Since(p.begin); now >= c.at && now < c.at+c.length {
			return true
		}
	}
	return false
}

var errCut = errors.New("no way")

// link is the way of a process to one of the windows.
type link struct {
	*process
	table *table
}

// Exchange may be lost on the way there and on the way back.
func (l link) Exchange(_ context.Context, r Report) (Grant, error) {
	step := func() error {
		time.Sleep(turn(l.process, l.ways))
		l.stand()
		if l.isCut() || l.dead() {
			return errCut
		}
		return nil
	}
	asked := time.Now()
	if err := step(); err != nil {
		return Grant{}, err
	}
	x := l.table
	x.mu.Lock()
	now := time.Now().Round(0).Add(l.offset)
	move := func(list []Units, by time.Duration) (moved []Units) {
		for _, u := range list {
			moved = append(moved, Units{u.At.Round(0).Add(by), u.N})
		}
		return moved
	}
	// As far as it is known here, the window's clock may have shown now at any
	// moment since the question.
	high := now.Sub(asked.Round(0))
	r.Sent, r.Stray = move(r.Sent, high), move(r.Stray, high)
	if !r.Paused.IsZero() {
		r.Paused = r.Paused.Round(0).Add(high)
	}
	g := x.window.Exchange(now, r)
	state, err := x.window.MarshalBinary()
	if err == nil {
		x.window = &Window{}
		err = x.window.UnmarshalBinary(state)
	}
	if x == l.requests {
		l.world.mu.Lock()
		l.world.limits = append(l.world.limits, Units{time.Now(), g.Limit})
		l.world.mu.Unlock()
	}
	x.mu.Unlock()
	if err != nil {
		panic(err)
	}
	if err := step(); err != nil {
		return Grant{}, err
	}
	answered := time.Now()
	low := now.Sub(answered.Round(0))
	here := func(t time.Time, by time.Duration) time.Time { return answered.Add(t.Add(-by).Sub(answered.Round(0))) }
	for i, c := range g.Chunks {
		g.Chunks[i].At = here(c.At, low)
	}
	g.Until, g.Paused, g.Again = here(g.Until, high), here(g.Paused, low), here(g.Again, low)
	return g, nil
}

// send is one sender of a process.
func (p *process) send(l *Limiter, gate *sync.Mutex, records *Pacer, end time.Time) {
	for time.Now().Before(end) && !p.dead() {
		n := turn(p, p.sizes)
		sent := false
		var taken time.Time
		take := func() {
			for time.Now().Before(end) && !p.dead() {
				p.stand()
				gate.Lock()
				taken = time.Now()
				wait := l.Take(taken, records, n)
				gate.Unlock()
				if sent = wait <= 0; sent {
					return
				}
				time.Sleep(wait)
			}
		}
		take()
		for sent {
			time.Sleep(turn(p, p.connect))
			p.stand()
			gate.Lock()
			good := l.Still(taken, records, n)
			gate.Unlock()
			if good {
				break
			}
			sent = false
			take()
		}
		if !sent || p.dead() {
			return
		}
		now := time.Now()
		p.world.mu.Lock()
		p.sent = append(p.sent, Units{now, n})
		p.world.mu.Unlock()
		p.stand()
		gate.Lock()
		l.Written(time.Now(), records, n)
		gate.Unlock()
		time.Sleep(p.busy + 100*time.Microsecond)
	}
}

// live lets a process run to the end.
func (p *process) live(records int64, end time.Time) {
	var gate sync.Mutex
	l := NewSharedLimiter(ShareOptions{Source: link{p, p.requests}})
	share := &Pacer{Share: NewShare(records, ShareOptions{Source: link{p, p.records}})}
	var all sync.WaitGroup
	for range p.senders {
		all.Go(func() { p.send(l, &gate, share, end) })
	}
	for _, c := range p.fate.limits {
		all.Go(func() {
			time.Sleep(c.At.Sub(epoch))
			l.Announce(c.N)
		})
	}
	for _, c := range p.pauses {
		all.Go(func() {
			time.Sleep(c.at)
			l.Pause(time.Now().Add(c.length))
		})
	}
	all.Wait()
}

// check looks at every window of a second that begins with a request.
func (w *world) check(limit, records int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, first := range w.sent {
		var requests, n int64
		for _, u := range w.sent[i:] {
			if u.At.Sub(first.At) >= time.Second {
				break
			}
			requests, n = requests+1, n+u.N
		}
		// The limit that holds is the largest since a second before the window.
		most, before := int64(0), limit
		for _, l := range w.limits {
			switch at := l.At.Sub(first.At); {
			case at < -time.Second:
				before = l.N
			case at < time.Second:
				most = max(most, l.N)
			}
		}
		if most = max(most, before); requests > most {
			return fmt.Errorf("%d requests in the second after %s, and %d is the limit", requests, first.At.Sub(w.begin), most)
		}
		if n > records {
			return fmt.Errorf("%d records in the second after %s, and %d is the limit", n, first.At.Sub(w.begin), records)
		}
	}
	return nil
}

// TestNoSecondHoldsMoreThanTheLimitOverAllProcesses: whatever becomes of them
// (spec 8).
func TestNoSecondHoldsMoreThanTheLimitOverAllProcesses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.SampledFrom([]int64{1, 3, 10, 40, 300}).Draw(rt, "limit")
		records := rapid.SampledFrom([]int64{1, 60, 2000, 100_000}).Draw(rt, "records a second")
		fates := make([]fate, rapid.IntRange(1, 4).Draw(rt, "processes"))
		for i := range fates {
			fates[i] = drawFate(rt, limit, records)
		}
		offset := time.Duration(rapid.Int64Range(-5, 5).Draw(rt, "offset")) * time.Minute
		var broken error
		synctest.Test(t, func(*testing.T) {
			w := &world{begin: time.Now(), requests: newTable(limit), records: newTable(records), offset: offset}
			var all sync.WaitGroup
			for _, f := range fates {
				p := &process{world: w, fate: f}
				all.Go(func() { p.live(records, w.begin.Add(5*time.Second)) })
			}
			all.Wait()
			time.Sleep(time.Hour)
			broken = w.check(limit, records)
		})
		require.NoError(rt, broken)
	})
}
