package server

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/sync/executor"
)

// TestUnbroken: what is asked for goes through to its answer, also when the one who asks
// is told to stop meanwhile; who was stopped before asks for nothing.
func TestUnbroken(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	got, _, err := unbroken(ctx, time.Minute, func(asked context.Context) (string, int, error) {
		stop(executor.ErrStop)
		return "taken", 0, asked.Err()
	})
	require.NoError(t, err)
	require.Equal(t, "taken", got)
	_, _, err = unbroken(ctx, time.Minute, func(context.Context) (string, int, error) {
		t.Error("asked all the same")
		return "", 0, nil
	})
	require.ErrorIs(t, err, executor.ErrStop)
}
