package destination_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/destsim"
)

// BenchmarkReadOnlyRun is the default run against loopback.
func BenchmarkReadOnlyRun(b *testing.B) { benchmarkRun(b, conformance.Options{}) }

// BenchmarkFullRun is the run with writes and read-back against loopback.
func BenchmarkFullRun(b *testing.B) {
	benchmarkRun(b, conformance.Options{Write: true, Objects: []string{"contact"}})
}

func benchmarkRun(b *testing.B, opts conformance.Options) {
	sim, err := destsim.New(destsim.Config{})
	require.NoError(b, err)
	defer sim.Close()
	server := httptest.NewServer(sim)
	defer server.Close()
	if opts.Write {
		opts.Readback.URL = server.URL + "/_control/readback"
	}
	opts.Timeout = time.Minute
	for b.Loop() {
		r, err := destination.Run(context.Background(), destination.Target{URL: server.URL + "/"}, opts)
		require.NoError(b, err)
		require.Zero(b, r.ExitStatus)
	}
}
