package store

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/destkit/destkit/server/internal/store/database"
	"github.com/destkit/destkit/server/internal/store/migrations"
	"github.com/destkit/destkit/server/internal/store/postgres"
	"github.com/destkit/destkit/server/internal/store/sealing"
	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// What a caller may want to tell apart; compare with errors.Is.
var (
	ErrNotFound = database.ErrNotFound
	ErrConflict = errors.New("changed meanwhile")
	ErrFull     = database.ErrFull
	ErrDisk     = sqlite.ErrDisk
	ErrNewer    = migrations.ErrNewer
	ErrWrongKey = sealing.ErrWrongKey
	ErrDamaged  = database.ErrDamaged
	ErrClosed   = database.ErrClosed
	ErrHasData  = database.ErrHasData
	ErrNotACopy = sqlite.ErrNotACopy
	// ErrGone says that a row belongs to another one, or refers to one, that is there
	// no more: what was read before the change was deleted meanwhile.
	ErrGone = errors.New("what it refers to was deleted meanwhile")

	// Of PostgreSQL: what may be better in a moment, and what has to be changed
	// there or in the URL.
	ErrUnavailable = postgres.ErrUnavailable
	// ErrCrowded is a kind of ErrUnavailable.
	ErrCrowded = postgres.ErrCrowded
	// ErrUnfit asks for another place or file: a newer version made the data, a file is
	// no copy, a backup lies in the directory it copies, or the database cannot be used
	// as it is. ErrNewer, ErrNotACopy and ErrElsewhere are kinds of it.
	ErrUnfit = database.ErrUnfit
	// ErrElsewhere says that a data directory goes with another store.
	ErrElsewhere = sqlite.ErrElsewhere
)

// DuplicateError says that a value which has to be unique exists already. Value
// is empty where it is a secret.
type DuplicateError struct{ Kind, Field, Value string }

func (e *DuplicateError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("a %s with this %s exists already", e.Kind, e.Field)
	}
	return fmt.Sprintf("a %s with the %s %q exists already", e.Kind, e.Field, e.Value)
}

// InUseError says that Count rows of kind By still use the row.
type InUseError struct {
	Kind  string
	ID    int64
	By    string
	Count int
}

func (e *InUseError) Error() string {
	if e.Count == 1 {
		return fmt.Sprintf("%s %d is used by 1 %s", e.Kind, e.ID, e.By)
	}
	return fmt.Sprintf("%s %d is used by %d %ss", e.Kind, e.ID, e.Count, e.By)
}

// OwnedError says that other processes work on the directory, or on the schema.
type OwnedError = database.OwnedError

// unique reports whether a statement broke a unique constraint.
func unique(err error) bool { return postgres.Unique(err) || sqlite.Unique(err) }

// dangling reports whether a statement would have left a reference to nothing.
func dangling(err error) bool { return postgres.Dangling(err) || sqlite.Dangling(err) }

// harmless reports whether a failed statement leaves its transaction usable.
func harmless(err error) bool { return postgres.Harmless(err) || sqlite.Harmless(err) }

// Passing tells of an error of a store, or of what stands in it, whether it says nothing
// but that the store cannot be used at this moment: it is away, locked or full, or its
// disk fails, or a newer program has taken this one's place.
func Passing(err error) bool {
	if errors.Is(err, ErrUnavailable) || errors.Is(err, ErrFull) || errors.Is(err, ErrDisk) || errors.Is(err, ErrNewer) {
		return true
	}
	return sqlite.Passing(err)
}

// Full reports whether there is no space left, be it for the store or for another
// file: databases of warehouses and spooled snapshots lie beside it.
func Full(err error) bool {
	return errors.Is(err, ErrFull) || errors.Is(err, syscall.ENOSPC) || sqlite.Full(err)
}
