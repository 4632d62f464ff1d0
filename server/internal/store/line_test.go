package store

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestLine: who waits for the writer is served by urgency, then in the order of coming;
// no one waits for ever, and who gives up is forgotten.
func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l line
		var mu sync.Mutex
		var order []string
		come := func(name string, u Urgency) {
			go func() {
				if l.take(WithUrgency(t.Context(), u), nil) == nil {
					mu.Lock()
					order = append(order, name)
					mu.Unlock()
					l.leave()
				}
			}()
			synctest.Wait()
		}
		require.NoError(t, l.take(t.Context(), nil))
		come("p", Patient)
		come("u1", Usual)
		ctx, cancel := context.WithCancel(WithUrgency(t.Context(), Urgent))
		gone := make(chan error)
		go func() { gone <- l.take(ctx, nil) }()
		synctest.Wait()
		for i := range 20 {
			come(fmt.Sprint("a", i), Urgent)
		}
		come("u2", Usual)
		require.Equal(t, 24, l.waits())
		cancel()
		require.ErrorIs(t, <-gone, context.Canceled)
		l.leave()
		synctest.Wait()
		require.Equal(t, "a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 p a15 a16 a17 a18 a19 u1 u2", strings.Join(order, " "),
			"the sixteenth turn is for who has waited longest")
		require.Zero(t, l.waits())

		closed := make(chan struct{})
		require.NoError(t, l.take(t.Context(), closed), "it is free again")
		go func() { gone <- l.take(t.Context(), closed) }()
		synctest.Wait()
		close(closed)
		require.ErrorIs(t, <-gone, ErrClosed)
		require.ErrorIs(t, l.take(t.Context(), closed), ErrClosed)
		l.leave()
		require.NoError(t, l.take(t.Context(), nil), "who gave up has left nothing behind")
	})
}
