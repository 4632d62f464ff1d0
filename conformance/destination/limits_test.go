package destination

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/matrixtest"
)

// TestMatrixDeclaredLimitsAreKept: no batch of a whole run is larger than the endpoint
// declares, and no more are under way at once, down to one record and one batch.
func TestMatrixDeclaredLimitsAreKept(t *testing.T) {
	matrixtest.Long(t)
	t.Parallel()
	if testing.Short() {
		t.Skip("full runs")
	}
	for _, size := range []int64{1, 2, 3, 7} {
		for _, parallel := range []int64{1, 2} {
			t.Run(fmt.Sprintf("%d records, %d batches", size, parallel), func(t *testing.T) {
				t.Parallel()
				e := newRefuser(func(attempt) string { return "" })
				e.objects = []string{"contact", "company"}
				e.speed = rpc.Speed{MaximumBatchSize: size, MaximumParallelBatches: parallel, MaximumRecordsPerSecond: 20_000}
				r, err := Run(context.Background(), Target{Handler: e, Token: scriptToken}, conformance.Options{
					Write: true, Objects: e.objects, MaxRecords: 50_000, Seed: 7, RunID: scriptRun, ReadbackFunc: e.readback,
				})
				require.NoError(t, err)
				for _, a := range e.arrivals {
					require.LessOrEqual(t, int64(a.records), size, "a %s at %s", a.method, a.at)
				}
				require.LessOrEqual(t, int64(e.mostOnce), parallel)
				require.True(t, slices.ContainsFunc(e.arrivals, func(a arrival) bool { return int64(a.records) == size }), "full batches are sent")
				require.Zero(t, r.Counts[conformance.HarnessError], "%s", r.Summary)
				require.Zero(t, r.Counts[conformance.Fail]+r.Counts[conformance.Flaky]+r.Counts[conformance.Warn], "small limits are no defect: %s", foundBy(r))
			})
		}
	}
}

// foundBy lists what a run found.
func foundBy(r *conformance.Report) string {
	out := r.Summary
	for _, c := range r.Checks {
		for _, f := range c.Findings {
			out += fmt.Sprintf("\n%s %s: %s\n   expected %s\n   actual %s", c.Status, c.ID, c.Title, f.Expected, f.Actual)
		}
	}
	return out
}
