package loads

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/loadgen"
)

func TestSummary(t *testing.T) {
	kept := false
	r := &loadgen.Result{
		Seconds: 10, Ended: "duration", Requests: 100, Records: 1000, Acknowledged: 988, Errors: 12, RequestsPerSecond: 10,
		Target: loadgen.TargetInfo{Address: "https://x", Objects: []loadgen.Share{{Name: "contact"}}},
		Load:   loadgen.LoadInfo{Mode: "as-declared", Rate: 10, BatchSize: 10, Connections: 2},
		ErrorMessages: []loadgen.ErrorMessage{
			{Kind: "record_refused", Message: "full", Count: 12, Example: loadgen.Example{Identifier: `"a"`}},
		},
		Latency:     loadgen.Times{P99: 900, Max: 950},
		ServiceTime: loadgen.Times{P99: 100},
		Generator:   loadgen.Generator{Queued: 70, Late: 1, Unsent: 2},
		Declared:    &loadgen.DeclaredInfo{BatchSize: 10, Parallel: 2, RecordsPerSecond: 100, RateLimit: 50_000, Kept: &kept},
		Cleanup:     &loadgen.CleanupResult{Deleted: 900, Left: 100, Reasons: []string{"no"}},
		Thresholds:  []loadgen.Threshold{{Text: "errors>0", Metric: "errors", Got: 12, Failed: true}},
	}
	var out bytes.Buffer
	WriteSummary(&out, r)
	for _, words := range []string{
		"https://x, contact: as declared at 10 requests/s", "12 x record_refused: full, for example \"a\"",
		"latency is longer than service time", "of requests: 70 waited for a free connection, 1 started late by the generator, 2 never sent",
		"the declared speed was NOT kept", "cleaned up: 900 records deleted, 100 left", "FAILED: errors 12 (limit: errors>0)",
	} {
		require.Contains(t, out.String(), words)
	}
}
