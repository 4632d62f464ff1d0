package executor

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/destkit/destkit/server/clock"
	"github.com/destkit/destkit/server/destination"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestNoWindowOfASecondHoldsMoreThanTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(1, 5000).Draw(t, "rate")
		p := pacer{rate: rate}
		now := epoch
		type one struct {
			at time.Time
			n  int64
		}
		var sent []one
		for range rapid.IntRange(1, 60).Draw(t, "sends") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "idle")) / time.Duration(rapid.SampledFrom([]int{1, 100, 1_000_000}).Draw(t, "scale")))
			n := rapid.Int64Range(1, rate).Draw(t, "n")
			for tries := 0; ; tries++ {
				require.Less(t, tries, 50, "the wait is named too short again and again")
				d := p.wait(now, n)
				if d <= 0 {
					break
				}
				require.LessOrEqual(t, d, window+grain+time.Duration(n)*window/time.Duration(rate))
				now = now.Add(d)
			}
			p.take(now, n)
			sent = append(sent, one{now, n})
			sum := int64(0)
			for _, s := range sent {
				if s.at.After(now.Add(-window)) {
					sum += s.n
				}
			}
			require.LessOrEqual(t, sum, rate)
		}
	})
}

func TestThePaceIsEvenAndReachesTheRate(t *testing.T) {
	p := pacer{rate: 100}
	now := epoch
	var largest time.Duration
	for range 1000 {
		d := p.wait(now, 1)
		largest = max(largest, d)
		now = now.Add(d)
		p.take(now, 1)
	}
	require.Less(t, largest, 50*time.Millisecond, "no burst and no pause of a second")
	require.InDelta(t, 10.0, now.Sub(epoch).Seconds(), 0.2)
}

func TestAChangedLimitBindsFromTheNextSend(t *testing.T) {
	c := clock.New(nil)
	t.Cleanup(c.Close)
	c.Freeze(true)
	var all connections
	a := &gate{clock: c, limiter: all.of(1)}
	b := &gate{clock: c, limiter: all.of(1)}
	other := &gate{clock: c, limiter: all.of(2)}
	for range 100 {
		require.Zero(t, a.try(1))
	}
	a.limiter.announce(100)
	require.Positive(t, b.try(1), "100 went out in this second, over all runs of the connection")
	require.Zero(t, other.try(1), "another connection has its own")
	a.limiter.announce(0)
	require.Positive(t, b.try(1), "a header that says nothing changes nothing")
	a.limiter.announce(50_000)
	require.Zero(t, b.try(1))
}

func TestAPauseHoldsAllRunsOfAConnection(t *testing.T) {
	c := clock.New(nil)
	t.Cleanup(c.Close)
	c.Freeze(true)
	var all connections
	g := &gate{clock: c, limiter: all.of(1)}
	g.limiter.pause(c.Now().Add(time.Minute))
	g.limiter.pause(c.Now().Add(time.Second))
	require.Equal(t, time.Minute, g.try(1))
	passed := make(chan error, 1)
	ctx, done := c.Work(context.Background(), "send")
	go func() {
		defer done()
		passed <- g.pass(ctx, 1)
	}()
	_, err := c.Advance(t.Context(), 59*time.Second)
	require.NoError(t, err)
	require.Empty(t, passed)
	_, err = c.Advance(t.Context(), time.Second)
	require.NoError(t, err)
	require.NoError(t, <-passed)
}

func TestAClockThatIsSetBackDoesNotStopTheSending(t *testing.T) {
	p := pacer{rate: 10}
	for range 10 {
		now := epoch.Add(p.wait(epoch, 1))
		p.take(now, 1)
	}
	require.LessOrEqual(t, p.wait(epoch.Add(-time.Hour), 1), window)
}

func TestRetryAfterIsCapped(t *testing.T) {
	b := Backoff{}.withDefaults()
	for _, c := range []struct {
		text string
		want time.Duration
		ok   bool
	}{
		{"", 0, false}, {"soon", 0, false}, {"-5", 0, false}, {"1.5", 0, false},
		{"0", 0, true}, {"7", 7 * time.Second, true}, {" 7 ", 7 * time.Second, true},
		{"1000000000", time.Minute, true}, {"18446744073709551615", time.Minute, true}, {"99999999999999999999999", 0, false},
		{epoch.Add(9 * time.Second).Format("Mon, 02 Jan 2006 15:04:05 GMT"), 9 * time.Second, true},
		{epoch.Add(-time.Hour).Format("Mon, 02 Jan 2006 15:04:05 GMT"), 0, true},
		{epoch.Add(100 * time.Hour).Format("Mon, 02 Jan 2006 15:04:05 GMT"), time.Minute, true},
	} {
		got, ok := b.retryAfter(&destination.CallError{RetryAfter: c.text}, epoch)
		require.Equal(t, c.ok, ok, c.text)
		require.Equal(t, c.want, got, c.text)
	}
	_, ok := b.retryAfter(errors.New("other"), epoch)
	require.False(t, ok)
}

func TestBackoffDoublesUpToItsCap(t *testing.T) {
	b := Backoff{}.withDefaults()
	most := func() float64 { return 0 }
	var waits []time.Duration
	for try := 2; try < 10; try++ {
		waits = append(waits, b.before(try, most)/time.Second)
	}
	require.Equal(t, []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}, waits)
	require.Equal(t, 750*time.Millisecond, b.before(2, func() float64 { return 1 }))
}
