package sqlite

import (
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"
)

// ErrDisk means that the disk refuses or loses writes.
var ErrDisk = errors.New("the disk of the database fails")

// translate maps SQLite's errors to ours where callers distinguish them.
func translate(err error) error {
	if err == nil {
		return nil
	}
	code := sqlite.ErrCode(err)
	// The index of the log grows by writes of single bytes: a full disk refuses them,
	// and SQLite does not report it as full.
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

// Unique reports whether a statement broke a unique constraint.
func Unique(err error) bool {
	code := sqlite.ErrCode(err)
	return code == sqlite.ResultConstraintUnique || code == sqlite.ResultConstraintPrimaryKey
}

// Dangling reports whether a statement would have left a reference to nothing.
func Dangling(err error) bool { return sqlite.ErrCode(err) == sqlite.ResultConstraintForeignKey }

// Harmless reports whether a failed statement leaves its transaction usable: a broken
// constraint undoes that statement alone. After anything else, such as a full disk, it
// may have rolled back everything and gone on in autocommit.
func Harmless(err error) bool { return sqlite.ErrCode(err).ToPrimary() == sqlite.ResultConstraint }

// Passing reports whether a database is locked or full, or its disk fails.
func Passing(err error) bool {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultBusy, sqlite.ResultLocked, sqlite.ResultFull, sqlite.ResultIOErr:
		return true
	}
	return false
}

// Full reports whether there is no space left.
func Full(err error) bool {
	code := sqlite.ErrCode(err)
	return code.ToPrimary() == sqlite.ResultFull || code == sqlite.ResultIOErrSHMSize
}
