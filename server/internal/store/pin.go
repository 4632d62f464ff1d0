package store

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/destkit/destkit/server/internal/store/database"
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
	c     database.Conn // that reads; nil where image has everything
	image []byte        // of a store in memory
}

// Pin takes the present moment; read sees it. A store in memory is copied at once, as
// nobody can write into it while somebody reads.
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
	tx := &Tx{ctx: ctx, store: s, conn: c, now: s.now(), epoch: s.keys.Epoch()}
	// The first read decides what the transaction sees.
	if _, err := tx.number("SELECT count(*) FROM organizations WHERE id = 0"); err != nil {
		return nil, fmt.Errorf("pin %s: %w", s.place, err)
	}
	if err := read(tx); err != nil {
		return nil, err
	}
	if s.memory {
		if p.image, err = c.(*sqlite.Conn).Image(); err != nil {
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
		err = p.s.engine.Copy(ctx, p.c, w)
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

// Everything names what exists in all organizations.
type Everything struct {
	Destinations, Sources []Typed
	Syncs                 []int64
}

// Typed is a thing with its type.
type Typed struct {
	ID   int64
	Type string
}

// Everything reads nothing but ids and types: thousands in milliseconds.
func (tx *Tx) Everything() (all Everything, err error) {
	typed := func(query string) (list []Typed, err error) {
		err = tx.query(query, func(c database.Cells) error {
			id, _ := c.Number(0)
			list = append(list, Typed{id, c.Text(1)})
			return nil
		})
		return list, err
	}
	if all.Destinations, err = typed("SELECT id, type FROM destinations ORDER BY id"); err != nil {
		return all, fmt.Errorf("list destinations: %w", err)
	}
	if all.Sources, err = typed("SELECT id, type FROM sources ORDER BY id"); err != nil {
		return all, fmt.Errorf("list sources: %w", err)
	}
	err = tx.query("SELECT id FROM syncs ORDER BY id", func(c database.Cells) error {
		id, _ := c.Number(0)
		all.Syncs = append(all.Syncs, id)
		return nil
	})
	if err != nil {
		return all, fmt.Errorf("list syncs: %w", err)
	}
	return all, nil
}
