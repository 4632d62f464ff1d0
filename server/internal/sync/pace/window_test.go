package pace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// at is a moment in milliseconds.
func at(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }

func moments(chunks []Units) (ms []int) {
	for _, c := range chunks {
		for range c.N {
			ms = append(ms, int(c.At.Sub(epoch)/time.Millisecond))
		}
	}
	return ms
}

func TestAWindowGrantsAheadAndEvenly(t *testing.T) {
	w := NewWindow(20, time.Time{})
	g := w.Exchange(at(0), Report{Holder: 1, Want: 9})
	require.Equal(t, []int{0, 50, 100}, moments(g.Chunks), "of the next 150 ms")
	require.Equal(t, at(400), g.Until)
	require.Equal(t, at(50), g.Again, "it has its part")
	require.Equal(t, int64(20), g.Limit)

	// A second one asks, and finds room behind it.
	g = w.Exchange(at(1), Report{Holder: 2, Want: 9})
	require.Equal(t, []int{150}, moments(g.Chunks))
	require.Equal(t, at(51), g.Again)

	// What the first gives back is free at once.
	g = w.Exchange(at(60), Report{Holder: 1, Sent: []Units{{at(5), 1}, {at(51), 1}}})
	require.Empty(t, g.Chunks)
	g = w.Exchange(at(61), Report{Holder: 2, Keep: 1, Ready: 1, Want: 3})
	require.Equal(t, []int{150, 200}, moments(g.Chunks))
}

func TestWhatIsNotReportedCountsAtItsEnd(t *testing.T) {
	w := NewWindow(1, time.Time{})
	require.Equal(t, []int{0}, moments(w.Exchange(at(0), Report{Holder: 1, Want: 1}).Chunks))
	g := w.Exchange(at(399), Report{Holder: 1, Keep: 1, Ready: 1})
	require.Equal(t, at(799), g.Until, "renewed")
	require.False(t, g.Lapsed)
	require.Empty(t, w.Exchange(at(500), Report{Holder: 2, Want: 1}).Chunks)
	require.True(t, w.Exchange(at(800), Report{Holder: 1, Keep: 1}).Lapsed)
	require.Equal(t, []int{1800}, moments(w.Exchange(at(1601), Report{Holder: 2, Want: 1}).Chunks), "it may have been sent at 799")
	require.Empty(t, w.Exchange(at(1602), Report{Holder: 3, Want: 1, Stray: []Units{{at(1500), 1}}}).Chunks)
	require.Empty(t, w.Exchange(at(2300), Report{Holder: 3, Want: 1}).Chunks, "what was sent too late counts, too")
}

// TestALimitThatFewShare: each in turn, and one that does not come loses its turn.
func TestALimitThatFewShare(t *testing.T) {
	w := NewWindow(1, time.Time{})
	require.Equal(t, []int{0}, moments(w.Exchange(at(0), Report{Holder: 1, Want: 1}).Chunks))
	require.Equal(t, at(200), w.Exchange(at(0), Report{Holder: 2, Want: 1}).Again)
	require.Equal(t, at(201), w.Exchange(at(1), Report{Holder: 3, Want: 1}).Again)
	require.Equal(t, at(802), w.Exchange(at(2), Report{Holder: 1, Sent: []Units{{at(0), 1}}, Want: 1}).Again)
	require.Equal(t, at(800), w.Exchange(at(200), Report{Holder: 2, Want: 1}).Again)
	require.Equal(t, at(1000), w.Exchange(at(200), Report{Holder: 3, Want: 1}).Again)
	require.Empty(t, w.Exchange(at(802), Report{Holder: 1, Want: 1}).Chunks, "two are before it")
	require.Equal(t, []int{1000}, moments(w.Exchange(at(803), Report{Holder: 2, Want: 1}).Chunks))
	require.Empty(t, w.Exchange(at(1010), Report{Holder: 2, Sent: []Units{{at(1000), 1}}}).Chunks)
	require.Empty(t, w.Exchange(at(1790), Report{Holder: 1, Want: 1}).Chunks, "the third is dead, and nobody knows yet")
	require.Equal(t, []int{2000}, moments(w.Exchange(at(1810), Report{Holder: 1, Want: 1}).Chunks))
}

func TestUnitsThatBelongTogether(t *testing.T) {
	w := NewWindow(60, time.Time{})
	g := w.Exchange(at(0), Report{Holder: 1, Want: 100, Least: 50})
	require.Equal(t, []Units{{at(0), 50}}, g.Chunks, "ten more are of no use")
	g = w.Exchange(at(1), Report{Holder: 2, Want: 50, Least: 50})
	require.Empty(t, g.Chunks)
	g = w.Exchange(at(2), Report{Holder: 1, Sent: []Units{{at(1), 50}}, Want: 50, Least: 50})
	require.Empty(t, g.Chunks)
	require.Equal(t, at(804), w.Exchange(at(201), Report{Holder: 2, Want: 50, Least: 50}).Again)
	g = w.Exchange(at(810), Report{Holder: 2, Want: 50, Least: 50})
	require.Equal(t, []Units{{at(1004), 50}}, g.Chunks)
	// A batch that is larger than the limit has a second to itself.
	w = NewWindow(10, time.Time{})
	require.Equal(t, []Units{{at(0), 70}}, w.Exchange(at(0), Report{Holder: 1, Want: 70, Least: 70}).Chunks)
	require.Empty(t, w.Exchange(at(1), Report{Holder: 2, Want: 1}).Chunks)
}

func TestAPauseAndAChangedLimit(t *testing.T) {
	w := NewWindow(10, time.Time{})
	g := w.Exchange(at(0), Report{Holder: 1, Want: 1, Paused: at(5000)})
	require.Empty(t, g.Chunks)
	require.Equal(t, at(5000), g.Paused)
	require.Equal(t, at(5000), w.Exchange(at(10), Report{Holder: 2, Paused: at(3000)}).Paused, "the longer one counts")
	require.Equal(t, []int{5000}, moments(w.Exchange(at(4900), Report{Holder: 1, Want: 1}).Chunks))
	g = w.Exchange(at(4950), Report{Holder: 2, Want: 9, Reset: true, Limit: 1 << 60})
	require.Zero(t, g.Paused)
	require.Equal(t, int64(mostLimit), g.Limit)
	require.Equal(t, []Units{{at(4950), 9}}, g.Chunks)
}

func TestTheDatabasesClockIsSet(t *testing.T) {
	w := NewWindow(2, time.Time{})
	require.Len(t, w.Exchange(at(0), Report{Holder: 1, Want: 1}).Chunks, 1)
	require.Len(t, w.Exchange(at(10), Report{Holder: 1, Sent: []Units{{at(0), 1}}, Want: 1}).Chunks, 0)
	require.Equal(t, []int{-3600_000}, moments(w.Exchange(at(-3600_000), Report{Holder: 2, Want: 1}).Chunks), "back")
	require.Equal(t, []int{3600_000}, moments(w.Exchange(at(3600_000), Report{Holder: 3, Want: 1}).Chunks), "and on")
}

// FuzzWindow: any state is read or refused; what is read is written alike, and
// grants no more than its limit.
func FuzzWindow(f *testing.F) {
	w := NewWindow(20, at(0))
	w.Exchange(at(1), Report{Holder: 1, Want: 9})
	w.Exchange(at(2), Report{Holder: 2, Want: 9})
	w.Exchange(at(160), Report{Holder: 1, Sent: []Units{{at(5), 1}, {at(51), 2}}, Keep: 1, Want: 9})
	state, err := w.MarshalBinary()
	require.NoError(f, err)
	f.Add(state)
	f.Add(state[:9])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, state []byte) {
		var w, again Window
		if w.UnmarshalBinary(state) != nil {
			return
		}
		written, err := w.MarshalBinary()
		require.NoError(t, err)
		require.NoError(t, again.UnmarshalBinary(written))
		require.Equal(t, w, again)
		g := w.Exchange(at(500), Report{Holder: 7, Want: 1000})
		require.LessOrEqual(t, total(g.Chunks), w.limit)
	})
}

// A pause that is further away than any can be is one of a clock that was set back.
func TestAPauseOfAnotherClock(t *testing.T) {
	w := NewWindow(20, at(3_600_000))
	require.NotEmpty(t, w.Exchange(at(0), Report{Holder: 1, Want: 1}).Chunks)
	w = NewWindow(20, at(60_000))
	require.Empty(t, w.Exchange(at(0), Report{Holder: 1, Want: 1}).Chunks)
}
