package latch

import (
	"context"
	"net/http"
	"sync"

	"github.com/destkit/destkit/server/internal/problem"
)

// How many snapshots and forks a process makes at once, its forks included, and how
// many more wait for their turn.
const (
	CopiesAtOnce  = 4
	CopiesWaiting = 256
)

// Line lets a few in at once, and lets a bounded number wait for them.
type Line struct {
	places chan struct{}
	most   int // that wait

	mu      sync.Mutex
	waiting int
}

func NewLine(places, most int) *Line {
	return &Line{places: make(chan struct{}, places), most: most}
}

// Enter waits for a place until ctx ends. Where too many wait already it is refused.
func (l *Line) Enter(ctx context.Context) (leave func(), err error) {
	leave = sync.OnceFunc(func() { <-l.places })
	select {
	case l.places <- struct{}{}:
		return leave, nil
	default:
	}
	l.mu.Lock()
	if l.waiting >= l.most {
		l.mu.Unlock()
		full := problem.Refuse(http.StatusTooManyRequests, "%d snapshots and forks are being made and %d wait already; try again when one is done", cap(l.places), l.most)
		full.Retry = "1"
		return nil, full
	}
	l.waiting++
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.waiting--
		l.mu.Unlock()
	}()
	select {
	case l.places <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Waiting counts those who wait for a place.
func (l *Line) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}
