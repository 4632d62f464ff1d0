package store

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"zombiezen.com/go/sqlite"

	"github.com/destkit/destkit/server/internal/store/database"
	"github.com/destkit/destkit/server/internal/store/migrations"
)

// What a caller may want to tell apart; compare with errors.Is.
var (
	ErrNotFound = errors.New("not found")
	ErrConflict = errors.New("changed meanwhile")
	ErrFull     = database.ErrFull
	ErrDisk     = errors.New("the disk of the database fails")
	ErrNewer    = migrations.ErrNewer
	ErrWrongKey = errors.New("wrong master key")
	ErrDamaged  = database.ErrDamaged
	ErrClosed   = database.ErrClosed
	ErrHasData  = database.ErrHasData
	ErrNotACopy = errors.New("not a copy of a store")
	// ErrGone says that a row belongs to another one, or refers to one, that is there
	// no more: what was read before the change was deleted meanwhile.
	ErrGone = errors.New("what it refers to was deleted meanwhile")

	// Of PostgreSQL: what may be better in a moment, and what has to be changed
	// there or in the URL.
	ErrUnavailable = errors.New("the database is not available")
	// ErrCrowded is a kind of ErrUnavailable.
	ErrCrowded = errors.New("no connection is free")
	ErrUnfit   = errors.New("the database cannot be used")
	// ErrElsewhere says that a data directory goes with another store.
	ErrElsewhere = errors.New("the data directory belongs to another store")
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

// translate turns SQLite's words into ours where callers tell them apart.
func translate(err error) error {
	if err == nil {
		return nil
	}
	code := sqlite.ErrCode(err)
	// The index of the log grows by writes of single bytes: what refuses them is a full
	// disk, and SQLite does not say so.
	if code == sqlite.ResultIOErrSHMSize {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	switch code.ToPrimary() {
	case sqlite.ResultFull:
		return fmt.Errorf("%w: %w", ErrFull, err)
	case sqlite.ResultIOErr:
		return fmt.Errorf("%w: %w", ErrDisk, err)
	case sqlite.ResultCorrupt, sqlite.ResultNotADB:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// unique reports whether a statement broke a unique constraint.
func unique(err error) bool {
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refusal.Code == uniqueViolation
	}
	code := sqlite.ErrCode(err)
	return code == sqlite.ResultConstraintUnique || code == sqlite.ResultConstraintPrimaryKey
}

// dangling reports whether a statement would have left a reference to nothing.
func dangling(err error) bool {
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refusal.Code == foreignKeyViolation
	}
	return sqlite.ErrCode(err) == sqlite.ResultConstraintForeignKey
}

// harmless reports whether a failed statement leaves its transaction usable: a
// broken constraint undoes that statement alone. After anything else, such as a full disk,
// it may have rolled back everything and gone on in autocommit.
func harmless(err error) bool {
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.HasPrefix(refusal.Code, constraintClass)
	}
	return sqlite.ErrCode(err).ToPrimary() == sqlite.ResultConstraint
}

// Passing tells of an error of a store, or of what stands in it, whether it says nothing
// but that the store cannot be used at this moment: it is away, locked or full, or its
// disk fails, or a newer program has taken this one's place.
func Passing(err error) bool {
	if errors.Is(err, ErrUnavailable) || errors.Is(err, ErrFull) || errors.Is(err, ErrDisk) || errors.Is(err, ErrNewer) {
		return true
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultBusy, sqlite.ResultLocked, sqlite.ResultFull, sqlite.ResultIOErr:
		return true
	}
	return false
}

// Full reports whether there is no space left, be it for the store or for another
// file: databases of warehouses and spooled snapshots lie beside it.
func Full(err error) bool {
	code := sqlite.ErrCode(err)
	return errors.Is(err, ErrFull) || errors.Is(err, syscall.ENOSPC) || code.ToPrimary() == sqlite.ResultFull || code == sqlite.ResultIOErrSHMSize
}

// Unfit reports whether err asks for another place or file: a newer version made
// the data, a file is no copy, a backup lies in the directory it copies, or the
// database cannot be used as it is.
func Unfit(err error) bool {
	for _, unfit := range []error{ErrNewer, ErrNotACopy, ErrUnfit, ErrElsewhere, ErrInside} {
		if errors.Is(err, unfit) {
			return true
		}
	}
	return false
}
