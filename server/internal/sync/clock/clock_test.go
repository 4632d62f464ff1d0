package clock

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// day is the time of the system clock in frozen tests.
var day = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// open gives a clock frozen at day that ends with the test.
func open(t *testing.T) *Clock {
	c := New(nil)
	t.Cleanup(c.Close)
	c.Freeze(true)
	require.NoError(t, c.Set(day))
	return c
}

// diary notes what ran and when.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(c *Clock, name string) func(context.Context) {
	return func(context.Context) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.lines = append(d.lines, name+" "+c.Now().Sub(day).String())
	}
}

func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lines
}

func TestClockRunsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(nil)
		defer c.Close()
		start := time.Now().UTC()
		require.True(t, start.Equal(c.Now()))
		require.Equal(t, time.UTC, c.Now().Location())
		var ran []time.Duration
		c.AfterFunc(2*time.Hour, "second", func(context.Context) { ran = append(ran, c.Now().Sub(start)) })
		c.AfterFunc(time.Hour, "first", func(context.Context) { ran = append(ran, c.Now().Sub(start)) })
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		require.Equal(t, []time.Duration{time.Hour, 2 * time.Hour}, ran)
		require.Equal(t, 3*time.Hour, c.Now().Sub(start))
	})
}

// TestTurns: a function registered late for a place reserved early runs in that
// place, and a clock goes on behind the turns of another one.
func TestTurns(t *testing.T) {
	c := open(t)
	c.TurnsFrom(100)
	var d diary
	early := c.Turn()
	require.EqualValues(t, 101, early)
	c.AfterFunc(time.Hour, "b", d.note(c, "b"))
	late := c.Turn()
	c.AtTurn(day.Add(time.Hour), late, "c", d.note(c, "c"))
	c.AtTurn(day.Add(time.Hour), early, "a", d.note(c, "a"))
	c.TurnsFrom(7)
	require.Greater(t, c.Turn(), late, "turns never go back")
	report := advance(t, c, time.Hour)
	require.Equal(t, []string{"a", "b", "c"}, report.Ran)
	require.False(t, c.Advancing())
	c.AfterFunc(time.Hour, "within", func(context.Context) { require.True(t, c.Advancing()) })
	report = advance(t, c, time.Hour)
	require.Empty(t, report.Panicked)
}

func TestAdvanceOfARunningClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(nil)
		defer c.Close()
		start := c.Now()
		var at []time.Duration
		c.AfterFunc(time.Hour, "x", func(context.Context) {
			at = append(at, c.Now().Sub(start))
			time.Sleep(time.Minute) // real work takes real time, and the clock stops meanwhile
			at = append(at, c.Now().Sub(start))
		})
		report := advance(t, c, 24*time.Hour)
		require.Equal(t, []time.Duration{time.Hour, time.Hour}, at)
		require.Equal(t, start.Add(24*time.Hour), report.To)
		require.Equal(t, start.Add(24*time.Hour), c.Now())
		require.Equal(t, 24*time.Hour-time.Minute, c.Offset())
		time.Sleep(time.Second)
		require.Equal(t, start.Add(24*time.Hour+time.Second), c.Now(), "the clock runs on")
	})
}

func TestAdvanceIsRefused(t *testing.T) {
	c := open(t)
	_, err := c.Advance(t.Context(), -1)
	require.EqualError(t, err, "advance clock: -1ns is negative; time runs forwards only")
	far := time.Now().Add(farthest - time.Hour)
	require.NoError(t, c.Set(far))
	_, err = c.Advance(t.Context(), 365*24*time.Hour)
	require.ErrorContains(t, err, "advance clock: 8760h0m0s reaches too far: year ")
	require.ErrorContains(t, err, "is more than 290 years from the system's clock")
	require.Equal(t, far.UTC().Round(0), c.Now(), "it stays where it is")
	var within []error
	c.AfterFunc(0, "nested", func(ctx context.Context) {
		_, err := c.Advance(ctx, time.Hour)
		within = append(within, err, c.Settle(ctx))
	})
	require.NoError(t, c.Settle(t.Context()))
	require.Len(t, within, 2)
	for _, err := range within {
		require.ErrorIs(t, err, ErrWithin)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Advance(canceled, 0)
	require.ErrorIs(t, err, context.Canceled)
	c.Close()
	_, err = c.Advance(t.Context(), 0)
	require.ErrorIs(t, err, ErrClosed)
}

// TestAdvanceStopsWhereItsContextEnds: the work that never ends is named.
func TestAdvanceStopsWhereItsContextEnds(t *testing.T) {
	c := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	end := make(chan struct{})
	c.AfterFunc(time.Hour, "stubborn", func(context.Context) {
		cancel()
		<-end
	})
	report, err := c.Advance(ctx, 2*time.Hour)
	require.EqualError(t, err, "advance clock: context canceled; still running: stubborn")
	require.Equal(t, day.Add(time.Hour), report.To)
	require.Equal(t, day.Add(time.Hour), c.Now())
	require.Equal(t, []string{"stubborn"}, c.Running())
	close(end)
	require.NoError(t, c.Settle(t.Context()))
	require.Empty(t, c.Running())
}

func TestAdvanceSurvivesPanics(t *testing.T) {
	c := open(t)
	var told []string
	c.OnPanic(func(name string, value any, stack []byte) {
		told = append(told, name, value.(string))
		require.Contains(t, string(stack), "TestAdvanceSurvivesPanics")
	})
	var d diary
	c.AfterFunc(time.Hour, "bad", func(context.Context) { panic("oh") })
	c.AfterFunc(2*time.Hour, "good", d.note(c, "good"))
	report := advance(t, c, 3*time.Hour)
	require.Equal(t, []string{"bad", "oh"}, told)
	require.Equal(t, []string{"bad"}, report.Panicked)
	require.Equal(t, 2, report.Count)
	require.Equal(t, []string{"good 2h0m0s"}, d.read())
}

func TestFreeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(nil)
		defer c.Close()
		start := c.Now()
		ran := 0
		c.AfterFunc(time.Minute, "x", func(context.Context) { ran++ })
		c.Freeze(true)
		c.Freeze(true)
		time.Sleep(time.Hour)
		require.Equal(t, start, c.Now())
		require.Equal(t, -time.Hour, c.Offset())
		require.Zero(t, ran)
		c.AfterFunc(0, "now", func(context.Context) { ran += 10 })
		require.NoError(t, c.Settle(t.Context()))
		require.Equal(t, 10, ran, "what is due on a frozen clock runs")
		c.Freeze(false)
		require.Equal(t, start, c.Now())
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 11, ran)
		require.Equal(t, start.Add(time.Minute), c.Now())
	})
}

func TestSetRunsWhatIsOverdue(t *testing.T) {
	c := open(t)
	var d diary
	c.AfterFunc(2*time.Hour, "b", d.note(c, "b"))
	require.NoError(t, c.Set(day.Add(3*time.Hour)))
	require.NoError(t, c.Settle(t.Context()))
	require.Equal(t, []string{"b 3h0m0s"}, d.read())
	require.NoError(t, c.Set(day.Add(-time.Hour)))
	require.Equal(t, day.Add(-time.Hour), c.Now())
	require.ErrorContains(t, c.Set(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)), "year 10000 is outside of 1970 to 9999")
	require.ErrorContains(t, c.Set(time.Time{}), "year 1 is outside of 1970 to 9999")
	// Beyond what a Duration holds the clock would stop, and a snapshot of it
	// would come back in another century.
	require.ErrorContains(t, c.Set(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)), "year 9999 is more than 290 years from the system's clock")
	c.AfterFunc(time.Hour, "setter", func(context.Context) { require.ErrorIs(t, c.Set(day), ErrAdvancing) })
	report := advance(t, c, time.Hour)
	require.Empty(t, report.Panicked)
}

func TestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := New(nil), New(nil)
		defer a.Close()
		defer b.Close()
		advance(t, a, 48*time.Hour)
		require.Equal(t, State{Offset: 48 * time.Hour}, a.State())
		require.NoError(t, b.Restore(a.State()))
		require.Equal(t, a.Now(), b.Now())
		a.Freeze(true)
		state := a.State()
		require.Equal(t, State{Frozen: true, FrozenAt: a.Now()}, state)
		time.Sleep(time.Hour)
		require.NoError(t, b.Restore(state))
		require.Equal(t, a.Now(), b.Now())
		require.Error(t, b.Restore(State{Frozen: true}))
		require.Equal(t, state, b.State(), "a bad state changes nothing")
		require.NoError(t, b.Restore(State{}))
		require.True(t, time.Now().Equal(b.Now()))
	})
}

// TestNowNeverRunsBack: the system clock may be set back under us.
func TestNowNeverRunsBack(t *testing.T) {
	now := day
	c := New(func() time.Time { return now })
	defer c.Close()
	require.Equal(t, day, c.Now())
	now = day.Add(-time.Hour)
	require.Equal(t, day, c.Now())
	now = day.Add(time.Second)
	require.Equal(t, day.Add(time.Second), c.Now())
}

// TestAYearOfMinutes is about speed by its very size: one year of a schedule
// that runs every minute.
func TestAYearOfMinutes(t *testing.T) {
	c := open(t)
	count := 0
	var every func(context.Context)
	every = func(context.Context) {
		count++
		c.AfterFunc(time.Minute, "schedule", every)
	}
	c.AfterFunc(time.Minute, "schedule", every)
	report := advance(t, c, 365*24*time.Hour)
	require.Equal(t, 365*24*60, count)
	require.Equal(t, count, report.Count)
	require.Len(t, report.Ran, 1000)
}

// advance moves a clock on and gives what happened.
func advance(t interface {
	require.TestingT
	Context() context.Context
}, c *Clock, d time.Duration) Report {
	report, err := c.Advance(t.Context(), d)
	require.NoError(t, err)
	return report
}
