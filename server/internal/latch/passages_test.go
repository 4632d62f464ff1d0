package latch

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPassagesThatAreEnded: a call that waits for the clock and is ended learns why, also
// where nothing is replaced in the end; one whose caller has left does not.
func TestPassagesThatAreEnded(t *testing.T) {
	var p passages
	ended, waits := make(chan error, 1), make(chan struct{})
	wait := func(ctx context.Context) error {
		close(waits)
		<-ctx.Done()
		return ctx.Err()
	}
	go func() { ended <- p.Through(context.Background(), wait) }()
	<-waits
	open, err := p.stop(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, <-ended, ErrReplaced)
	require.ErrorIs(t, p.Through(t.Context(), wait), ErrReplaced, "none begins meanwhile")
	open()

	ctx, leave := context.WithCancel(t.Context())
	waits = make(chan struct{})
	go func() { ended <- p.Through(ctx, wait) }()
	<-waits
	leave()
	require.ErrorIs(t, <-ended, context.Canceled)
}
