package faults

import (
	"context"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/statelock"
)

// TestLatency: it is real time, adds up, is bounded, and ends with the caller.
func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Options{})
		arm := func(latency string) {
			_, err := f.Arm(Fault{Kind: "latency", Latency: latency})
			require.NoError(t, err)
		}
		strike := func(ctx context.Context) (time.Duration, error) {
			hold := statelock.New().Enter(ctx)
			defer hold.Leave()
			c := &call.Call{Ctx: hold.Ctx, Hold: hold, R: httptest.NewRequest("GET", "/", nil)}
			began := time.Now()
			err := f.Before(c)
			return time.Since(began), err
		}
		arm("250ms")
		arm("50ms")
		took, err := strike(t.Context())
		require.NoError(t, err)
		require.Equal(t, 300*time.Millisecond, took)
		arm("1m")
		took, err = strike(t.Context())
		require.NoError(t, err)
		require.Equal(t, maxLatency, took)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		took, err = strike(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, took)
	})
}
