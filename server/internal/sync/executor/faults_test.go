package executor

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
)

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
