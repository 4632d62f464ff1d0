package store

import (
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"
)

// A database says of itself that it is a copy, until whoever keeps files beside the
// store has seen to it that they are those of the copy.

// settingCopied is the mark in a database.
const settingCopied = "copied"

// What Copied says.
const (
	CopiedBackup   = "backup"   // it was put in its place by hand
	CopiedRestored = "restored" // Options.From or Restore has put it there
)

// Copied tells whether the database is a copy that nobody has owned up to; "": it is
// none.
func (tx *Tx) Copied() (how string, err error) {
	how, err = tx.Setting(settingCopied)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return how, err
}

// Settled takes the mark of a copy away: what lies beside the store belongs to it.
func (tx *Tx) Settled() error { return tx.DeleteSetting(settingCopied) }

// mark notes in a copy what it is.
func (c *lite) mark(how string) error {
	_, err := c.exec("INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", settingCopied, how)
	return err
}

// markFile notes it in a file that nobody else has open.
func markFile(path, how string) error {
	c, err := connect(path, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	if err := errors.Join(c.mark(how), c.close()); err != nil {
		return fmt.Errorf("mark copy: %w", err)
	}
	return nil
}
