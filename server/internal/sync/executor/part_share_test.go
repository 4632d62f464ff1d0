package executor

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/pace"
)

// However little some parts have heard of the ends of others, their shares are
// together no more than the run may send at once; and all of it, once all know.
func TestSharesOfPartsThatEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, mostParts).Draw(t, "parts")
		all := rapid.IntRange(n, maxParallel).Draw(t, "batches")
		var numbers []int
		for i := range n {
			numbers = append(numbers, i+1)
		}
		order := rapid.Permutation(numbers).Draw(t, "ends")
		ended := rapid.IntRange(0, n-1).Draw(t, "ended")
		sum, known := 0, 0
		for _, number := range order[ended:] {
			p := PartJob{Number: number, Speed: rpc.Speed{MaximumParallelBatches: int64(all)}}
			heard := rapid.IntRange(0, ended).Draw(t, "heard")
			places := p.places(order[heard:])
			require.GreaterOrEqual(t, places, p.places(numbers), "no share becomes smaller")
			sum += places
			known += p.places(order[ended:])
		}
		require.LessOrEqual(t, sum, all)
		require.Equal(t, all, known)
	})
}

// A crew that grows serves those who wait, and the end of all is waited for.
func TestACrewGrows(t *testing.T) {
	c := clock.New(nil)
	t.Cleanup(c.Close)
	w := newCrew(c, "test", 1)
	held, open := make(chan struct{}, 10), make(chan struct{})
	fn := func(context.Context) {
		held <- struct{}{}
		<-open
	}
	require.NoError(t, w.do(t.Context(), fn))
	added := make(chan error)
	go func() { added <- w.do(context.Background(), fn) }()
	<-held
	require.Empty(t, added)
	w.grow(3)
	require.NoError(t, <-added)
	<-held
	w.grow(2)
	require.Equal(t, 3, w.places(), "never fewer")
	waited := make(chan struct{})
	go func() {
		w.wait(context.Background())
		close(waited)
	}()
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.queue) == 1
	}, time.Minute, time.Millisecond)
	w.grow(5)
	open <- struct{}{}
	require.True(t, w.busy())
	select {
	case <-waited:
		require.Fail(t, "one is still on its way")
	default:
	}
	close(open)
	<-waited
	require.False(t, w.busy())
}

// A part whose rows have not changed ends at once, and leaves its batches at once to
// the other.
func TestAPartLeavesItsShare(t *testing.T) {
	w := newWorld(t, cutSetup(2))
	w.fill(1, 400)
	require.EqualValues(t, 400, w.sync().Updated)
	w.sql("UPDATE people SET level = 99 WHERE id BETWEEN 300 AND 399") // all above the middle, by their digits
	s, full := w.watch(), make(chan struct{})
	s.before = func(call int) error {
		if call == 4 {
			close(full)
		}
		<-full
		return nil
	}
	o := w.sync()
	require.Equal(t, [8]int64{400, 100, 0, 0, 100, 100, 0, 0}, counts(o), "%+v", o)
	require.Equal(t, 4, s.most)
	require.Equal(t, 2, w.partsOf(w.run))
}

// granting lets everything go.
type granting struct{}

// Exchange implements pace.Source.
func (granting) Exchange(_ context.Context, r pace.Report) (pace.Grant, error) {
	now := time.Now()
	return pace.Grant{Chunks: []pace.Units{{At: now, N: r.Want}}, Until: now.Add(time.Second), Limit: r.Limit}, nil
}

// All parts in a process are at one gate, as long as one of them or the run is there.
func TestTheGateOfARun(t *testing.T) {
	c := clock.New(nil)
	t.Cleanup(c.Close)
	var asked []int64
	e := New(Options{Clock: c, Records: func(run int64) pace.Source {
		asked = append(asked, run)
		return granting{}
	}})
	a, b := e.join(1, 9, 100), e.join(1, 9, 50)
	require.Same(t, a, b)
	require.EqualValues(t, 50, a.records.Rate, "the last that was said")
	require.NotSame(t, a, e.join(2, 9, 100))
	e.leave(1)
	require.Same(t, a, e.join(1, 9, 50))
	e.leave(1)
	e.leave(1)
	e.leave(2)
	require.Empty(t, e.gates)
	require.NotSame(t, a, e.join(1, 9, 50))
	require.Equal(t, []int64{1, 2, 1}, slices.Clone(asked))
}
