package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/internal/handles"
)

// sqliteStore keeps records in one SQLite file. One connection does all the
// work: SQLite has one writer anyway, and what a batch acknowledges must be
// what every later call sees.
type sqliteStore struct {
	file string
	mu   sync.Mutex // held from Begin to Commit or Rollback
	conn *sqlite.Conn
}

// sqliteSchema: keys is the index over the unique fields, which are data here,
// since objects and fields come from the configuration.
const sqliteSchema = `
CREATE TABLE IF NOT EXISTS tables (name TEXT PRIMARY KEY, uniques BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS records (id INTEGER PRIMARY KEY AUTOINCREMENT, tbl TEXT NOT NULL, data BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS records_by_table ON records (tbl, id);
CREATE TABLE IF NOT EXISTS keys (tbl TEXT NOT NULL, field BLOB NOT NULL, key BLOB NOT NULL, id INTEGER NOT NULL,
	PRIMARY KEY (tbl, field, key, id)) WITHOUT ROWID;
`

// openSQLite opens or creates a store.
func openSQLite(file string) (*sqliteStore, error) {
	s := &sqliteStore{file: file}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("open store %s: %w", file, err)
	}
	return s, nil
}

// ownFile makes a missing file, for its owner alone: SQLite would let everybody read
// the records, and its further files get the mode of the first.
func ownFile(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// open opens the file and creates missing tables. A file of another program stays as it
// is.
func (s *sqliteStore) open() error {
	if err := ownFile(s.file); err != nil {
		return err
	}
	if err := checkOwn(s.file); err != nil {
		return err
	}
	conn, err := handles.Open(s.file, sqlite.OpenReadWrite|sqlite.OpenCreate|sqlite.OpenWAL)
	if err != nil {
		return err
	}
	// FULL: a commit is on disk before the batch is acknowledged.
	for _, q := range []string{"PRAGMA synchronous=FULL", "PRAGMA foreign_keys=OFF"} {
		if err := sqlitex.ExecuteTransient(conn, q, nil); err != nil {
			return errors.Join(err, handles.Close(conn))
		}
	}
	if err := sqlitex.ExecuteScript(conn, sqliteSchema, nil); err != nil {
		return errors.Join(err, handles.Close(conn))
	}
	if err := mark(conn); err != nil {
		return errors.Join(err, handles.Close(conn))
	}
	s.conn = conn
	return nil
}

// Close closes the file; a store that is closed refuses everything.
func (s *sqliteStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil
	}
	conn := s.conn
	s.conn = nil
	return handles.Close(conn)
}

// Restart closes and reopens the file, as a new process would.
func (s *sqliteStore) Restart() error {
	if err := s.Close(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open()
}

var ErrClosed = errors.New("the store is closed")

// Begin waits for the batch before; IMMEDIATE makes another process that holds
// the file fail here and not at the commit.
func (s *sqliteStore) Begin() (Unit, error) {
	s.mu.Lock()
	if s.conn == nil {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	if err := s.exec("BEGIN IMMEDIATE"); err != nil {
		s.mu.Unlock()
		return nil, fmt.Errorf("begin: %w", err)
	}
	return &sqliteUnit{s: s}, nil
}

// exec runs a prepared statement without rows.
func (s *sqliteStore) exec(query string, args ...any) error {
	return s.query(query, nil, args...)
}

// query runs a prepared statement; the connection keeps it for the next time.
func (s *sqliteStore) query(query string, row func(*sqlite.Stmt), args ...any) error {
	return sqlitex.Execute(s.conn, query, rowsTo(row, args...))
}

// rowsTo hands every row of a statement to row.
func rowsTo(row func(*sqlite.Stmt), args ...any) *sqlitex.ExecOptions {
	return &sqlitex.ExecOptions{Args: args, ResultFunc: func(stmt *sqlite.Stmt) error {
		if row != nil {
			row(stmt)
		}
		return nil
	}}
}

// Scan sees committed rows.
func (s *sqliteStore) Scan(name string, after int64, limit int) ([]Row, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil, 0, ErrClosed
	}
	var found []Row
	total := 0
	err := s.query("SELECT id, data FROM records WHERE tbl = ? AND id > ? ORDER BY id LIMIT ?", func(stmt *sqlite.Stmt) {
		found = append(found, Row{ID: stmt.ColumnInt64(0), Data: columnBytes(stmt, 1)})
	}, name, after, limit)
	if err == nil {
		err = s.query("SELECT count(*) FROM records WHERE tbl = ?", func(stmt *sqlite.Stmt) { total = stmt.ColumnInt(0) }, name)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("scan store: %w", err)
	}
	return found, total, nil
}

// columnBytes copies a column; SQLite owns the original for one step only.
func columnBytes(stmt *sqlite.Stmt, col int) []byte {
	b := make([]byte, stmt.ColumnLen(col))
	stmt.ColumnBytes(col, b)
	return b
}

func (s *sqliteStore) Drop(name string) error {
	u, err := s.Begin()
	if err != nil {
		return err
	}
	defer u.Rollback()
	for _, t := range []string{"records", "keys", "tables"} {
		column := map[string]string{"tables": "name"}[t]
		if err := s.exec("DELETE FROM "+t+" WHERE ?1 = '' OR "+cmp.Or(column, "tbl")+" = ?1", name); err != nil {
			return fmt.Errorf("drop table: %w", err)
		}
	}
	return u.Commit()
}

// sqliteUnit is one transaction.
type sqliteUnit struct {
	s    *sqliteStore
	done bool
	seen map[string]bool // tables whose index was compared in this unit
}

// finish ends the transaction once and lets the next batch in.
func (u *sqliteUnit) finish(query string) error {
	if u.done {
		return nil
	}
	u.done = true
	defer u.s.mu.Unlock()
	err := u.s.exec(query)
	if err != nil && query == "COMMIT" {
		err = errors.Join(err, u.s.exec("ROLLBACK"))
	}
	return err
}

func (u *sqliteUnit) Commit() error {
	if err := u.finish("COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// Rollback has no one to report an error to: a transaction that cannot be
// rolled back was rolled back by SQLite itself.
func (u *sqliteUnit) Rollback() { _ = u.finish("ROLLBACK") }

// With needs no separate lock: the unit is the only one that runs.
func (u *sqliteUnit) With(t *Table, _, _ []byte, fn func(Rows) error) error {
	if u.done {
		return ErrClosed
	}
	if err := u.index(t); err != nil {
		return err
	}
	return fn(sqliteRows{u.s, t})
}

// index rebuilds the keys of a table when its unique fields have changed
// since they were written.
func (u *sqliteUnit) index(t *Table) error {
	want := bytes.Join(t.Uniques, []byte{0})
	seen := t.Name + "\x00" + string(want)
	if u.seen[seen] {
		return nil
	}
	var have []byte
	known := false
	err := u.s.query("SELECT uniques FROM tables WHERE name = ?", func(stmt *sqlite.Stmt) {
		have, known = columnBytes(stmt, 0), true
	}, t.Name)
	if err != nil {
		return err
	}
	if !known || !bytes.Equal(have, want) {
		if err := u.reindex(t, want); err != nil {
			return err
		}
	}
	if u.seen == nil {
		u.seen = map[string]bool{}
	}
	u.seen[seen] = true
	return nil
}

// reindex reads the table once; it runs after a change of the schema only.
func (u *sqliteUnit) reindex(t *Table, want []byte) error {
	if err := u.s.exec("DELETE FROM keys WHERE tbl = ?", t.Name); err != nil {
		return err
	}
	var all []Row
	err := u.s.query("SELECT id, data FROM records WHERE tbl = ?", func(stmt *sqlite.Stmt) {
		all = append(all, Row{ID: stmt.ColumnInt64(0), Data: columnBytes(stmt, 1)})
	}, t.Name)
	if err != nil {
		return err
	}
	r := sqliteRows{u.s, t}
	for i := range all {
		if err := r.link(all[i].ID, all[i].Data); err != nil {
			return err
		}
	}
	return u.s.exec("INSERT INTO tables (name, uniques) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET uniques = ?2", t.Name, want)
}

// sqliteRows are the rows of one table within a transaction.
type sqliteRows struct {
	s *sqliteStore
	t *Table
}

// Find orders by id, so that the first copy of a key stays the first.
func (r sqliteRows) Find(field, key []byte) ([]*Row, error) {
	var found []*Row
	collect := func(stmt *sqlite.Stmt) {
		data := columnBytes(stmt, 1)
		if v, ok := Member(data, field); key == nil || ok && bytes.Equal(v, key) {
			found = append(found, &Row{ID: stmt.ColumnInt64(0), Data: data})
		}
	}
	indexed := slices.ContainsFunc(r.t.Uniques, func(u []byte) bool { return bytes.Equal(u, field) })
	if key != nil && indexed {
		err := r.s.query(`SELECT r.id, r.data FROM keys k JOIN records r ON r.id = k.id
			WHERE k.tbl = ? AND k.field = ? AND k.key = ? ORDER BY r.id`, collect, r.t.Name, field, key)
		return found, err
	}
	err := r.s.query("SELECT id, data FROM records WHERE tbl = ? ORDER BY id", collect, r.t.Name)
	return found, err
}

// Put touches the index only when a key has changed.
func (r sqliteRows) Put(old *Row, data []byte) error {
	if old == nil {
		if err := r.s.exec("INSERT INTO records (tbl, data) VALUES (?, ?)", r.t.Name, data); err != nil {
			return err
		}
		return r.link(r.s.conn.LastInsertRowID(), data)
	}
	if err := r.s.exec("UPDATE records SET data = ? WHERE id = ?", data, old.ID); err != nil {
		return err
	}
	for _, field := range r.t.Uniques {
		if !bytes.Equal(keyOf(old.Data, field), keyOf(data, field)) {
			if err := r.unlink(old); err != nil {
				return err
			}
			return r.link(old.ID, data)
		}
	}
	return nil
}

func (r sqliteRows) Remove(old *Row) error {
	if err := r.unlink(old); err != nil {
		return err
	}
	return r.s.exec("DELETE FROM records WHERE id = ?", old.ID)
}

func (r sqliteRows) link(id int64, data []byte) error {
	return r.eachKey(id, data, "INSERT INTO keys (tbl, field, key, id) VALUES (?, ?, ?, ?)")
}

func (r sqliteRows) unlink(old *Row) error {
	return r.eachKey(old.ID, old.Data, "DELETE FROM keys WHERE tbl = ? AND field = ? AND key = ? AND id = ?")
}

// eachKey runs a statement for every key of a row.
func (r sqliteRows) eachKey(id int64, data []byte, query string) error {
	for _, field := range r.t.Uniques {
		if key := keyOf(data, field); key != nil {
			if err := r.s.exec(query, r.t.Name, field, key, id); err != nil {
				return err
			}
		}
	}
	return nil
}
