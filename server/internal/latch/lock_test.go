package latch

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestWorldLock: who waits to write keeps readers out; who gives up lets them in.
func TestWorldLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lock
		l.RLock()
		ctx, giveUp := context.WithCancel(t.Context())
		refused := make(chan error, 1)
		go func() {
			_, err := l.Lock(ctx)
			refused <- err
		}()
		synctest.Wait()
		in := make(chan bool, 1)
		go func() { l.RLock(); in <- true }()
		synctest.Wait()
		require.Empty(t, in, "a reader overtakes who waits to write")
		giveUp()
		require.ErrorIs(t, <-refused, context.Canceled)
		require.True(t, <-in, "the reader waits for who has given up")
		l.RUnlock()

		got := make(chan func(), 1)
		go func() {
			unlock, err := l.Lock(t.Context())
			require.NoError(t, err)
			got <- unlock
		}()
		synctest.Wait()
		require.Empty(t, got, "there is a reader")
		l.RUnlock()
		unlock := <-got
		go func() { l.RLock(); in <- true }()
		synctest.Wait()
		require.Empty(t, in)
		unlock()
		unlock()
		require.True(t, <-in)
	})
}
