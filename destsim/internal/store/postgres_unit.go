package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// digest stands for a key of a field of a table: 128 bits of SHA-256, so that
// no two keys meet by accident and none can be made to.
type digest [16]byte

func digestOf(number int32, field, key []byte) digest {
	text := binary.BigEndian.AppendUint32(make([]byte, 0, 5+len(field)+len(key)), uint32(number))
	text = append(append(append(text, field...), 0), key...)
	sum := sha256.Sum256(text)
	return digest(sum[:16])
}

// digestsOf are those of a row, one for each unique field that it has.
func digestsOf(number int32, uniques [][]byte, data []byte) []digest {
	var all []digest
	for _, field := range uniques {
		if key := keyOf(data, field); key != nil {
			all = append(all, digestOf(number, field, key))
		}
	}
	return all
}

// postgresUnit is one transaction. It reads the rows that a batch is about, all
// at once where they are told beforehand, keeps what becomes of them, and
// writes it together with the commit: two exchanges with the server for a
// batch, however many records it has.
type postgresUnit struct {
	s         *postgresStore
	ctx       context.Context
	cancel    context.CancelFunc
	conn      *pgxpool.Conn
	begun     bool
	done      bool
	exclusive bool  // take whole tables
	failed    error // the transaction is dead
	tables    map[string]*postgresTable
	fresh     int64 // ids of new rows, until they are written
}

// postgresTable is what a unit knows of a table.
type postgresTable struct {
	*Table
	number  int32
	indexed []byte // the unique fields, as the server has them
	locked  bool   // shared with other units
	taken   bool   // locked as a whole
	whole   bool   // all rows are in rows
	rows    map[int64]*postgresRow
	buckets map[digest]*bucket
}

// postgresRow is a row on its way.
type postgresRow struct {
	Row
	before  []byte // what is stored, nil for a new row
	removed bool
	touched bool
}

// bucket is one key: the rows that have it now, in ascending order of id, and
// how they are stored.
type bucket struct {
	rows   []*postgresRow
	stored int32 // rows that have the key in the store
	last   int32 // the highest copy among them
}

// Begin waits for one of the connections for batches.
func (s *postgresStore) Begin() (Unit, error) {
	ctx, cancel := s.patient()
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		cancel()
		return nil, fmt.Errorf("begin: %w", explainPostgres(ctx.Err()))
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		<-s.slots
		cancel()
		return nil, fmt.Errorf("begin: %w", explainPostgres(err))
	}
	return &postgresUnit{s: s, ctx: ctx, cancel: cancel, conn: conn, tables: map[string]*postgresTable{}}, nil
}

// Exclusive makes the unit take whole tables, so that no other one is in its
// way; it is said before the first record.
func (u *postgresUnit) Exclusive() { u.exclusive = true }

// fail notes that the transaction is dead.
func (u *postgresUnit) fail(err error) error {
	if err == nil {
		return nil
	}
	again := lost(err)
	if err = explainPostgres(err); again && !errors.Is(err, ErrAgain) {
		err = fmt.Errorf("%w: %w", ErrAgain, err)
	}
	u.failed = err
	return err
}

// open finds a table and how it is to be locked; nothing is sent for it yet.
func (u *postgresUnit) open(want *Table) (*postgresTable, error) {
	if u.done {
		return nil, ErrClosed
	}
	if u.failed != nil {
		return nil, u.failed
	}
	if t := u.tables[want.Name]; t != nil && slices.EqualFunc(t.Uniques, want.Uniques, bytes.Equal) {
		return t, nil
	}
	number, indexed, err := u.s.ensure(want)
	if err != nil {
		return nil, u.fail(err)
	}
	t := &postgresTable{Table: want, number: number, indexed: indexed, rows: map[int64]*postgresRow{}, buckets: map[digest]*bucket{}}
	u.tables[want.Name] = t
	return t, nil
}

// ask begins the transaction and locks the table where that is still to be
// done. Batches share a table, and one that looks beyond its keys takes it.
func (u *postgresUnit) ask(t *postgresTable, whole bool) *pgx.Batch {
	q := &pgx.Batch{}
	if !u.begun {
		u.begun = true
		q.Queue("BEGIN")
		q.Queue("SELECT pg_advisory_xact_lock_shared($1, $2)", u.s.class, lockWorld)
	}
	lock := ""
	switch {
	case whole && !t.taken:
		lock, t.taken = "SELECT pg_advisory_xact_lock($1, $2)", true
	case !whole && !t.locked && !t.taken:
		lock = "SELECT pg_advisory_xact_lock_shared($1, $2)"
	}
	if lock == "" {
		return q
	}
	t.locked = true
	q.Queue(lock, u.s.class, lockTable+t.number)
	q.Queue("SELECT uniques FROM tables WHERE num = $1", t.number).QueryRow(func(r pgx.Row) error {
		var have []byte
		if err := r.Scan(&have); err != nil {
			return err
		}
		if !bytes.Equal(have, t.indexed) {
			u.s.forget(t.Name) // another process has changed the schema since
			return ErrAgain
		}
		return nil
	})
	return q
}

// send sends what was asked.
func (u *postgresUnit) send(q *pgx.Batch) error {
	if q.Len() == 0 {
		return nil
	}
	return u.fail(u.conn.SendBatch(u.ctx, q).Close())
}

// load locks and reads the rows of some keys, in the order of their digests, so
// that two batches never wait for each other.
func (u *postgresUnit) load(t *postgresTable, keys []digest) error {
	keys = slices.DeleteFunc(keys, func(d digest) bool { return t.buckets[d] != nil })
	q := u.ask(t, u.exclusive || t.Wide || len(t.Uniques) != 1)
	if len(keys) > 0 {
		q.Queue(`SELECT k.digest, k.copy, r.id, r.data FROM keys k JOIN records r ON r.tbl = k.tbl AND r.id = k.id
			WHERE k.digest = ANY($1) ORDER BY k.digest, k.copy FOR UPDATE OF r`, keys).Query(func(rows pgx.Rows) error {
			return t.collect(rows)
		})
	}
	if err := u.send(q); err != nil {
		return err
	}
	for _, d := range keys {
		t.bucket(d)
	}
	return nil
}

// collect takes rows in, with one of their keys each.
func (t *postgresTable) collect(rows pgx.Rows) error {
	for rows.Next() {
		var d digest
		var number int32
		r := postgresRow{}
		if err := rows.Scan(&d, &number, &r.ID, &r.Data); err != nil {
			return err
		}
		b := t.bucket(d)
		b.stored, b.last = b.stored+1, max(b.last, number)
		have := t.rows[r.ID]
		if have == nil {
			r.before, have = r.Data, &r
			t.rows[r.ID] = have
		}
		if !have.touched {
			b.add(have)
		}
	}
	return rows.Err()
}

// bucket finds or makes that of a key.
func (t *postgresTable) bucket(d digest) *bucket {
	b := t.buckets[d]
	if b == nil {
		b = &bucket{last: -1}
		t.buckets[d] = b
	}
	return b
}

// add keeps the order of ids: the first copy of a key stays the first.
func (b *bucket) add(r *postgresRow) {
	at, is := slices.BinarySearchFunc(b.rows, r.ID, func(o *postgresRow, id int64) int { return int(o.ID - id) })
	if !is {
		b.rows = slices.Insert(b.rows, at, r)
	}
}

func (b *bucket) drop(r *postgresRow) {
	b.rows = slices.DeleteFunc(b.rows, func(o *postgresRow) bool { return o == r })
}

// loadWhole takes the table and reads all of it.
func (u *postgresUnit) loadWhole(t *postgresTable) error {
	if t.whole {
		return nil
	}
	q := u.ask(t, true)
	q.Queue("SELECT id, data FROM records WHERE tbl = $1 ORDER BY id", t.number).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			r := postgresRow{}
			if err := rows.Scan(&r.ID, &r.Data); err != nil {
				return err
			}
			if t.rows[r.ID] == nil {
				r.before = r.Data
				t.rows[r.ID] = &r
			}
		}
		return rows.Err()
	})
	t.whole = true
	return u.send(q)
}

// Preload reads the rows of many keys of one field at once.
func (u *postgresUnit) Preload(want *Table, field []byte, keys [][]byte) error {
	t, err := u.open(want)
	if err != nil {
		return err
	}
	list := make([]digest, len(keys))
	for i, key := range keys {
		list[i] = digestOf(t.number, field, key)
	}
	return u.load(t, list)
}

// With locks by the rows that it finds; what is not there is guarded by the
// unique index, at the commit.
func (u *postgresUnit) With(want *Table, field, key []byte, fn func(Rows) error) error {
	t, err := u.open(want)
	if err != nil {
		return err
	}
	narrow := !want.Wide && key != nil && len(t.Uniques) == 1 && bytes.Equal(t.Uniques[0], field)
	if !narrow {
		if err := u.send(u.ask(t, true)); err != nil {
			return err
		}
	}
	return fn(postgresRows{u, t, narrow})
}

// Commit writes everything at once.
func (u *postgresUnit) Commit() error {
	if u.done {
		return nil
	}
	if u.failed != nil {
		return u.failed
	}
	if u.begun {
		q := &pgx.Batch{}
		for _, t := range u.tables {
			u.flush(q, t)
		}
		q.Queue("COMMIT")
		if err := u.send(q); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
		u.begun = false
	}
	u.Rollback()
	return nil
}

// Rollback gives the connection back; the pool closes one that is still in a
// transaction.
func (u *postgresUnit) Rollback() {
	if u.done {
		return
	}
	u.done = true
	if u.begun {
		ctx, cancel := context.WithTimeout(context.Background(), postgresRollback)
		_, _ = u.conn.Exec(ctx, "ROLLBACK")
		cancel()
	}
	u.conn.Release()
	u.cancel()
	<-u.s.slots
}
