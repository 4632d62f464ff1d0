// Package database is the seam between a store and the database below it: a connection
// that runs statements with ? for arguments, rows read by position, and the errors that
// every database has. The statements are SQL in the subset that SQLite and PostgreSQL
// share. It leaves it to a package for each of the two how they are run.
package database

import (
	"cmp"
	"errors"
	"runtime"
)

// Conn is one connection; one goroutine at a time uses it.
type Conn interface {
	// Begin starts a transaction. One that reads sees one moment; one that writes
	// sees all that was committed before, and no other writes meanwhile.
	Begin(write bool) error
	// Run runs a statement, which the connection keeps prepared, and says how many
	// rows it changed. each gets the rows and runs nothing itself. A statement that
	// breaks a constraint is undone alone (harmless).
	Run(query string, each func(Cells) error, args ...any) (changed int64, err error)
	Close() error
}

// Readers is how many connections of a store read at once.
func Readers() int { return max(4, 2*runtime.GOMAXPROCS(0)) }

// The ends of a transaction. Rollback outside of one does nothing.
const (
	Commit   = "COMMIT"
	Rollback = "ROLLBACK"
)

// Cells are the columns of one row; they are valid until the next row.
type Cells interface {
	Number(col int) (value int64, ok bool) // ok: not NULL
	Text(col int) string
	Blob(col int) []byte // a copy
}

// Document is an argument that is stored as JSON text.
type Document interface{ JSON() (string, error) }

// Query runs a statement that reads.
type Query func(query string, each func(Cells) error, args ...any) error

// Reading is the Query of a connection.
func Reading(c Conn) Query {
	return func(query string, each func(Cells) error, args ...any) error {
		_, err := c.Run(query, each, args...)
		return err
	}
}

// What every database may say.
var (
	ErrNotFound = errors.New("not found")
	ErrFull     = errors.New("no space left for the database")
	ErrDamaged  = errors.New("the database is damaged")
	ErrHasData  = errors.New("the directory already holds data")
	ErrClosed   = errors.New("the store is closed")
	// ErrUnfit says that another place, file or database is needed; Unfit makes its kinds.
	ErrUnfit = errors.New("the database cannot be used")
)

// Unfit makes a kind of ErrUnfit, which says text alone.
func Unfit(text string) error { return &unfit{text} }

type unfit struct{ text string }

func (u *unfit) Error() string { return u.text }

func (*unfit) Is(target error) bool { return target == ErrUnfit }

// OwnedError says that other processes work on the directory, or on the schema.
// Owner is what the one wants to be called, or the addresses of the others; empty when
// they gave none.
type OwnedError struct{ Owner, Schema string }

func (e *OwnedError) Error() string {
	what := "the data directory"
	if e.Schema != "" {
		what = "the schema " + e.Schema
	}
	return what + " is in use by " + cmp.Or(e.Owner, "another process")
}
