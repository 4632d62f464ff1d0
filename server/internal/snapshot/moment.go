package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/server/internal/archive"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// moment is the whole state as it was at one moment, as a process that is killed
// leaves it: what was on its way to a destination then counts as not acknowledged,
// and is sent again where the moment is restored. Nothing is stopped to take it but
// changes of the store and of the ledger, for as long as it takes to note where
// everything stands; what is noted is copied while all goes on. Close it.
type moment struct {
	meta    archive.Meta
	store   *store.Pinned
	ledgers []*ledger.Moment
	parts   []*momentPart // destinations and warehouses
}

// momentPart is what lies in a store of its own, on its way into a spool.
type momentPart struct {
	name  string
	out   *archive.Spool
	taken chan struct{} // closed at the first byte: what comes is of a moment before
	done  chan struct{}
	err   error
	once  sync.Once
	quit  atomic.Bool
}

// errGivenUp ends a part that is not wanted any more.
var errGivenUp = errors.New("the snapshot was given up")

// Write implements io.Writer.
func (p *momentPart) Write(text []byte) (int, error) {
	p.once.Do(func() { close(p.taken) })
	if p.quit.Load() {
		return 0, errGivenUp
	}
	return p.out.Write(text)
}

// run copies the part.
func (p *momentPart) run(write func(io.Writer) error) {
	defer close(p.done)
	defer p.once.Do(func() { close(p.taken) })
	defer func() {
		if value := recover(); value != nil { // it must not take the service with it
			p.err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
		}
	}()
	p.err = write(p)
}

// take waits until nothing is half done, and notes where everything stands.
func (s *Snapshots) take(ctx context.Context) (*moment, error) {
	if err := s.openOutside(ctx); err != nil {
		return nil, err
	}
	if err := s.latch.State.RLockUntil(ctx); err != nil { // no restore meanwhile
		return nil, err
	}
	defer s.latch.State.RUnlock()
	// In this order: some changes of the store look into the ledger.
	thaw, err := s.shared.Store.Still(ctx)
	if err != nil {
		return nil, err
	}
	defer thaw()
	release := s.outside.ledger().Still()
	defer release()
	began, m := time.Now(), &moment{}
	taken := false
	defer func() { // also when something panics
		if !taken {
			m.close()
		}
	}()
	if err := s.note(ctx, m); err != nil {
		return nil, err
	}
	taken = true
	s.log.Debug("moment taken", "held_ms", float64(time.Since(began).Microseconds())/1000)
	return m, nil
}

// openOutside opens what was not used since the start, which takes longer than anybody
// may be kept waiting.
func (s *Snapshots) openOutside(ctx context.Context) error {
	var all store.Everything
	err := s.shared.Store.View(ctx, func(tx *store.Tx) (err error) {
		all, err = tx.Everything()
		return err
	})
	for _, d := range all.Destinations {
		_ = s.outside.snapshots(d)
	}
	return err
}

// note is done while nothing changes.
func (s *Snapshots) note(ctx context.Context, m *moment) (err error) {
	var all store.Everything
	m.store, err = s.shared.Store.Pin(ctx, func(tx *store.Tx) (err error) {
		all, err = tx.Everything()
		return err
	})
	if err != nil {
		return err
	}
	// The state of the clock with its offset: what is due stays due after a
	// restore.
	m.meta = archive.Meta{
		Format: archive.Format, Version: s.about.Version, Dialect: s.about.Dialect, TakenAt: s.clock.Now(),
		Clock: s.clock.State(), Requests: s.journal.IDs.At(),
		Destinations: []archive.Part{}, Warehouses: []archive.Part{}, Ledgers: []archive.Part{},
	}
	if err := s.outside.noteLedgers(m, all.Syncs); err != nil {
		return err
	}
	if err := s.outside.note(ctx, m, all, s.dir); err != nil {
		return err
	}
	for _, p := range m.parts {
		select {
		case <-p.taken:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// begin copies a part into a spool, beside whatever goes on.
func (m *moment) begin(dir, name string, write func(io.Writer) error) error {
	out, err := archive.NewSpool(dir)
	if err != nil {
		return err
	}
	p := &momentPart{name: name, out: out, taken: make(chan struct{}), done: make(chan struct{})}
	m.parts = append(m.parts, p)
	go p.run(write)
	return nil
}

// close lets go of everything; what is still being copied ends by itself.
func (m *moment) close() {
	if m.store != nil {
		m.store.Close()
	}
	for _, books := range m.ledgers {
		_ = books.Close()
	}
	for _, p := range m.parts {
		p.quit.Store(true)
	}
	for _, p := range m.parts {
		<-p.done
		p.out.Close()
	}
}
