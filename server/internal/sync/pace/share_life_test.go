package pace

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// quiet is longer than any share goes on by itself.
const quiet = time.Minute

// passes takes one request, and waits for it up to a time.
func passes(l *Limiter, most time.Duration) bool {
	for end := time.Now().Add(most); ; {
		wait := l.Take(time.Now(), nil, 0)
		if wait <= 0 {
			l.Written(time.Now(), nil, 0)
			return true
		}
		if time.Now().Add(wait).After(end) {
			return false
		}
		time.Sleep(wait)
	}
}

// TestWhatOneProcessHearsAllHear: a limit within a second, a pause at the next
// exchange, and the end of both.
func TestWhatOneProcessHearsAllHear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(1000)
		one, other := NewSharedLimiter(ShareOptions{Source: x}), NewSharedLimiter(ShareOptions{Source: x})
		var all sync.WaitGroup
		busy := crowd{limiter: other}
		begin := time.Now()
		all.Go(func() { busy.work(2, time.Millisecond, begin.Add(4*time.Second)) })
		time.Sleep(time.Second)
		one.Announce(20)
		one.Announce(20)
		time.Sleep(time.Second)
		require.Equal(t, int64(20), other.requests.Share.rate(), "within a second")
		one.Pause(time.Now().Add(time.Second))
		require.Equal(t, time.Second, one.Rest(time.Now()))
		time.Sleep(time.Second / 2)
		require.InDelta(t, time.Second/2, other.Rest(time.Now()), float64(10*time.Millisecond))
		all.Wait()
		var late []time.Time
		for _, at := range busy.sent {
			if at.Sub(begin) > 2500*time.Millisecond && at.Sub(begin) < 3*time.Second {
				late = append(late, at)
			}
		}
		require.Empty(t, late, "the other one rests, too")
		one.Pause(time.Now().Add(mostPause))
		time.Sleep(quiet)
		require.False(t, passes(other, time.Second))
		one.Reset()
		time.Sleep(quiet)
		require.True(t, passes(other, time.Hour), "somebody may have to ask first")
		require.Zero(t, other.Rest(time.Now()))
		require.Equal(t, int64(DefaultLimit), other.requests.Share.rate())
		time.Sleep(quiet)
	})
}

// TestAClockThatDoesNotRunIsCountedAlone: the window's time is another one then. A
// clock that runs ahead of the system's is none of its business.
func TestAClockThatDoesNotRunIsCountedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(5)
		x.fails = errors.New("gone")
		var frozen atomic.Bool
		frozen.Store(true)
		moved := func() time.Time { return time.Now().Add(1000 * time.Hour) }
		l := NewSharedLimiter(ShareOptions{Source: x, Now: moved, Runs: func() bool { return !frozen.Load() }})
		l.requests.Rate = 5
		stood := moved()
		for taken := 0; taken < 5; {
			wait := l.Take(stood, nil, 0)
			if stood = stood.Add(wait); wait == 0 {
				l.Written(stood, nil, 0)
				taken++
			}
		}
		require.Positive(t, l.Take(stood, nil, 0), "five in this second, by the clock that stands")
		l.Pause(stood.Add(time.Minute))
		require.Equal(t, time.Minute, l.Rest(stood))
		time.Sleep(quiet)
		require.Zero(t, x.times())

		frozen.Store(false)
		x.fails = nil
		l.Reset()
		l.Announce(5)
		l.Pause(moved().Add(mostPause))
		time.Sleep(quiet)
		require.InDelta(t, mostPause-quiet, x.rests().Sub(time.Now().Round(0)), float64(10*time.Millisecond), "in the window's time")
		l.Reset()
		l.Announce(5)
		require.Positive(t, l.Take(moved(), nil, 0), "the window is asked first")
		time.Sleep(20 * time.Millisecond)
		require.Zero(t, l.Take(moved(), nil, 0))
		l.Written(moved(), nil, 0)
		time.Sleep(quiet)
	})
}

// TestAMachineThatSlept: its monotonic clock stood still, and the one on the wall
// tells.
func TestAMachineThatSlept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(1000)
		s := NewShare(1000, ShareOptions{Source: x})
		for s.wait(1) > 0 {
			time.Sleep(time.Millisecond)
		}
		taken := time.Now()
		require.True(t, s.take(1))
		require.True(t, s.still(taken, 1))
		s.mu.Lock()
		s.wall = s.wall.Add(-time.Hour)
		s.mu.Unlock()
		require.False(t, s.still(taken, 1))
		require.Positive(t, s.wait(1), "what it held has lapsed")
		time.Sleep(quiet)
		s.mu.Lock()
		defer s.mu.Unlock()
		require.Zero(t, s.open+s.lost+s.ready)
	})
}

// TestAWindowThatCannotBeReached: nothing is sent when the last units are used, and
// everything goes on when it is back.
func TestAWindowThatCannotBeReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(100)
		l := NewSharedLimiter(ShareOptions{Source: x})
		c := crowd{limiter: l}
		begin := time.Now()
		var all sync.WaitGroup
		all.Go(func() { c.work(2, 0, begin.Add(8*time.Second)) })
		time.Sleep(2 * time.Second)
		x.mu.Lock()
		x.fails = errors.New("gone")
		x.mu.Unlock()
		time.Sleep(3 * time.Second)
		require.Equal(t, retryFirst, l.Take(time.Now(), nil, 0))
		asked := x.times()
		time.Sleep(time.Second)
		require.InDelta(t, asked+1, x.times(), 1, "it is asked more and more seldom")
		x.mu.Lock()
		x.fails = nil
		x.mu.Unlock()
		all.Wait()
		var during, after int
		for _, at := range c.sent {
			switch d := at.Sub(begin); {
			case d > 2400*time.Millisecond && d < 6*time.Second:
				during++
			case d > 7500*time.Millisecond:
				after++
			}
		}
		require.Zero(t, during)
		require.Positive(t, after)
		require.LessOrEqual(t, densest(c.sent), 100)
		time.Sleep(quiet)
	})
}

// TestRecordsOfPartsInSeveralProcesses: batches wait for all their records at once,
// and two that wait do not keep each other waiting.
func TestRecordsOfPartsInSeveralProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perSecond, batch = 100, 60
		requests, records := newTable(DefaultLimit), newTable(DefaultLimit)
		begin := time.Now()
		var mu sync.Mutex
		var sent []time.Time
		var all sync.WaitGroup
		for range 3 {
			l := NewSharedLimiter(ShareOptions{Source: requests})
			share := NewShare(perSecond, ShareOptions{Source: records})
			share.Announce(perSecond)
			p := Pacer{Share: share}
			all.Go(func() {
				for time.Since(begin) < 20*time.Second {
					if wait := l.Take(time.Now(), &p, batch); wait > 0 {
						time.Sleep(wait)
						continue
					}
					if !l.Still(time.Now(), &p, batch) {
						t.Error("nobody stood still")
					}
					mu.Lock()
					sent = append(sent, time.Now())
					mu.Unlock()
					l.Written(time.Now(), &p, batch)
				}
			})
		}
		all.Wait()
		require.Equal(t, 1, densest(sent[1:]))
		require.GreaterOrEqual(t, len(sent), 19, "one in each second")
		time.Sleep(quiet)
	})
}

// TestWhoeverStillSendsHasAllOfTheLimit: a share that is not used any more goes to the others.
func TestWhoeverStillSendsHasAllOfTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perSecond, batch = 1000, 100
		records := newTable(DefaultLimit)
		begin := time.Now()
		var mu sync.Mutex
		var sent []time.Time
		var all sync.WaitGroup
		for i := range 3 {
			l, share := NewLimiter(), NewShare(perSecond, ShareOptions{Source: records})
			share.Announce(perSecond)
			p := Pacer{Share: share}
			all.Go(func() {
				// Two of them have little to send.
				for left := 5 + 1000*(i/2); left > 0 && time.Since(begin) < 20*time.Second; {
					if wait := l.Take(time.Now(), &p, batch); wait > 0 {
						time.Sleep(wait)
						continue
					}
					mu.Lock()
					sent = append(sent, time.Now())
					mu.Unlock()
					l.Written(time.Now(), &p, batch)
					left--
				}
			})
		}
		all.Wait()
		require.LessOrEqual(t, densest(sent), perSecond/batch)
		require.GreaterOrEqual(t, len(sent), 19*perSecond/batch, "and nobody's share is lost")
		time.Sleep(quiet)
	})
}

// BenchmarkTake is what a request costs its sender: alone, and with a window that
// several processes share.
func BenchmarkTake(b *testing.B) {
	run := func(b *testing.B, l *Limiter) {
		for b.Loop() {
			now := time.Now()
			for wait := l.Take(now, nil, 0); wait > 0; wait = l.Take(now, nil, 0) {
				b.StopTimer()
				time.Sleep(wait)
				b.StartTimer()
				now = time.Now()
			}
			l.Written(now, nil, 0)
		}
	}
	b.Run("alone", func(b *testing.B) {
		l := NewLimiter()
		l.Announce(mostLimit)
		run(b, l)
	})
	b.Run("shared", func(b *testing.B) {
		x := newTable(mostLimit)
		l := NewSharedLimiter(ShareOptions{Source: x})
		l.Announce(mostLimit)
		run(b, l)
	})
}

// TestWhatIsGivenUpIsForgotten: by the share, and by the count that goes on when the
// clock is moved.
func TestWhatIsGivenUpIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewSharedLimiter(ShareOptions{Source: newTable(10)})
		records := &Pacer{Share: NewShare(100, ShareOptions{Source: newTable(100)})}
		take := func() time.Time {
			for {
				now := time.Now()
				wait := l.Take(now, records, 7)
				if wait <= 0 {
					return now
				}
				time.Sleep(wait)
			}
		}
		for lapses := range 3 {
			taken := take()
			require.True(t, l.Still(taken, records, 7))
			for _, s := range []*Share{l.requests.Share, records.Share}[:min(lapses+1, 2)] {
				s.mu.Lock()
				s.lose(time.Now())
				s.mu.Unlock()
			}
			require.False(t, l.Still(taken, records, 7))
			require.Zero(t, l.requests.open)
			require.Zero(t, records.open)
		}
		taken := take()
		require.True(t, l.Still(taken, records, 7))
		l.Written(time.Now(), records, 7)
		time.Sleep(quiet)
		for _, s := range []*Share{l.requests.Share, records.Share} {
			s.mu.Lock()
			require.Zero(t, s.open+s.lost+s.ready)
			s.mu.Unlock()
		}
	})
}
