package executor

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/source/rowsort"
	"github.com/destkit/destkit/server/internal/sync/clock"
)

// TestRunsShareTheMemoryOfBatches: with many runs at work none has more on its way than
// its share, but for one batch.
func TestRunsShareTheMemoryOfBatches(t *testing.T) {
	c := clock.New(time.Now)
	defer c.Close()
	sharing.Add(16)
	defer sharing.Add(-16)
	var r room
	batches := newSemaphore(c, "test", 50)
	require.LessOrEqual(t, int64(copies*batchBytes(50)), share())
	var most atomic.Int64
	for range 200 {
		done := r.admit(t.Context(), batches, batchBytes(50))
		most.Store(max(most.Load(), r.flying.Load()))
		require.NoError(t, batches.do(t.Context(), func(context.Context) { done() }))
	}
	batches.wait(t.Context())
	require.Zero(t, r.flying.Load())
	require.LessOrEqual(t, most.Load(), share())
}

// TestWideRunsTakeTurns: the second waits until the first has ended, or until it is
// told to stop.
func TestWideRunsTakeTurns(t *testing.T) {
	c := clock.New(time.Now)
	defer c.Close()
	e := New(Options{Clock: c})
	first, second := &room{runs: e.runs, wides: e.wide}, &room{runs: e.runs, wides: e.wide}
	require.NoError(t, first.widen(t.Context()))
	require.NoError(t, first.widen(t.Context()), "it has the place")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, second.widen(ctx), context.Canceled)
	second.leaveWide() // gives nothing back that it has not got
	require.False(t, e.wide.has(1))
	first.leaveWide()
	require.NoError(t, second.widen(t.Context()))
	second.leaveWide()
	require.True(t, wide([][]byte{make([]byte, rowsort.WideRow), {1}}))
	require.False(t, wide([][]byte{make([]byte, rowsort.WideRow)}))
}
