package loadgen

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
)

// One connection at work alone must not send the same few records for ever.
func TestAConnectionGoesOnThroughThePool(t *testing.T) {
	sim, err := destsim.New(destsim.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sim.Close()) })
	sent := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && bytes.Contains(body, []byte(`"method":"`+rpc.MethodSyncBatch)) {
			_, record, _ := bytes.Cut(body, []byte(`"records":[`))
			_, values, _ := bytes.Cut(record, []byte(",")) // without the key, which is always new
			values, _, _ = bytes.Cut(values, []byte(`]},"id"`))
			sent[string(values)] = true
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		sim.ServeHTTP(w, r)
	}))
	defer server.Close()
	o := against(server.URL + "/")
	o.Connections, o.Work.BatchSize, o.Count = 1, 1, 400
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	require.Zero(t, r.Errors)
	require.Greater(t, len(sent), 50, "8 prepared batches, and another record in every eighth")
}
