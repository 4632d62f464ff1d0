package codec

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// planningBody is a call that is no batch.
const planningBody = `{"jsonrpc":"2.0","method":"test_connection","params":{},"id":"d06835ea44ee2e9eb1f5dcd8bbfbe5c6"}`

func callSeeds(f *testing.F) {
	for _, body := range []string{
		planningBody,
		`{"jsonrpc":"2.0","method":"list_objects","params":{},"id":{}}`, `{"jsonrpc":"2.0","method":"list_objects","params":{},"id":[1]}`,
		`{"jsonrpc":"2.0","method":"list_objects","params":{},"id":false}`, `{"jsonrpc":"2.0","method":"list_objects","params":{}}`,
		`{"jsonrpc":"2.0","method":"list_objects","params":[],"id":1}`, `{"jsonrpc":"2.0","method":"list_objects","id":null}`,
		`{"id":"\u0061","params":{},"method":"sync\u005fbatch","jsonrpc":"2.0","x":1}`, `[]`, `{}`, `nul`,
		`{"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{},"records":[{"a":1},{"a":2,"b":3}]},"id":"1"}`,
		`{"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{},"records":[{"a":1},{"a":2}]},"params":{},"method":"x","id":"1"}`,
		`{"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{},"records":[]},"method":"x","params":{},"method":"sync_batch","id":"1"}`,
		`{"jsonrpc":"2.0","method":"sync_batch","params":{"records":[4]},"id":"1"}`,
	} {
		f.Add([]byte(body))
	}
}

// FuzzDecodeCall compares the single pass with the two steps it replaces.
func FuzzDecodeCall(f *testing.F) {
	callSeeds(f)
	f.Add(benchBody(f, 2))
	var reused Batch
	var req rpc.Request
	f.Fuzz(func(t *testing.T, body []byte) {
		err := DecodeCall(body, &req, &reused)
		want, wantErr := rpc.DecodeRequest(body)
		var fresh Batch
		if wantErr == nil && want.Method == rpc.MethodSyncBatch {
			wantErr = DecodeBatch(want.Params, &fresh)
		}
		require.Equal(t, wantErr, err)
		require.Equal(t, string(want.RawID), string(req.RawID))
		requireSameBatch(t, &fresh, &reused)
		if err != nil {
			var rpcErr *rpc.Error
			require.True(t, errors.As(err, &rpcErr))
			require.Zero(t, reused.Len())
			return
		}
		want.ID = ""
		require.Equal(t, want, req)
	})
}

func requireSameBatch(t *testing.T, want, got *Batch) {
	require.Equal(t, want.Plan, got.Plan)
	require.Equal(t, string(want.RawPlan), string(got.RawPlan))
	require.Equal(t, want.Identifier, got.Identifier)
	require.Equal(t, want.Len(), got.Len())
	for i := range want.Len() {
		w, g := want.Record(i), got.Record(i)
		require.Equal(t, string(w.Raw()), string(g.Raw()))
		require.Equal(t, w.Len(), g.Len())
		for j := range w.Len() {
			wk, wv := w.At(j)
			gk, gv := g.At(j)
			require.Equal(t, string(wk), string(gk))
			require.Equal(t, string(wv), string(gv))
		}
	}
}
