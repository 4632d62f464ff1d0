package executor

import (
	"context"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// mortal is a destination that nothing reaches any more when the process is dead.
type mortal struct {
	destination.Sender
	dead chan struct{} // closed by then
}

func (m mortal) Send(ctx context.Context, plan *destination.Plan, records [][]byte) (destination.Reply, error) {
	select {
	case <-m.dead:
		return destination.Reply{}, errDead
	default:
		return m.Sender.Send(ctx, plan, records)
	}
}

// open makes the ledger that of a folder.
func (w *world) open(o ledger.Options) {
	w.t.Helper()
	opened, err := ledger.Open(o)
	require.NoError(w.t, err)
	w.ledger, w.executor.options.Ledger, w.executor.options.Crash = opened, opened, o.Crash
}

// killed makes the next run with the ledger in a folder. Its process dies at some passing
// of a point: the process that follows finds the ledger as it was then. The dead one goes
// on with a ledger that is not opened again.
func (w *world) killed(dir, point string, at int) {
	w.t.Helper()
	ctx, stop := context.WithCancelCause(w.t.Context())
	image, sender := w.t.TempDir(), w.sender
	var mu sync.Mutex
	dead := make(chan struct{})
	w.sender = mortal{sender, dead}
	w.open(ledger.Options{Dir: dir, Crash: func(p string) {
		mu.Lock()
		defer mu.Unlock()
		if p != point {
			return
		}
		if at--; at == 0 {
			close(dead)
			copyBooks(image, dir)
			stop(ErrStop)
		}
	}})
	w.run++
	w.again(ctx)
	require.LessOrEqual(w.t, at, 0, "the run never came to %s", point)
	require.NoError(w.t, w.ledger.Close())
	w.sender = sender
	w.open(ledger.Options{Dir: image})
	w.t.Cleanup(func() { require.NoError(w.t, w.ledger.Close()) })
}
