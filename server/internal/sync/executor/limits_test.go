package executor

import (
	"net/http/httptrace"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
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
