package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/destkit/destkit/server/internal/store/sealing"
	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// Tx is one transaction. It must not be used by two goroutines at once, nor
// after the function that got it has returned.
type Tx struct {
	ctx    context.Context
	store  *Store
	conn   *sqlite.Conn
	now    time.Time
	write  bool
	broken error // a failure after which nothing may be committed
	keys   sealing.Keys

	changed bool // there is something to commit
}

// Now is the moment of the transaction in milliseconds, in UTC: the times of all
// rows that it creates or saves.
func (tx *Tx) Now() time.Time { return tx.now }

func (s *Store) transaction(ctx context.Context, c *sqlite.Conn) *Tx {
	tx := &Tx{ctx: ctx, store: s, conn: c, now: s.now()}
	tx.keys = s.keys.Keys(statements{tx})
	return tx
}

// View runs one consistent read; many run at once.
func (s *Store) View(ctx context.Context, read func(*Tx) error) error {
	c, err := s.takeReader(ctx)
	if err != nil {
		return fmt.Errorf("begin read: %w", err)
	}
	defer func() { s.readers <- ended(c) }()
	return read(s.transaction(ctx, c))
}

// Read is View for a value.
func Read[T any](ctx context.Context, s *Store, read func(*Tx) (T, error)) (value T, err error) {
	err = s.View(ctx, func(tx *Tx) (err error) {
		value, err = read(tx)
		return err
	})
	return value, err
}

// Update runs one change: all of it is durable when Update returns nil, and
// none of it otherwise. It waits for the change before; a context that is done
// ends the wait and the change.
func (s *Store) Update(ctx context.Context, change func(*Tx) error) error {
	release, err := s.takeWriter(ctx)
	if err != nil {
		return fmt.Errorf("begin change: %w", err)
	}
	defer release()
	return s.change(ctx, change)
}

// Change is Update for a value.
func Change[T any](ctx context.Context, s *Store, change func(*Tx) (T, error)) (value T, err error) {
	err = s.Update(ctx, func(tx *Tx) (err error) {
		value, err = change(tx)
		return err
	})
	return value, err
}

// change runs a change for the holder of the turn.
func (s *Store) change(ctx context.Context, change func(*Tx) error) error {
	c, err := s.begun(s.writing, true)
	if s.writing = c; err != nil {
		return fmt.Errorf("begin change: %w", err)
	}
	defer func() { // also when change panics
		if c != nil {
			s.writing = ended(c)
		}
	}()
	tx := s.transaction(ctx, c)
	tx.write = true
	if err := change(tx); err != nil {
		return err
	}
	// Both are looked at again because change may have swallowed its error.
	if err := errors.Join(tx.broken, ctx.Err()); err != nil {
		return fmt.Errorf("commit change: %w", err)
	}
	onDisk := !s.memory && tx.changed
	if onDisk {
		if err := s.files.BeginSession(tx.SetSetting); err != nil {
			return fmt.Errorf("commit change: %w", err)
		}
	}
	if err := tx.commit(); err != nil {
		if !s.memory {
			c.Withdraw()
		}
		return fmt.Errorf("commit change: %w", err)
	}
	c = nil // nothing is left to undo
	if onDisk {
		s.files.Begun()
	}
	tx.keys.Committed()
	return nil
}

func (tx *Tx) commit() error {
	// Also after a failure: it may be the answer that was lost, and not the change.
	defer tx.store.generation.Add(1)
	_, err := tx.conn.Run(sqlite.Commit, nil)
	return err
}

func (tx *Tx) exec(query string, args ...any) (int64, error) {
	if err := tx.ready(true); err != nil {
		return 0, err
	}
	tx.changed = true
	tx.store.work.statements.Add(1)
	changed, err := tx.conn.Run(query, nil, args...)
	return changed, tx.checked(err)
}

func (tx *Tx) query(query string, each func(sqlite.Row) error, args ...any) error {
	if err := tx.ready(false); err != nil {
		return err
	}
	rows := uint64(0)
	_, err := tx.conn.Run(query, func(c sqlite.Row) error {
		rows++
		return each(c)
	}, args...)
	tx.store.work.statements.Add(1)
	tx.store.work.rows.Add(rows)
	return tx.checked(err)
}

// insert runs an INSERT … RETURNING id.
func (tx *Tx) insert(query string, args ...any) (id int64, err error) {
	if err := tx.ready(true); err != nil {
		return 0, err
	}
	tx.changed = true
	tx.store.work.statements.Add(1)
	_, err = tx.conn.Run(query, func(c sqlite.Row) error {
		id, _ = c.Number(0)
		return nil
	}, args...)
	return id, tx.checked(err)
}

// number reads a single number; 0 when there is no row.
func (tx *Tx) number(query string, args ...any) (n int64, err error) {
	err = tx.query(query, func(c sqlite.Row) error {
		n, _ = c.Number(0)
		return nil
	}, args...)
	return n, err
}

func (tx *Tx) ready(write bool) error {
	if write && !tx.write {
		return errors.New("a View cannot change anything")
	}
	if tx.broken != nil {
		return tx.broken
	}
	return tx.ctx.Err()
}

// checked remembers an error after which the transaction may be gone, and names a
// reference to nothing.
func (tx *Tx) checked(err error) error {
	if err == nil {
		return nil
	}
	if !sqlite.Harmless(err) {
		tx.broken = err
	}
	if errors.Is(err, ErrDamaged) {
		tx.store.damaged.Store(true)
	}
	if sqlite.Dangling(err) {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return err
}
