package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/destkit/destkit/server/internal/store/database"
	"github.com/destkit/destkit/server/internal/store/postgres"
	"github.com/destkit/destkit/server/internal/store/sealing"
	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// Tx is one transaction. It must not be used by two goroutines at once, nor
// after the function that got it has returned.
type Tx struct {
	ctx    context.Context
	store  *Store
	conn   database.Conn
	now    time.Time
	write  bool
	broken error // a failure after which nothing may be committed
	keys   sealing.Keys

	// Of a shared store: whether there is something to commit, what the other
	// processes are told then, and the transaction in the hands of others.
	changed bool
	notices []postgres.Notice
	guest   *postgres.Guest
}

// Now is the moment of the transaction in milliseconds, in UTC: the times of all
// rows that it creates or saves.
func (tx *Tx) Now() time.Time { return tx.now }

func (s *Store) transaction(ctx context.Context, c database.Conn) *Tx {
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

// change runs a change for the holder of the turn.
func (s *Store) change(ctx context.Context, change func(*Tx) error) error {
	c, err := s.begun(ctx, s.writing, true)
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
	if s.schema != nil {
		if err := tx.join(); err != nil {
			return fmt.Errorf("begin change: %w", err)
		}
		defer tx.leave()
	}
	if err := change(tx); err != nil {
		if tx.guest != nil {
			err = postgres.Told(err)
		}
		return err
	}
	// Both are looked at again because change may have swallowed its error.
	if err := errors.Join(tx.broken, ctx.Err()); err != nil {
		return fmt.Errorf("commit change: %w", err)
	}
	onDisk := s.disk != nil && tx.changed
	if onDisk {
		if err := s.disk.BeginSession(tx.SetSetting); err != nil {
			return fmt.Errorf("commit change: %w", err)
		}
	}
	if err := tx.commit(); err != nil {
		if s.disk != nil {
			c.(*sqlite.Conn).Withdraw()
		}
		return fmt.Errorf("commit change: %w", err)
	}
	c = nil // nothing is left to undo
	if onDisk {
		s.disk.Begun()
	}
	tx.keys.Committed()
	return nil
}

// join learns what other processes of a shared store have left.
func (tx *Tx) join() error {
	renewed, err := tx.store.schema.Began(tx.conn.(*postgres.Conn), tx.query)
	if renewed {
		tx.keys.Renewed()
	}
	return err
}

func (tx *Tx) commit() error {
	if schema := tx.store.schema; schema != nil {
		return schema.Commit(tx.conn.(*postgres.Conn), tx.changed, tx.notices)
	}
	// Also after a failure: it may be the answer that was lost, and not the change.
	defer tx.store.generation.Add(1)
	_, err := tx.conn.Run(database.Commit, nil)
	return err
}

// leave ends what others may have of the transaction.
func (tx *Tx) leave() {
	if tx.guest != nil {
		tx.guest.Leave()
	}
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

func (tx *Tx) query(query string, each func(database.Cells) error, args ...any) error {
	if err := tx.ready(false); err != nil {
		return err
	}
	rows := uint64(0)
	_, err := tx.conn.Run(query, func(c database.Cells) error {
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
	_, err = tx.conn.Run(query, func(c database.Cells) error {
		id, _ = c.Number(0)
		return nil
	}, args...)
	return id, tx.checked(err)
}

// number reads a single number; 0 when there is no row.
func (tx *Tx) number(query string, args ...any) (n int64, err error) {
	err = tx.query(query, func(c database.Cells) error {
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
	if !harmless(err) {
		tx.broken = err
	}
	if errors.Is(err, ErrDamaged) {
		tx.store.damaged.Store(true)
	}
	if dangling(err) {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return err
}
