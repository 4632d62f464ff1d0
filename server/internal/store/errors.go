package store

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/destkit/destkit/server/internal/store/sealing"
	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// Errors that a caller may distinguish; compare with errors.Is.
var (
	ErrNotFound = sqlite.ErrNotFound
	ErrConflict = errors.New("changed meanwhile")
	ErrFull     = sqlite.ErrFull
	ErrDisk     = sqlite.ErrDisk
	ErrNewer    = sqlite.ErrNewer
	ErrWrongKey = sealing.ErrWrongKey
	ErrDamaged  = sqlite.ErrDamaged
	ErrClosed   = sqlite.ErrClosed
	ErrHasData  = sqlite.ErrHasData
	ErrNotACopy = sqlite.ErrNotACopy
	// ErrGone means that a row belongs or refers to a missing one: a row that was
	// read before the change was deleted meanwhile.
	ErrGone = errors.New("what it refers to was deleted meanwhile")
	// ErrUnfit requires another place or file: a newer version made the data, a file is
	// no copy, or a backup is in the directory it copies. ErrNewer and ErrNotACopy are
	// kinds of it.
	ErrUnfit = sqlite.ErrUnfit
)

// DuplicateError means that a value that must be unique exists already. Value
// is empty where it is a secret.
type DuplicateError struct{ Kind, Field, Value string }

func (e *DuplicateError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("a %s with this %s exists already", e.Kind, e.Field)
	}
	return fmt.Sprintf("a %s with the %s %q exists already", e.Kind, e.Field, e.Value)
}

// InUseError means that Count rows of kind By still use the row.
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

// OwnedError means that another process works on the directory.
type OwnedError = sqlite.OwnedError

// Passing reports whether an error means only that the store cannot be used at this
// moment: it is locked or full, or its disk fails.
func Passing(err error) bool {
	return errors.Is(err, ErrFull) || errors.Is(err, ErrDisk) || sqlite.Passing(err)
}

// Full reports whether there is no space left for the store or another file, such
// as the databases of warehouses and spooled snapshots next to it.
func Full(err error) bool {
	return errors.Is(err, ErrFull) || errors.Is(err, syscall.ENOSPC) || sqlite.Full(err)
}
