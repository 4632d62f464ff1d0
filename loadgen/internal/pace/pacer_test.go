package pace

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// dueWithin lists the intended times below an end, in milliseconds.
func dueWithin(s *Schedule, end time.Duration) []float64 {
	var list []float64
	for {
		at := s.next()
		if at >= int64(end) {
			return list
		}
		list = append(list, float64(at)/1e6)
	}
}

func TestScheduleOfOneRate(t *testing.T) {
	require.Equal(t, []float64{0, 250, 500, 750}, dueWithin(NewSchedule(constant(4), Burst{}), time.Second))
	require.Len(t, dueWithin(NewSchedule(constant(50_000), Burst{}), 2*time.Second), 100_000)
	require.Len(t, dueWithin(NewSchedule(constant(0.5), Burst{}), 10*time.Second), 5)
}

func TestScheduleOfStages(t *testing.T) {
	// 1 s at 10, a ramp to 30 in 2 s (40 requests), then 30 for ever.
	stages := []Stage{{time.Second, 10, 10}, {2 * time.Second, 10, 30}, {time.Second, 30, 30}}
	count := func(from, to time.Duration) (n int) {
		for _, at := range dueWithin(NewSchedule(stages, Burst{}), to) {
			if at >= float64(from)/1e6 {
				n++
			}
		}
		return n
	}
	require.Equal(t, 10, count(0, time.Second))
	require.InDelta(t, 40, count(time.Second, 3*time.Second), 1)
	require.InDelta(t, 15, count(time.Second, 2*time.Second), 1)
	require.InDelta(t, 60, count(3*time.Second, 5*time.Second), 1)
	s := NewSchedule(stages, Burst{})
	for at, want := range map[time.Duration]float64{0: 10, 2 * time.Second: 20, 3 * time.Second: 30, time.Hour: 30} {
		require.InDelta(t, want, s.RateAt(int64(at)), 1e-9)
	}
}

func TestScheduleStartsFromNothingAndEnds(t *testing.T) {
	up := dueWithin(NewSchedule([]Stage{{10 * time.Second, 0, 10}}, Burst{}), 10*time.Second)
	require.Len(t, up, 50)
	require.Zero(t, up[0])
	down := NewSchedule([]Stage{{10 * time.Second, 10, 0}}, Burst{})
	require.InDelta(t, 50, len(dueWithin(down, time.Hour)), 1)
	require.EqualValues(t, never, down.next())
	pause := dueWithin(NewSchedule([]Stage{{time.Second, 2, 2}, {time.Second, 0, 0}, {time.Second, 2, 2}}, Burst{}), 3*time.Second)
	require.Equal(t, []float64{0, 500, 2000, 2500}, pause)
}

func TestScheduleNeverGoesBack(t *testing.T) {
	for _, s := range []*Schedule{
		NewSchedule([]Stage{{time.Second, 1000, 3}, {time.Second, 3, 1000}, {time.Second, 0, 7.3}}, Burst{Size: 3, Every: 70 * time.Millisecond}),
		NewSchedule(nil, Burst{Size: 5, Every: time.Second}),
	} {
		last := int64(0)
		for range 5000 {
			at := s.next()
			require.GreaterOrEqual(t, at, last)
			last = at
		}
	}
	require.Equal(t, []float64{0, 0, 0, 1000, 1000, 1000}, dueWithin(NewSchedule(nil, Burst{Size: 3, Every: time.Second}), 2*time.Second))
}

// paced runs a pacer over some connections, each of which "works" by calling
// serve, and gives the intended and the real time of every request.
func paced(t *testing.T, s *Schedule, connections int, catchUp float64, until time.Duration, serve func(c Clock, n int64)) (intended, real []int64, p *Pacer) {
	t.Helper()
	c := NewClock()
	p = New(c, s, connections, catchUp)
	p.Until = int64(until)
	var mu sync.Mutex
	var done sync.WaitGroup
	var n atomic.Int64
	for range connections {
		wake := make(chan struct{}, 1)
		done.Go(func() {
			for {
				at, _, ok := p.Take(wake)
				if !ok {
					return
				}
				now := c.Now()
				mu.Lock()
				intended, real = append(intended, at), append(real, now)
				mu.Unlock()
				serve(c, n.Add(1))
			}
		})
	}
	var stop atomic.Bool
	p.Run(&stop)
	done.Wait()
	return intended, real, p
}

func TestPacerSendsEveryRequestOnce(t *testing.T) {
	intended, real, p := paced(t, NewSchedule(constant(5000), Burst{}), 8, 0, 200*time.Millisecond, func(Clock, int64) {})
	require.EqualValues(t, 1000, int64(len(intended))+p.Unsent(int64(200*time.Millisecond)))
	seen := map[int64]bool{}
	for i, at := range intended {
		require.False(t, seen[at], "request of %d twice", at)
		seen[at] = true
		require.GreaterOrEqual(t, real[i], at, "sent before its time")
	}
}

// TestPacerNeverCatchesUpInABurst: one connection that stops for a while leaves
// a backlog. It is worked off at no more than twice the rate.
func TestPacerNeverCatchesUpInABurst(t *testing.T) {
	const rate, stall = 2000, 100 * time.Millisecond
	blocked := func(c Clock, n int64) {
		if n == 20 {
			time.Sleep(stall) // the target's stall, not the test's patience
		}
	}
	intended, real, p := paced(t, NewSchedule(constant(rate), Burst{}), 1, 0, 300*time.Millisecond, blocked)
	late := 0
	for i := range intended {
		if real[i]-intended[i] > int64(stall)/2 {
			late++
		}
	}
	require.Greater(t, late, 50, "those who waited must show their wait")
	for i := 40; i < 20+late; i++ {
		require.True(t, p.queued[i].Load(), "request %d is held back by the catch-up: it is the target's queue", i)
	}
	// From the end of the stall on: in no stretch more than twice the rate.
	from := 20
	for i := from; i+40 < len(real); i++ {
		took := time.Duration(real[i+40] - real[i])
		require.Greater(t, took, 40*time.Second/rate/2*9/10-time.Millisecond, "a burst after request %d: 40 in %s", i, took)
	}
	intended, real, _ = paced(t, NewSchedule(constant(rate), Burst{}), 1, math.Inf(1), 300*time.Millisecond, blocked)
	fastest := time.Hour
	for i := from; i+40 < len(real); i++ {
		fastest = min(fastest, time.Duration(real[i+40]-real[i]))
	}
	require.Less(t, fastest, 40*time.Second/rate/2, "asked for a burst, and got none")
	require.NotEmpty(t, intended)
}

func TestPacerEndsWhereNothingIsTaken(t *testing.T) {
	p := New(NewClock(), NewSchedule(constant(10_000), Burst{}), 1, 0)
	p.Until = int64(20 * time.Millisecond)
	var stop atomic.Bool
	p.Run(&stop)
	require.LessOrEqual(t, p.released.Load(), p.slack)
	require.EqualValues(t, 200, p.Unsent(int64(20*time.Millisecond)))
}

func TestPacerTakesANewLimit(t *testing.T) {
	c := NewClock()
	p := New(c, NewSchedule(constant(1), Burst{}), 1, 0)
	p.Until, p.slack = int64(150*time.Millisecond), 1000
	p.Limit(2000)
	var stop atomic.Bool
	p.Run(&stop)
	require.InDelta(t, 300, p.released.Load(), 5)
}

// Unsent requests are counted without a loop over them.
func TestUnsentIsCountedAtOnce(t *testing.T) {
	stages := [][]Stage{
		constant(1000), {{time.Second, 0, 700}, {time.Second / 2, 30, 30}, {time.Second, 900, 0}}, {{time.Second, 3, 0.1}, {time.Second, 0, 0}, {time.Second, 0.3, 7}}, nil,
	}
	for _, b := range []Burst{{}, {Size: 7, Every: 130 * time.Millisecond}} {
		for i, st := range stages {
			for _, most := range []int64{0, 5, 900} {
				for _, end := range []time.Duration{0, 1, time.Second, 1700 * time.Millisecond, 4 * time.Second} {
					want := int64(len(dueWithin(NewSchedule(st, b), end)))
					if most > 0 {
						want = min(want, most)
					}
					p := New(Clock{}, NewSchedule(st, b), 1, 2)
					p.Most = most
					require.Equal(t, want, p.Unsent(int64(end)), "stages %d, %v, at most %d until %s", i, b, most, end)
				}
			}
		}
	}
	month := New(Clock{}, NewSchedule(constant(1e7), Burst{Size: 1000, Every: time.Millisecond}), 1, 2)
	require.EqualValues(t, 11e6*(30*24*time.Hour).Seconds(), month.Unsent(int64(30*24*time.Hour)))
}

// TestAPauseIsNotMadeUpFor: requests due during the pause are left out.
func TestAPauseIsNotMadeUpFor(t *testing.T) {
	c := NewClock()
	p := New(c, NewSchedule(constant(1000), Burst{}), 4, 0)
	p.turn.Lock()
	p.paused = int64(time.Second)
	p.at, p.shift = int64(time.Second), 0
	p.resume(int64(5 * time.Second))
	require.EqualValues(t, 5*time.Second, p.at)
	require.EqualValues(t, 4*time.Second, p.shift)
	p.turn.Unlock()
	require.EqualValues(t, 1000, p.AskedAt(NewSchedule(constant(1000), Burst{}), 1))
	p.changes = []Change{{int64(time.Second), 10}, {int64(3 * time.Second), 30}}
	require.EqualValues(t, 10, p.AskedAt(p.plan, int64(2*time.Second)))
	require.EqualValues(t, 30, p.AskedAt(p.plan, int64(9*time.Second)))
}
