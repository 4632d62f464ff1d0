package latch

import (
	"context"
	"sync"
)

// Lock is held for reading by calls, and for writing by what replaces or ends
// everything. Who waits to write keeps new readers out, so that there is an end to
// the wait; who gives up lets them in again at once. The zero value is free.
type Lock struct {
	mu      sync.Mutex
	readers int
	waiting int  // to write
	writing bool // one does
	changed chan struct{}
}

// RLock waits until no one writes or waits to.
func (l *Lock) RLock() { _ = l.RLockUntil(context.Background()) }

// RLockUntil is RLock for who may give up.
func (l *Lock) RLockUntil(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.writing || l.waiting > 0 {
		changed := l.change()
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		l.mu.Lock()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	l.readers++
	return nil
}

// RUnlock ends one RLock.
func (l *Lock) RUnlock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readers--; l.readers == 0 {
		l.tell()
	}
}

// Lock waits until no one else has the lock, or until ctx ends.
func (l *Lock) Lock(ctx context.Context) (unlock func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting++
	defer func() { l.waiting-- }()
	for l.writing || l.readers > 0 {
		changed := l.change()
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			err = ctx.Err()
		}
		l.mu.Lock()
		if err != nil {
			l.tell() // those that it kept out
			return nil, err
		}
	}
	l.writing = true
	return sync.OnceFunc(l.unlock), nil
}

func (l *Lock) unlock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writing = false
	l.tell()
}

// change is closed at the next change; the lock is held.
func (l *Lock) change() <-chan struct{} {
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// tell makes all who wait look again; the lock is held.
func (l *Lock) tell() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}
