package server

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/store"
)

// TestLooksHoldNoLockOverTheStore: who looks at what falls due waits for a change that
// is being made, and that change may ask whether schedules were taken up. In memory the
// store has one connection.
func TestLooksHoldNoLockOverTheStore(t *testing.T) {
	p := newWorld(t).s.schedule
	looked := make(chan struct{})
	require.NoError(t, p.Shared.Store.Update(t.Context(), func(*store.Tx) error {
		go func() { defer close(looked); p.Look() }()
		for p.Looking.TryLock() { // until the look has begun
			p.Looking.Unlock()
			runtime.Gosched()
		}
		for range 100 {
			runtime.Gosched() // it comes to ask the store
			require.True(t, p.TakenUp())
		}
		return nil
	}))
	<-looked
}
