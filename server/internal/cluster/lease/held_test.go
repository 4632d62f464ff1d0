package lease

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestUnbroken: what is asked for goes through to its answer, also when the one who asks
// is told to stop meanwhile; who was stopped before asks for nothing.
func TestUnbroken(t *testing.T) {
	errStopped := errors.New("stopped")
	ctx, stop := context.WithCancelCause(t.Context())
	got, _, err := Unbroken(ctx, time.Minute, func(asked context.Context) (string, int, error) {
		stop(errStopped)
		return "taken", 0, asked.Err()
	})
	require.NoError(t, err)
	require.Equal(t, "taken", got)
	_, _, err = Unbroken(ctx, time.Minute, func(context.Context) (string, int, error) {
		t.Error("asked all the same")
		return "", 0, nil
	})
	require.ErrorIs(t, err, errStopped)
}
