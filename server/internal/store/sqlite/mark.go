package sqlite

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// A database holds a mark that it is a copy, until the owner of the files next to
// the store has made sure that they are those of the copy.

// SettingCopied is the mark in a
const SettingCopied = "copied"

// Its values, before a space and the checksum.
const (
	CopiedBackup   = "backup"   // it was put in its place by hand
	CopiedRestored = "restored" // a start or a restore has put it there
)

// A backup holds a checksum over all its rows in addition to the mark: SQLite itself
// notices no changed byte within a value.

// markBackup notes in a copy that it is one, with its checksum.
func (c *Conn) markBackup() error {
	if err := c.mark(""); err != nil { // the mark is no part of the sum
		return err
	}
	sum, err := c.Checksum()
	if err != nil {
		return err
	}
	return c.mark(CopiedBackup + " " + sum)
}

// mark notes the kind of a copy in it.
func (c *Conn) mark(how string) error {
	_, err := c.exec("INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", SettingCopied, how)
	return err
}

// intact compares a copy with the checksum in it, if it has one.
func (c *Conn) intact() error {
	var how string
	err := c.Query("SELECT value FROM settings WHERE key = ?", func(c Row) error { how = c.Text(0); return nil }, SettingCopied)
	_, want, found := strings.Cut(how, " ")
	if err != nil || !found {
		return err
	}
	sum, err := c.Checksum()
	if err == nil && sum != want {
		err = fmt.Errorf("%w: its checksum is wrong, so it was changed or damaged since it was made", ErrNotACopy)
	}
	return err
}

// Checksum is over every value of every table but the mark.
func (c *Conn) Checksum() (string, error) {
	var tables []string
	err := c.Query("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name", func(c Row) error {
		tables = append(tables, c.Text(0))
		return nil
	})
	sum := sha256.New()
	for _, table := range tables {
		if err != nil {
			break
		}
		fmt.Fprintf(sum, "%q\n", table)
		err = c.each(`SELECT * FROM "`+table+`"`, func(stmt *sqlite.Stmt) {
			if table == "settings" && stmt.ColumnText(0) == SettingCopied {
				return
			}
			for i := range stmt.ColumnCount() {
				fmt.Fprintf(sum, "%d %q\n", stmt.ColumnType(i), stmt.ColumnText(i))
			}
		})
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}

// each hands out the rows of a query as SQLite has them.
func (c *Conn) each(query string, row func(*sqlite.Stmt)) error {
	return translate(sqlitex.ExecuteTransient(c.db, query, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		row(stmt)
		return nil
	}}))
}

// markFile marks a backup that no one else has open.
func markFile(path string) error {
	c, err := connect(path, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	if err := errors.Join(c.markBackup(), c.Checkpoint(), c.Close()); err != nil {
		return fmt.Errorf("mark copy: %w", err)
	}
	return nil
}
