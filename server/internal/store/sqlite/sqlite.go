// Package sqlite owns the SQLite database below a store, in a data directory or in memory:
// its connections, the lock of a directory and the files in it, its log and checksum after
// a stop or a kill, and copies, which are SQLite databases whatever the store that they
// are of. It leaves rows and transactions to the store, and the tables to
package sqlite

import (
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/internal/handles"
)

// Conn is one connection to SQLite.
type Conn struct{ db *sqlite.Conn }

// Begin starts a transaction. One that reads sees one moment; one that writes
// sees all that was committed before, and no other writes meanwhile.
func (c *Conn) Begin(write bool) error {
	how := "BEGIN"
	if write {
		how = "BEGIN IMMEDIATE"
	}
	_, err := c.Run(how, nil)
	return err
}

// exec runs a statement and returns how many rows it changed.
func (c *Conn) exec(query string, args ...any) (int64, error) {
	return c.Run(query, nil, args...)
}

// Query runs a statement that reads.
func (c *Conn) Query(query string, each func(Row) error, args ...any) error {
	_, err := c.Run(query, each, args...)
	return err
}

// Run runs a statement, which the connection keeps prepared, and returns how many rows
// it changed. each gets the rows and runs nothing itself. A statement that breaks a
// constraint is undone alone (Harmless).
func (c *Conn) Run(query string, each func(Row) error, args ...any) (int64, error) {
	if query == Rollback && c.db.AutocommitEnabled() {
		return 0, nil // SQLite has ended the transaction by itself
	}
	stmt, err := c.db.Prepare(query)
	if err != nil {
		return 0, translate(err)
	}
	defer stmt.Reset()
	for i, arg := range args {
		if err := bind(stmt, i+1, arg); err != nil {
			return 0, err
		}
	}
	for {
		more, err := stmt.Step()
		if err != nil {
			return 0, translate(err)
		}
		if !more {
			return int64(c.db.Changes()), nil
		}
		if each != nil {
			if err := each(Row{stmt}); err != nil {
				return 0, err
			}
		}
	}
}

// script runs several statements.
func (c *Conn) script(text string) error {
	return translate(sqlitex.ExecuteScript(c.db, text, nil))
}

// pragma runs one statement that is not worth keeping and gives its first
// number, 0 when there is none.
func (c *Conn) pragma(query string) (value int64, err error) {
	err = sqlitex.ExecuteTransient(c.db, query, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		value = stmt.ColumnInt64(0)
		return nil
	}})
	return value, translate(err)
}

// Close closes the connection.
func (c *Conn) Close() error { return handles.Close(c.db) }

// Image is the whole database as the bytes of a file.
func (c *Conn) Image() ([]byte, error) {
	data, err := c.db.Serialize("main")
	return data, translate(err)
}

func bind(stmt *sqlite.Stmt, i int, arg any) error {
	switch v := arg.(type) {
	case nil:
		stmt.BindNull(i)
	case int64:
		stmt.BindInt64(i, v)
	case *int64:
		if v == nil {
			stmt.BindNull(i)
		} else {
			stmt.BindInt64(i, *v)
		}
	case bool:
		stmt.BindBool(i, v)
	case *bool:
		if v == nil {
			stmt.BindNull(i)
		} else {
			stmt.BindBool(i, *v)
		}
	case string:
		stmt.BindText(i, v)
	case []byte:
		stmt.BindBytes(i, v)
	case time.Time:
		if v.IsZero() {
			stmt.BindNull(i)
		} else {
			stmt.BindInt64(i, v.UnixMilli())
		}
	case Document:
		text, err := v.JSON()
		if err != nil {
			return err
		}
		stmt.BindText(i, text)
	default:
		panic(fmt.Sprintf("argument %d is a %T", i, arg))
	}
	return nil
}

// Row is the present row of a statement; it is valid until the next one.
type Row struct{ stmt *sqlite.Stmt }

// Number gives a column; ok: it is not NULL.
func (r Row) Number(col int) (int64, bool) {
	if r.stmt.ColumnType(col) == sqlite.TypeNull {
		return 0, false
	}
	return r.stmt.ColumnInt64(col), true
}

// Text gives a column as text.
func (r Row) Text(col int) string { return r.stmt.ColumnText(col) }

// Blob gives a copy of a column.
func (r Row) Blob(col int) []byte {
	b := make([]byte, r.stmt.ColumnLen(col))
	r.stmt.ColumnBytes(col, b)
	return b
}
