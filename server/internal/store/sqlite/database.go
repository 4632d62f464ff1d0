package sqlite

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"sync"
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

// The steps in their order; the number that a name begins with is the
// version of the database after it. A published one is never changed.
//
//go:embed migrations/*.sql
var migrations embed.FS

// steps gives the statements of each step.
var steps = sync.OnceValues(func() (texts []string, err error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := migrations.ReadFile(name)
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	return texts, nil
})

// Version is the one that this program makes and understands.
func Version() int64 {
	texts, _ := steps()
	return int64(len(texts))
}

// ErrNewer refuses data of a version that this program does not know.
var ErrNewer error = &unfit{"made by a newer version of the program"}

// newer names the version that the data has.
func newer(version int64) error {
	return fmt.Errorf("%w: the data has version %d, this program knows versions up to %d; start one that is as new as the data", ErrNewer, version, Version())
}
