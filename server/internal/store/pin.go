package store

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// Still waits for the change under way and lets no other one begin until release is
// called; who reads goes on. The wait ends with ctx.
func (s *Store) Still(ctx context.Context) (release func(), err error) {
	if err := s.turn.take(WithUrgency(ctx, Urgent), s.closed); err != nil {
		return nil, fmt.Errorf("keep %s as it is: %w", s.place, err)
	}
	return sync.OnceFunc(s.turn.leave), nil
}

// Pinned is the store as it was at one moment, while others read and write. Close it.
type Pinned struct {
	s     *Store
	c     *sqlite.Conn // that reads; nil where image has everything
	image []byte       // of a store in memory
}

// Pin takes the present moment; read sees it. A store in memory is copied at once, as
// no one can write into it while there is a reader.
func (s *Store) Pin(ctx context.Context, read func(*Tx) error) (*Pinned, error) {
	c, err := s.takeReader(ctx)
	if err != nil {
		return nil, fmt.Errorf("pin %s: %w", s.place, err)
	}
	p, taken := &Pinned{s: s, c: c}, false
	defer func() { // also when read panics
		if !taken || p.image != nil {
			p.Close()
		}
	}()
	tx := s.transaction(ctx, c)
	// The first read decides what the transaction sees.
	if _, err := tx.number("SELECT count(*) FROM organizations WHERE id = 0"); err != nil {
		return nil, fmt.Errorf("pin %s: %w", s.place, err)
	}
	if err := read(tx); err != nil {
		return nil, err
	}
	if s.memory {
		if p.image, err = c.Image(); err != nil {
			return nil, fmt.Errorf("pin %s: %w", s.place, err)
		}
	}
	taken = true
	return p, nil
}

// Copy writes the moment as Store.Copy does.
func (p *Pinned) Copy(ctx context.Context, w io.Writer) error {
	var err error
	if p.image != nil {
		_, err = w.Write(p.image)
	} else {
		err = p.s.files.Copy(ctx, p.c, w)
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", p.s.place, err)
	}
	return nil
}

// Close lets go of the moment; closing twice is no error.
func (p *Pinned) Close() {
	if p.c != nil {
		p.s.readers <- ended(p.c)
		p.c = nil
	}
}
