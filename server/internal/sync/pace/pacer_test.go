package pace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestNoWindowOfASecondHoldsMoreThanTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(1, 5000).Draw(t, "rate")
		p := Pacer{Rate: rate}
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
				d := p.Wait(now, n)
				if d <= 0 {
					break
				}
				require.LessOrEqual(t, d, window+late+time.Duration(n)*window/time.Duration(rate))
				now = now.Add(d)
			}
			p.Take(now, n)
			// Until it is written time passes, and nothing else may slip in.
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "connecting")) / time.Duration(rapid.SampledFrom([]int{1, 100, 1_000_000}).Draw(t, "scale")))
			p.Written(now, n)
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
	p := Pacer{Rate: 100}
	now := epoch
	var largest time.Duration
	for range 1000 {
		d := p.Wait(now, 1)
		largest = max(largest, d)
		now = now.Add(d)
		p.Take(now, 1)
		p.Written(now, 1)
	}
	require.Less(t, largest, 50*time.Millisecond, "no burst and no pause of a second")
	require.InDelta(t, 10.0, now.Sub(epoch).Seconds(), 0.2)
}

func TestAClockThatIsSetBackDoesNotStopTheSending(t *testing.T) {
	p := Pacer{Rate: 10}
	for range 10 {
		now := epoch.Add(p.Wait(epoch, 1))
		p.Take(now, 1)
		p.Written(now, 1)
	}
	require.LessOrEqual(t, p.Wait(epoch.Add(-time.Hour), 1), window)
}

// TestWhatIsNotWrittenCountsInEveryWindow: batches whose connections are slow to
// come up do not pile up.
func TestWhatIsNotWrittenCountsInEveryWindow(t *testing.T) {
	p := Pacer{Rate: 10}
	now := epoch
	for range 10 {
		now = now.Add(p.Wait(now, 1))
		p.Take(now, 1)
	}
	now = now.Add(time.Hour)
	for range 5 {
		require.Equal(t, slack, p.Wait(now, 1), "ten are on their way")
	}
	for range 10 {
		p.Written(now, 1)
	}
	require.Equal(t, window+late, p.Wait(now, 1))
	now = now.Add(window + late)
	require.Zero(t, p.Wait(now, 1))
	p.Rate = 0
	p.Take(now, 1)
	p.Rate = 1
	p.Written(now, 1)
	require.Positive(t, p.Wait(now, 1), "a limit that is named while a call is under way counts the call")
}

// TestClockSetBack: the remaining wait keeps its length, of a rate and of a pause,
// also when nothing of the last second is remembered.
func TestClockSetBack(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := &Pacer{Rate: 10}
	require.Zero(t, p.Wait(now, 100))
	p.Take(now, 100)
	p.Written(now, 100)
	later := now.Add(3 * time.Second)
	left := p.Wait(later, 100)
	require.Greater(t, left, 5*time.Second)
	require.Equal(t, left, p.Wait(later.Add(-time.Hour), 100))
	require.Zero(t, p.Wait(later.Add(-time.Hour+left), 100))

	l := NewLimiter()
	require.Zero(t, l.Take(now, nil, 0))
	l.Written(now, nil, 0)
	l.Pause(now.Add(30 * time.Second))
	require.Equal(t, 20*time.Second, l.Rest(now.Add(10*time.Second)))
	require.Equal(t, 20*time.Second, l.Rest(now.Add(-time.Hour)))
	require.Equal(t, 20*time.Second, l.Take(now.Add(-time.Hour), nil, 0))
	require.Zero(t, l.Rest(now.Add(-time.Hour+20*time.Second)))
}
