package rowsort

import "context"

// WideRow is the length from which on a row is wide: it is in memory several times
// while it is read, so that readings with such rows take turns.
const WideRow = 1 << 20

type wideKey struct{}

// WithWide makes readings call wait before they take a wide row into memory that they
// hand out. Where they learn of it only afterwards, they do not call it.
func WithWide(ctx context.Context, wait func() error) context.Context {
	return context.WithValue(ctx, wideKey{}, wait)
}

// Wait is what WithWide gave, or nothing.
func Wait(ctx context.Context) func() error {
	if wait, ok := ctx.Value(wideKey{}).(func() error); ok {
		return wait
	}
	return func() error { return nil }
}

// waiting is a reading that can be told what to call before it takes a wide row.
type waiting interface{ BeforeWide(wait func() error) }

// sortTurn is held by the sort that takes a wide row to disk, one at a time in the
// process. Nothing is waited for while it is held, but for the row and the disk.
var sortTurn = make(chan struct{}, 1)

// turn is the place of one sort in sortTurn.
type turn struct {
	ctx  context.Context
	held bool
}

func (t *turn) take() error {
	if t.held {
		return nil
	}
	select {
	case sortTurn <- struct{}{}:
		t.held = true
		return nil
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
}

func (t *turn) give() {
	if t.held {
		t.held = false
		<-sortTurn
	}
}
