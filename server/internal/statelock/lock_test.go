package statelock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLock: who waits to write keeps readers out, and lets them in again where it gives up.
func TestLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		first := l.Enter(t.Context())
		ctx, giveUp := context.WithCancel(t.Context())
		refused := make(chan error, 1)
		go func() {
			_, err := l.Take(ctx, false)
			refused <- err
		}()
		synctest.Wait()
		in := make(chan *Hold, 1)
		go func() { in <- l.Enter(t.Context()) }()
		synctest.Wait()
		require.Empty(t, in, "a reader overtakes a writer")
		giveUp()
		require.ErrorIs(t, <-refused, context.Canceled)
		(<-in).Leave()

		got := make(chan func(), 1)
		go func() {
			release, err := l.Take(t.Context(), false)
			require.NoError(t, err)
			got <- release
		}()
		synctest.Wait()
		require.Empty(t, got, "there is a reader")
		require.NoError(t, first.Ctx.Err())
		first.Leave()
		release := <-got
		go func() { in <- l.Enter(t.Context()) }()
		synctest.Wait()
		require.Empty(t, in)
		release()
		release()
		(<-in).Leave()
	})
}

// TestGrace: a call that holds the lock for too long is ended, and learns why.
func TestGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		slow := l.Enter(t.Context())
		began := time.Now()
		go func() {
			<-slow.Ctx.Done()
			slow.Leave()
		}()
		release, err := l.Take(t.Context(), false)
		require.NoError(t, err)
		require.Equal(t, grace, time.Since(began))
		release()
		require.ErrorIs(t, slow.Failure(slow.Ctx.Err()), ErrHeld)
		require.NoError(t, slow.Failure(nil))

		left, leave := context.WithCancel(t.Context())
		other := l.Enter(left)
		defer other.Leave()
		leave()
		require.ErrorIs(t, other.Failure(other.Ctx.Err()), context.Canceled, "its caller has left")
	})
}

// TestWaits: a snapshot does not wait for those who wait for the clock; replacing the
// state ends them, and a call that waited apart is void even if its wait was over.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		ended := make(chan error, 1)
		forever := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		go func() { ended <- l.Wait(t.Context(), forever) }()
		synctest.Wait()
		release, err := l.Take(t.Context(), false)
		require.NoError(t, err)
		release()
		require.Empty(t, ended)
		require.Zero(t, l.Number())

		call := l.Enter(t.Context())
		defer call.Leave()
		pass, passed := make(chan bool), make(chan error, 1)
		go func() {
			passed <- call.Apart(func(context.Context) error { <-pass; return nil })
		}()
		synctest.Wait()
		got := make(chan func(), 1)
		go func() {
			release, err := l.Take(t.Context(), true)
			require.NoError(t, err)
			got <- release
		}()
		require.ErrorIs(t, <-ended, ErrHeld)
		close(pass)
		(<-got)()
		require.ErrorIs(t, <-passed, ErrHeld)
		require.EqualValues(t, 1, l.Number())
	})
}
