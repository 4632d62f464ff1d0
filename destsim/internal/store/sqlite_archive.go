package store

import (
	"errors"
	"fmt"
	"sync"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/internal/handles"
)

// second opens another connection to the file; both are used at once. A
// database that lives in one connection only cannot be shared.
func (s *sqliteStore) second() (*sqlite.Conn, error) {
	conn, err := handles.Open(s.file, sqlite.OpenReadWrite|sqlite.OpenWAL)
	if err != nil {
		return nil, err
	}
	file := ""
	err = sqlitex.ExecuteTransient(conn, "SELECT file FROM pragma_database_list WHERE name = 'main'",
		rowsTo(func(stmt *sqlite.Stmt) { file = stmt.ColumnText(0) }))
	if err == nil && file == "" {
		err = errors.New("the store is not in a file")
	}
	if err != nil {
		return nil, errors.Join(err, handles.Close(conn))
	}
	return conn, nil
}

// Dump reads on its own connection, in one transaction: SQLite isolates it
// from writes of batches meanwhile.
func (s *sqliteStore) Dump(fixed func(lastID int64), each func(table string, r Row) error) (err error) {
	conn, err := s.cutAt(fixed)
	if err != nil {
		return fmt.Errorf("read store: %w", err)
	}
	defer func() { err = errors.Join(err, handles.Close(conn)) }() // ends the transaction too
	return sqlitex.Execute(conn, "SELECT id, tbl, data FROM records ORDER BY id", &sqlitex.ExecOptions{
		ResultFunc: func(stmt *sqlite.Stmt) error {
			return each(stmt.ColumnText(1), Row{ID: stmt.ColumnInt64(0), Data: columnBytes(stmt, 2)})
		},
	})
}

// cutAt opens the transaction of a dump between two batches.
func (s *sqliteStore) cutAt(fixed func(lastID int64)) (*sqlite.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil, ErrClosed
	}
	conn, err := s.second()
	if err != nil {
		return nil, err
	}
	last := int64(0)
	err = sqlitex.ExecuteTransient(conn, "BEGIN", nil)
	if err == nil { // the first read decides what the transaction sees
		err = sqlitex.ExecuteTransient(conn, "SELECT seq FROM sqlite_sequence WHERE name = 'records'",
			rowsTo(func(stmt *sqlite.Stmt) { last = stmt.ColumnInt64(0) }))
	}
	if err != nil {
		return nil, errors.Join(err, handles.Close(conn))
	}
	fixed(last)
	return conn, nil
}

// sqliteStage fills a temporary database, which SQLite keeps in memory while it
// is small and removes by itself. Batches go on until Commit.
type sqliteStage struct {
	s     *sqliteStore
	conn  *sqlite.Conn
	close func() error
}

func (s *sqliteStore) Stage() (Stage, error) {
	conn, err := s.second()
	if err != nil {
		return nil, fmt.Errorf("stage store: %w", err)
	}
	st := &sqliteStage{s: s, conn: conn, close: sync.OnceValue(conn.Close)}
	for _, q := range []string{
		"PRAGMA synchronous=FULL",
		"ATTACH '' AS staged",
		"CREATE TABLE staged.rows (id INTEGER PRIMARY KEY, tbl TEXT NOT NULL, data BLOB NOT NULL)",
		"BEGIN",
	} {
		if err := sqlitex.ExecuteTransient(conn, q, nil); err != nil {
			return nil, errors.Join(fmt.Errorf("stage store: %w", err), st.close())
		}
	}
	return st, nil
}

func (st *sqliteStage) Put(name string, r Row) error {
	return sqlitex.Execute(st.conn, "INSERT INTO staged.rows (id, tbl, data) VALUES (?, ?, ?)",
		&sqlitex.ExecOptions{Args: []any{r.ID, name, r.Data}})
}

// Commit moves everything in one transaction. The index is built by the first
// batch, which knows the unique fields.
func (st *sqliteStage) Commit(lastID int64) (err error) {
	defer func() { err = errors.Join(err, st.close()) }() // rolls back uncommitted changes
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if st.s.conn == nil {
		return ErrClosed
	}
	for _, q := range []string{
		"COMMIT",
		"BEGIN IMMEDIATE",
		"DELETE FROM main.records",
		"DELETE FROM main.keys",
		"DELETE FROM main.tables",
		"INSERT INTO main.records (id, tbl, data) SELECT id, tbl, data FROM staged.rows ORDER BY id",
		"DELETE FROM main.sqlite_sequence WHERE name = 'records'",
	} {
		if err := sqlitex.ExecuteTransient(st.conn, q, nil); err != nil {
			return fmt.Errorf("replace store: %w", err)
		}
	}
	err = sqlitex.ExecuteTransient(st.conn, "INSERT INTO main.sqlite_sequence (name, seq) VALUES ('records', ?)",
		&sqlitex.ExecOptions{Args: []any{lastID}})
	if err == nil {
		err = sqlitex.ExecuteTransient(st.conn, "COMMIT", nil)
	}
	if err != nil {
		return fmt.Errorf("replace store: %w", err)
	}
	return nil
}

// Discard drops the temporary database with its connection.
func (st *sqliteStage) Discard() { _ = st.close() }
