package sqlite

import (
	"cmp"
	"errors"
	"runtime"
)

// Readers is how many connections of a store read at once.
func Readers() int { return max(4, 2*runtime.GOMAXPROCS(0)) }

// The ends of a transaction. Rollback outside of one does nothing.
const (
	Commit   = "COMMIT"
	Rollback = "ROLLBACK"
)

// Document is an argument that is stored as JSON text.
type Document interface{ JSON() (string, error) }

// Query runs a statement that reads.
type Query func(query string, each func(Row) error, args ...any) error

// Errors of a database.
var (
	ErrNotFound = errors.New("not found")
	ErrFull     = errors.New("no space left for the database")
	ErrDamaged  = errors.New("the database is damaged")
	ErrHasData  = errors.New("the directory already holds data")
	ErrClosed   = errors.New("the store is closed")
	// ErrUnfit means that another place, file or database is needed; unfit makes its kinds.
	ErrUnfit = errors.New("the database cannot be used")
)

// unfit is a kind of ErrUnfit that prints only its text.
type unfit struct{ text string }

func (u *unfit) Error() string { return u.text }

func (*unfit) Is(target error) bool { return target == ErrUnfit }

// OwnedError means that another process works on the directory. Owner is the name it
// gave itself; may be empty.
type OwnedError struct{ Owner string }

func (e *OwnedError) Error() string {
	return "the data directory is in use by " + cmp.Or(e.Owner, "another process")
}
