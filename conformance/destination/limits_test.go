package destination

import (
	"context"
	"encoding/json"
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

// clockwork are the members of a report that a clock writes, not the judge.
var clockwork = []string{"started", "duration_ms", "summary"}

// timeless takes everything out of a report that time alone decides.
func timeless(v any) any {
	switch x := v.(type) {
	case []any:
		out := []any{}
		for _, item := range x {
			if header, ok := item.(map[string]any); ok && header["name"] == "Date" {
				continue
			}
			out = append(out, timeless(item))
		}
		return out
	case map[string]any:
		for name, item := range x {
			if slices.Contains(clockwork, name) {
				delete(x, name)
				continue
			}
			x[name] = timeless(item)
		}
	}
	return v
}

// TestSameSeedSameReport: serial runs with one seed send the same ids, keys and values in the same
// order and report the same.
func TestSameSeedSameReport(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) any {
		e := newSmall()
		e.keep = func(operation, _ string) bool { return operation != "update" } // something to report
		opts := writing(e)
		opts.Serial, opts.Seed = true, seed
		r, err := Run(context.Background(), Target{Handler: e, Token: "the-token-of-the-tests"}, opts)
		require.NoError(t, err)
		require.NotEmpty(t, r.Failed)
		var doc any
		require.NoError(t, json.Unmarshal([]byte(encoded(r)), &doc))
		return timeless(doc)
	}
	first := run(7)
	require.Equal(t, first, run(7))
	require.NotEqual(t, first, run(8), "another seed makes other ids")
}
