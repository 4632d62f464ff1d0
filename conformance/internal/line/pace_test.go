package line

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

func TestPaceEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		p.Declare(rpc.Speed{MaximumBatchSize: 1, MaximumParallelBatches: 1, MaximumRecordsPerSecond: 1})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		require.NoError(t, p.wait(ctx, 10))
		require.ErrorIs(t, p.wait(ctx, 1), context.DeadlineExceeded, "it would have to wait ten seconds")

		leave, err := p.enter(t.Context())
		require.NoError(t, err)
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err = p.enter(short)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		leave()
		_, err = p.enter(t.Context())
		require.NoError(t, err)
	})
}

func TestParallelCap(t *testing.T) {
	for declared, want := range map[int64]int{-1: 1, 0: 1, 1: 1, 50: 50, 51: 50, 1 << 40: 50} {
		require.Equal(t, want, ParallelCap(rpc.Speed{MaximumParallelBatches: declared}))
	}
}

func TestRateLimitHeader(t *testing.T) {
	for value, want := range map[string]float64{
		"10": 10, " 10 ": 10, "1": 1,
		"": DefaultRateLimit, "0": DefaultRateLimit, "-5": DefaultRateLimit, "1.5": DefaultRateLimit,
		"100/s": DefaultRateLimit, "1e3": DefaultRateLimit,
	} {
		s := &Session{wires: wires{Pace: newPace()}}
		s.noticeRateLimit(&wire.Reply{Header: http.Header{"X-Ratelimit-Limit": {value}}})
		require.Equal(t, want, s.Pace.requests, "%q", value)
	}
	s := &Session{wires: wires{Pace: newPace()}}
	s.noticeRateLimit(&wire.Reply{Header: http.Header{}})
	require.EqualValues(t, DefaultRateLimit, s.Pace.requests)
}

// TestPaceSpreadsEvenly: parallel callers get separate turns.
func TestPaceSpreadsEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		p.requests = 10
		start := time.Now()
		var mu sync.Mutex
		var turns []time.Duration
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				_ = p.wait(t.Context(), 0)
				mu.Lock()
				turns = append(turns, time.Since(start))
				mu.Unlock()
			})
		}
		wg.Wait()
		slices.Sort(turns)
		require.Equal(t, []time.Duration{0, 100e6, 200e6, 300e6, 400e6}, turns)
	})
}
