package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// Copy writes a consistent copy of the database, as it is now, while others read
// and write. Secrets in it stay sealed: opening it takes the master key.
func (s *Store) Copy(ctx context.Context, w io.Writer) error {
	err := s.copy(ctx, w)
	if err != nil {
		return fmt.Errorf("copy %s: %w", s.place, err)
	}
	return nil
}

func (s *Store) copy(ctx context.Context, w io.Writer) error {
	// Holding a reader keeps the store open, and in memory the writer away.
	c, err := s.takeReader(ctx)
	if err != nil {
		return err
	}
	defer func() { s.readers <- ended(c) }()
	return s.files.Copy(ctx, c, w)
}

// Backup copies the database of a data directory into a file, which appears whole
// or not at all and replaces an earlier one. The directory may be in use by this
// or another process, which goes on writing meanwhile; no key is needed. To start
// from a backup, open a new directory with Options.From.
func Backup(ctx context.Context, dir, to string) error { return sqlite.Backup(ctx, dir, to) }

// Restore replaces everything in the store by a copy: all of it or, on an error,
// nothing. It waits for the transactions under way. Ids and versions go back to
// those of the copy, so whatever was kept under them elsewhere has to be dropped.
// Errors: ErrNotACopy, ErrNewer, ErrWrongKey.
func (s *Store) Restore(ctx context.Context, from io.Reader) error {
	if err := s.restore(ctx, from); err != nil {
		return fmt.Errorf("restore %s: %w", s.place, err)
	}
	return nil
}

func (s *Store) restore(ctx context.Context, from io.Reader) error {
	staged, remove, err := sqlite.Stage(ctx, s.dir, from, s.keys.Check)
	if err != nil {
		return err
	}
	defer remove()
	defer staged.Close()
	release, err := s.takeAll(ctx)
	if err != nil {
		return err
	}
	defer release()
	// The master key may have changed while the copy was read.
	if err := s.keys.Check(staged); err != nil {
		return err
	}
	if err := s.files.Overwrite(s.writing, staged); err != nil {
		return err
	}
	s.keys.Forget()
	return s.change(context.WithoutCancel(ctx), (*Tx).openKeys)
}

// Values of Copied.
const (
	CopiedBackup   = sqlite.CopiedBackup   // it was put in its place by hand
	CopiedRestored = sqlite.CopiedRestored // Options.From or Restore has put it there
)

// Copied reports whether the database is a copy that has not been settled yet; "": it is
// none.
func (tx *Tx) Copied() (how string, err error) {
	how, err = tx.Setting(sqlite.SettingCopied)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	how, _, _ = strings.Cut(how, " ")
	return how, err
}

// Settled removes the mark of a copy: the files next to the store belong to it.
func (tx *Tx) Settled() error { return tx.DeleteSetting(sqlite.SettingCopied) }
