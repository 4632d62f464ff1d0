package executor

import (
	"context"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/source/rowsort"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/clock"
)

// TestFirstBytesKeepTheLimits: by the clock of the one who writes them there is
// no tolerance, though each connection must be made first (spec 8).
func TestFirstBytesKeepTheLimits(t *testing.T) {
	for _, c := range []struct {
		name     string
		speed    rpc.Speed
		requests int64
		most     int // batches in any second
	}{
		{"records", rpc.Speed{MaximumBatchSize: 5, MaximumParallelBatches: 20, MaximumRecordsPerSecond: 300}, 0, 60},
		{"requests", rpc.Speed{MaximumBatchSize: 5, MaximumParallelBatches: 20, MaximumRecordsPerSecond: 100_000}, 60, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sim := people()
			sim.Speed, sim.RateLimit = c.speed, c.requests
			w := newWorld(t, setup{sim: sim})
			w.fill(1, 700)
			var mu sync.Mutex
			var written []time.Time
			begun, connected := 0, make(chan struct{})
			// The first batches get their connection when many others are through. Then
			// the first byte follows.
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
				mu.Lock()
				begun++
				late := begun > 1 && begun <= 11
				mu.Unlock()
				if late {
					<-connected
				}
				mu.Lock()
				defer mu.Unlock()
				if written = append(written, w.clock.Now()); len(written) == 40 {
					close(connected)
				}
			}})
			w.run = 1
			require.Equal(t, int64(700), w.again(ctx).Updated)
			batches := written[1:] // after get_sync_speed
			require.Len(t, batches, 140)
			slices.SortFunc(batches, time.Time.Compare)
			for i := range batches[:len(batches)-c.most] {
				require.GreaterOrEqual(t, batches[i+c.most].Sub(batches[i]), time.Second, "batch %d", i)
			}
		})
	}
}

func TestASourceThatChangesUnderTheRun(t *testing.T) {
	w := newWorld(t, setup{})
	w.fill(1, 10)
	require.Equal(t, int64(10), w.sync().Updated)
	w.change = func(j *Job) { j.Columns = j.Columns[:2] }
	o := w.sync()
	require.Equal(t, CodeConfiguration, o.Code)
	require.Contains(t, o.Detail, "level")

	w.change = nil
	w.run++
	job := w.job()
	w.sql("ALTER TABLE people DROP COLUMN level")
	o = w.executor.Run(t.Context(), job)
	require.Equal(t, CodeSource, o.Code, "%+v", o)
	require.Contains(t, o.Message, "level")
	require.Len(t, w.stored(), 10)
}

func TestAnotherIdentifierDropsTheState(t *testing.T) {
	w := newWorld(t, setup{})
	w.config.Operation = api.OperationMirror
	w.fill(1, 10)
	require.Equal(t, int64(10), w.sync().Updated)
	w.config = config(api.OperationMirror, "name:code", "level:level")
	o := w.sync()
	require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
	require.True(t, o.FullSync)
	require.Equal(t, [8]int64{10, 10, 0, 0, 10, 10, 0, 0}, counts(o), "no delete of old keys under a new name")
	require.Zero(t, w.sync().Processed)
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
// stopped.
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

// TestACrewServesThoseWhoWait, and the end of all is waited for.
func TestACrewServesThoseWhoWait(t *testing.T) {
	c := clock.New(nil)
	t.Cleanup(c.Close)
	w := newSemaphore(c, "test", 2)
	held, open := make(chan struct{}, 10), make(chan struct{})
	fn := func(context.Context) {
		held <- struct{}{}
		<-open
	}
	queued := func(n int) func() bool {
		return func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return len(w.queue) == n
		}
	}
	require.NoError(t, w.do(t.Context(), fn))
	require.NoError(t, w.do(t.Context(), fn))
	<-held
	<-held
	added, waited := make(chan error), make(chan struct{})
	go func() { added <- w.do(context.Background(), fn) }()
	require.Eventually(t, queued(1), time.Minute, time.Millisecond)
	go func() {
		w.wait(context.Background())
		close(waited)
	}()
	require.Eventually(t, queued(2), time.Minute, time.Millisecond)
	open <- struct{}{}
	require.NoError(t, <-added)
	<-held
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
