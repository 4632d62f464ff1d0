package store

import (
	"context"
	"slices"
	"sync"
)

// Urgency orders the changes that wait for the one writer.
type Urgency int

// From the first on. Usual is that of a context without one.
const (
	Urgent  Urgency = iota - 1 // a client waits for the answer: calls of the API
	Usual                      // records of runs and schedules
	Patient                    // data that may be a little older: progress
)

type urgencyKey struct{}

// WithUrgency gives the changes under a context their place in the line.
func WithUrgency(ctx context.Context, u Urgency) context.Context {
	return context.WithValue(ctx, urgencyKey{}, u)
}

// fairness is how many changes may go before one that waits since before all of them:
// so the urgent ones never hold the others for good.
const fairness = 16

// line is where changes wait for the writer. The zero value is free.
type line struct {
	mu      sync.Mutex
	taken   bool
	waiting [3][]*inLine // by urgency, in the order of their coming
	passed  int          // turns in a row that were not given to who has waited longest
	came    uint64
}

type inLine struct {
	came  uint64
	level int
	turn  chan struct{} // closed when it is its turn
}

// take waits for the turn, the end of ctx or that of the store.
func (l *line) take(ctx context.Context, closed <-chan struct{}) error {
	select { // a closed store refuses even where there is no writer
	case <-closed:
		return ErrClosed
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	u, _ := ctx.Value(urgencyKey{}).(Urgency)
	l.mu.Lock()
	if !l.taken {
		l.taken = true
		l.mu.Unlock()
		return nil
	}
	l.came++
	w := &inLine{came: l.came, level: int(u - Urgent), turn: make(chan struct{})}
	l.waiting[w.level] = append(l.waiting[w.level], w)
	l.mu.Unlock()
	var err error
	select {
	case <-w.turn:
		return nil
	case <-closed:
		err = ErrClosed
	case <-ctx.Done():
		err = ctx.Err()
	}
	l.mu.Lock()
	at := slices.Index(l.waiting[w.level], w)
	if at >= 0 {
		l.waiting[w.level] = slices.Delete(l.waiting[w.level], at, at+1)
	}
	l.mu.Unlock()
	if at < 0 { // its turn came just now
		l.leave()
	}
	return err
}

// leave gives the turn to the next one.
func (l *line) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	var first, oldest *inLine
	for _, level := range l.waiting {
		if len(level) == 0 {
			continue
		}
		if first == nil {
			first = level[0]
		}
		if oldest == nil || level[0].came < oldest.came {
			oldest = level[0]
		}
	}
	if first == nil {
		l.taken, l.passed = false, 0
		return
	}
	if l.passed++; first == oldest || l.passed >= fairness {
		first, l.passed = oldest, 0
	}
	l.waiting[first.level] = l.waiting[first.level][1:]
	close(first.turn)
}

func (l *line) waits() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, level := range l.waiting {
		n += len(level)
	}
	return n
}
