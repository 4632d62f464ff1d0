package destsim

import (
	"bytes"
	"sync"
	"time"
)

// meeting brings two parallel calls together, for violations that mix them up.
// The zero value is ready for use.
type meeting[T any] struct {
	mu      sync.Mutex
	waiting *seat[T]
}

type seat[T any] struct {
	mine   T
	theirs chan T
}

// swap hands v to a call that waits here, and gets its value in turn. When
// nobody comes within d it gives v back and false.
func (m *meeting[T]) swap(c *call, v T, d time.Duration) (T, bool) {
	m.mu.Lock()
	if other := m.waiting; other != nil {
		m.waiting = nil
		m.mu.Unlock()
		other.theirs <- v
		return other.mine, true
	}
	me := &seat[T]{mine: v, theirs: make(chan T, 1)}
	m.waiting = me
	m.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case got := <-me.theirs:
		return got, true
	case <-t.C:
	case <-c.r.Context().Done():
	case <-c.sim.life.Done():
	}
	m.mu.Lock()
	if m.waiting == me {
		m.waiting = nil
		m.mu.Unlock()
		return v, false
	}
	m.mu.Unlock()
	return <-me.theirs, true // somebody came at the last moment
}

// putLater stores data under a key after d, replacing what is there then; nil
// data removes it. It is for destinations that acknowledge before they write.
func (s *Sim) putLater(d time.Duration, t *table, field, key, data []byte) {
	field, key, data = bytes.Clone(field), bytes.Clone(key), bytes.Clone(data)
	s.later(d, func() {
		u, err := s.store.Begin()
		if err != nil {
			return
		}
		defer u.Rollback()
		err = u.With(t, field, key, func(rows rows) error {
			found, err := rows.Find(field, key)
			switch {
			case err != nil:
				return err
			case data == nil:
				for _, old := range found {
					err = rows.Remove(old)
				}
				return err
			case len(found) > 0:
				return rows.Put(found[0], data)
			}
			return rows.Put(nil, data)
		})
		if err == nil {
			_ = u.Commit()
		}
	})
}
