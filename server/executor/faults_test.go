package executor

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
)

const syncBatch = rpc.MethodSyncBatch

// faultCase is one fault against a run of 200 records in batches of 10.
type faultCase struct {
	name  string
	fault destsim.Fault
	// repaired: the same run delivers everything. Otherwise it says that it did
	// not, and the next run does.
	repaired bool
	code     string // of the run, where it fails
	failed   int64
}

func faultCases() []faultCase {
	first := func(f destsim.Fault, n int64) destsim.Fault {
		f.When.Method, f.When.Times = syncBatch, n
		return f
	}
	always := func(f destsim.Fault) destsim.Fault {
		f.When.Method = syncBatch
		return f
	}
	one := destsim.Trigger{Method: syncBatch, Identifier: api.Raw(77)}
	return []faultCase{
		{"error object before", first(destsim.Fault{Kind: "rpc_error"}, 5), true, "", 0},
		{"error object after the batch is stored", first(destsim.Fault{Kind: "rpc_error", At: "after"}, 5), true, "", 0},
		{"error object always", always(destsim.Fault{Kind: "rpc_error", Message: "no", Code: -32050}), false, CodeRPC, -1},
		{"error object for one record", destsim.Fault{Kind: "rpc_error", When: one}, false, "", 1},
		{"503 a few times", first(destsim.Fault{Kind: "http_status", Status: 503}, 7), true, "", 0},
		{"503 after the batch is stored", first(destsim.Fault{Kind: "http_status", Status: 503, At: "after"}, 7), true, "", 0},
		{"500 always", always(destsim.Fault{Kind: "http_status", Status: 500, Body: "oops"}), false, CodeStatus, -1},
		{"401 always", always(destsim.Fault{Kind: "http_status", Status: 401}), false, CodeUnauthorized, -1},
		{"413 for one record", destsim.Fault{Kind: "http_status", Status: 413, When: one}, false, "", 1},
		{"throttled", first(destsim.Fault{Kind: "throttle", RetryAfter: "garbage"}, 20), true, "", 0},
		{"reset before", first(destsim.Fault{Kind: "reset"}, 6), true, "", 0},
		{"reset between", first(destsim.Fault{Kind: "reset", At: "between"}, 6), true, "", 0},
		{"reset after", first(destsim.Fault{Kind: "reset", At: "after"}, 6), true, "", 0},
		{"reset for one record", destsim.Fault{Kind: "reset", When: one}, false, "", 1},
		{"close between", first(destsim.Fault{Kind: "close", At: "between", Records: 3}, 6), true, "", 0},
		{"truncated reply", first(destsim.Fault{Kind: "truncate"}, 6), true, "", 0},
		{"no answer", first(destsim.Fault{Kind: "hang", At: "after"}, 2), true, "", 0},
		{"slow body", first(destsim.Fault{Kind: "slow_body", PauseMS: 1, Bytes: 200}, 4), true, "", 0},
		{"wrong id", first(destsim.Fault{Kind: "wrong_id"}, 5), true, "", 0},
		{"wrong id always", always(destsim.Fault{Kind: "wrong_id"}), false, CodeUnknown, -1},
		{"wrong identifiers", first(destsim.Fault{Kind: "wrong_identifiers"}, 12), true, "", 0},
		{"missing results", first(destsim.Fault{Kind: "missing_results"}, 12), true, "", 0},
		{"missing results always", always(destsim.Fault{Kind: "missing_results", Records: 3}), false, "", -2},
		{"repeated results", always(destsim.Fault{Kind: "repeated_results"}), true, "", 0},
		{"contradictory results", first(destsim.Fault{Kind: "contradictory_results"}, 12), true, "", 0},
		{"extra results", always(destsim.Fault{Kind: "extra_results", Records: 4}), true, "", 0},
		{"refused records", first(destsim.Fault{Kind: "record_failure"}, 30), true, "", 0},
		{"one record refused always", destsim.Fault{Kind: "record_failure", Message: "too long", When: one}, false, "", 1},
		{"stored and refused", first(destsim.Fault{Kind: "refuse_stored"}, 30), true, "", 0},
	}
}

// TestFaults holds the promise of the package under everything that the
// simulator can do to it: what the run calls sent is stored, what it calls
// failed comes with the next run, and nothing is stored twice.
func TestFaults(t *testing.T) {
	for _, operation := range []string{api.OperationUpsert, api.OperationMirror, api.OperationUpdate} {
		for _, c := range faultCases() {
			t.Run(operation+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, setup{options: Options{BatchTimeout: time.Second}})
				w.fill(1, 200)
				if operation != api.OperationUpsert { // there must be something to change and to delete
					require.Equal(t, api.RunCompleted, w.sync().Status)
					w.sql("UPDATE people SET level = 100 + level")
				}
				w.config.Operation = operation
				if operation == api.OperationMirror {
					w.sql("DELETE FROM people WHERE id > 190")
				}
				w.arm(c.fault)
				o := w.sync()
				require.Empty(t, w.sim.UnfiredFaults())
				require.Equal(t, c.code, o.Code, "%+v", o)
				switch c.failed {
				case -1:
					require.Equal(t, api.RunFailed, o.Status)
					require.NotEmpty(t, o.Message)
				case -2:
					require.Positive(t, o.Failed)
				default:
					require.Equal(t, c.failed, o.Failed, "%+v", o)
				}
				if c.repaired {
					require.Equal(t, w.rows(), w.stored())
				}
				w.acknowledgedIsStored()
				require.NoError(t, w.sim.DisarmFault("f1"))
				o = w.sync()
				require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
				require.Zero(t, o.Failed)
				if c.repaired {
					require.Zero(t, o.Processed, "%+v", o)
				}
				require.Equal(t, w.rows(), w.stored())
				require.Zero(t, w.sync().Processed)
			})
		}
	}
}

// acknowledgedIsStored compares the ledger with the destination: a key whose
// last word is an acknowledgement is stored.
func (w *world) acknowledgedIsStored() {
	w.t.Helper()
	stored := w.stored()
	state, err := w.ledger.Sync(7).Scan()
	require.NoError(w.t, err)
	defer state.Close()
	for {
		e, err := state.Next()
		if err != nil {
			break
		}
		if e.Known && e.Verdict.String() == "succeeded" {
			require.Contains(w.t, stored, string(e.Key))
		}
	}
}

func TestABatchThatIsRefusedAsAWholeIsSplit(t *testing.T) {
	for _, bad := range [][]int{{1}, {64}, {33, 34}, {1, 2, 3, 4, 5}} {
		t.Run(fmt.Sprint(bad), func(t *testing.T) {
			w := newWorld(t, setup{sim: destsim.Config{Speed: rpc.Speed{MaximumBatchSize: 64, MaximumParallelBatches: 1, MaximumRecordsPerSecond: 1_000_000}}})
			w.fill(1, 64)
			for _, id := range bad {
				w.arm(destsim.Fault{Kind: "rpc_error", Message: "cannot take this", When: destsim.Trigger{Method: syncBatch, Identifier: api.Raw(id)}})
			}
			o := w.sync()
			require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
			require.Equal(t, int64(len(bad)), o.Failed, "only the bad ones fail")
			require.Equal(t, int64(64-len(bad)), o.Updated)
		})
	}
}

func TestAnEndpointThatRefusesEverythingIsNotAskedForEver(t *testing.T) {
	w := newWorld(t, setup{sim: destsim.Config{Speed: rpc.Speed{MaximumBatchSize: 1000, MaximumParallelBatches: 4, MaximumRecordsPerSecond: 1_000_000}}})
	w.fill(1, 100_000)
	w.arm(destsim.Fault{Kind: "rpc_error", Message: "closed today", Code: -32001, When: destsim.Trigger{Method: syncBatch}})
	o := w.sync()
	require.Equal(t, CodeRPC, o.Code)
	require.Contains(t, o.Message, "-32001")
	require.Contains(t, o.Message, "closed today")
	require.Less(t, o.Calls, int64(400))
	require.True(t, o.Transient)
}
