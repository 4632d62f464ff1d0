package executor

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/sync/clock"
)

// TestACrewServesThoseWhoWait, and the end of all is waited for.
func TestACrewServesThoseWhoWait(t *testing.T) {
	c := clock.New(nil)
	t.Cleanup(c.Close)
	w := newSemaphore(c, "test", 2)
	held, open := make(chan struct{}, 10), make(chan struct{})
	fn := func(context.Context) {
		held <- struct{}{}
		<-open
	}
	queued := func(n int) func() bool {
		return func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return len(w.queue) == n
		}
	}
	require.NoError(t, w.do(t.Context(), fn))
	require.NoError(t, w.do(t.Context(), fn))
	<-held
	<-held
	added, waited := make(chan error), make(chan struct{})
	go func() { added <- w.do(context.Background(), fn) }()
	require.Eventually(t, queued(1), time.Minute, time.Millisecond)
	go func() {
		w.wait(context.Background())
		close(waited)
	}()
	require.Eventually(t, queued(2), time.Minute, time.Millisecond)
	open <- struct{}{}
	require.NoError(t, <-added)
	<-held
	require.True(t, w.busy())
	select {
	case <-waited:
		require.Fail(t, "one is still on its way")
	default:
	}
	close(open)
	<-waited
	require.False(t, w.busy())
}
