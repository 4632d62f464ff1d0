package store

import (
	"encoding/json"
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// This file is the seam to the database: statements with ? for arguments, and
// rows read by position. Everything above it is SQL in the subset that SQLite
// and PostgreSQL share.

// conn is one connection; one goroutine at a time uses it.
type conn struct{ db *sqlite.Conn }

// cells are the columns of one row; they are valid until the next row.
type cells interface {
	number(col int) (value int64, ok bool) // ok: not NULL
	text(col int) string
	blob(col int) []byte // a copy
}

// exec runs a statement and says how many rows it changed.
func (c *conn) exec(query string, args ...any) (int64, error) {
	if err := c.query(query, nil, args...); err != nil {
		return 0, err
	}
	return int64(c.db.Changes()), nil
}

// query runs a statement, which the connection keeps prepared.
func (c *conn) query(query string, each func(cells) error, args ...any) error {
	stmt, err := c.db.Prepare(query)
	if err != nil {
		return translate(err)
	}
	defer stmt.Reset()
	for i, arg := range args {
		if err := bind(stmt, i+1, arg); err != nil {
			return err
		}
	}
	for {
		more, err := stmt.Step()
		if err != nil {
			return translate(err)
		}
		if !more {
			return nil
		}
		if each != nil {
			if err := each(row{stmt}); err != nil {
				return err
			}
		}
	}
}

// script runs several statements.
func (c *conn) script(text string) error {
	return translate(sqlitex.ExecuteScript(c.db, text, nil))
}

// pragma runs one statement that is not worth keeping and gives its first
// number, 0 when there is none.
func (c *conn) pragma(query string) (value int64, err error) {
	err = sqlitex.ExecuteTransient(c.db, query, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		value = stmt.ColumnInt64(0)
		return nil
	}})
	return value, translate(err)
}

// rollback undoes an open transaction. SQLite may have ended it by itself.
func (c *conn) rollback() {
	if !c.db.AutocommitEnabled() {
		_, _ = c.exec("ROLLBACK")
	}
}

func (c *conn) close() error { return c.db.Close() }

// doc is an argument that is stored as JSON text.
type doc struct{ value any }

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
	case doc:
		text, err := json.Marshal(v.value)
		if err != nil {
			return fmt.Errorf("store %T as JSON: %w", v.value, err)
		}
		stmt.BindText(i, string(text))
	default:
		panic(fmt.Sprintf("argument %d is a %T", i, arg))
	}
	return nil
}

// row is the present row of a statement.
type row struct{ stmt *sqlite.Stmt }

func (r row) number(col int) (int64, bool) {
	if r.stmt.ColumnType(col) == sqlite.TypeNull {
		return 0, false
	}
	return r.stmt.ColumnInt64(col), true
}

func (r row) text(col int) string { return r.stmt.ColumnText(col) }

func (r row) blob(col int) []byte {
	b := make([]byte, r.stmt.ColumnLen(col))
	r.stmt.ColumnBytes(col, b)
	return b
}
