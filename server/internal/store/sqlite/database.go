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

// What a database may say.
var (
	ErrNotFound = errors.New("not found")
	ErrFull     = errors.New("no space left for the database")
	ErrDamaged  = errors.New("the database is damaged")
	ErrHasData  = errors.New("the directory already holds data")
	ErrClosed   = errors.New("the store is closed")
	// ErrUnfit says that another place, file or database is needed; unfit makes its kinds.
	ErrUnfit = errors.New("the database cannot be used")
)

// unfit is a kind of ErrUnfit, which says its text alone.
type unfit struct{ text string }

func (u *unfit) Error() string { return u.text }

func (*unfit) Is(target error) bool { return target == ErrUnfit }

// OwnedError says that another process works on the directory. Owner is what it wants to
// be called; empty when it gave nothing.
type OwnedError struct{ Owner string }

func (e *OwnedError) Error() string {
	return "the data directory is in use by " + cmp.Or(e.Owner, "another process")
}
