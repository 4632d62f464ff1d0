package loadgen

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
)

// simulator serves a destination on loopback.
func simulator(t testing.TB, config destsim.Config) string {
	t.Helper()
	sim, err := destsim.New(config)
	require.NoError(t, err)
	server := httptest.NewServer(sim)
	t.Cleanup(func() { server.Close(); require.NoError(t, sim.Close()) })
	return server.URL + "/"
}

// against is the options of a short run.
func against(url string) Options {
	return Options{
		Target: Target{URL: url}, Write: true, Seed: 7, Closed: true, Count: 20, Connections: 2,
		Work: Work{Objects: []Share{{Name: "contact"}}, BatchSize: 5},
	}
}

func TestClosedLoopStoresWhatItCounts(t *testing.T) {
	url := simulator(t, destsim.Config{})
	r, err := Run(context.Background(), against(url))
	require.NoError(t, err)
	require.EqualValues(t, 20, r.Requests)
	require.EqualValues(t, 100, r.Records)
	require.EqualValues(t, 100, r.Acknowledged)
	require.Zero(t, r.Errors)
	require.Equal(t, "count", r.Ended)
}
