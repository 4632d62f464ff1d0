package executor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
)

// TestProgressIsTrue: a run that goes on never shows records as failed that only
// have no verdict yet (spec 2.9), and its counters never run back.
func TestProgressIsTrue(t *testing.T) {
	w := newWorld(t, setup{sim: destsim.Config{Speed: rpc.Speed{MaximumBatchSize: 5, MaximumParallelBatches: 16, MaximumRecordsPerSecond: 1_000_000}}})
	w.fill(1, 10_000)
	var reports, before, worst int64
	w.change = func(j *Job) {
		j.Report = func(p Progress) {
			reports++
			worst = max(worst, p.Failed)
			require.GreaterOrEqual(t, p.Updated, before)
			before = p.Updated
		}
	}
	require.Equal(t, api.RunCompleted, w.sync().Status)
	require.Greater(t, reports, int64(1000))
	require.Zero(t, worst)
	require.Equal(t, int64(10_000), before)
}
