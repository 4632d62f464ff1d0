package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"zombiezen.com/go/sqlite"

	"github.com/destkit/destkit/internal/handles"
)

// A system reports a failed write-back to one sync, and takes it for written from then on:
// it can be read as long as the machine runs, and is not on the disk. A later sync that
// succeeds proves nothing about it. SQLite repeats the writes of a failed sync, within one
// process; where another one goes on, or a file is used that SQLite has closed, the store
// does so.

// Withdraw makes sure that a change whose commit failed is not found by a process that
// starts after this one was killed: the frames in the log may be whole, and are overwritten
// by those of a change that changes nothing. Where the disk refuses this too, the next
// change does it.
func (c *Conn) Withdraw() {
	if _, err := c.Run(Rollback, nil); err != nil {
		return
	}
	if err := c.Begin(true); err != nil {
		return
	}
	if _, err := c.pragma(fmt.Sprintf("PRAGMA user_version = %d", Version())); err == nil {
		_, _ = c.Run(Commit, nil)
	}
}

// renewLog writes the log of a process that was killed over itself, so that all of it is on
// the disk: a sync of that process may have failed. Changes after a hole in a log would be
// lost with the power, though they were acknowledged.
func renewLog(path string) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buffer := make([]byte, 256<<10)
	for at := int64(0); ; {
		n, err := f.ReadAt(buffer, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == 0 {
			return f.Sync()
		}
		if _, err := f.WriteAt(buffer[:n], at); err != nil {
			return err
		}
		at += int64(n)
	}
}

// Checkpoint brings all of a log into the database, whose file is then the whole of it: closing
// the last connection does so too, and does not say when the disk refuses it.
func (c *Conn) Checkpoint() error {
	busy, err := c.pragma("PRAGMA wal_checkpoint(TRUNCATE)")
	if err == nil && busy != 0 {
		err = errors.New("the log of the copy is in use by another program")
	}
	return err
}

// pageError matches SQLite's error for an unreadable page.
var pageError = regexp.MustCompile(`error code=(\d+)`)

// unreadPage distinguishes, in an error of SQLite's check, a failing disk from a wrong
// page; nil: the page is wrong.
func unreadPage(fault string) error {
	found := pageError.FindStringSubmatch(fault)
	if found == nil {
		return nil
	}
	code, err := strconv.Atoi(found[1])
	if err != nil || sqlite.ResultCode(code).ToPrimary() != sqlite.ResultIOErr {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrDisk, fault)
}

// removeDatabase removes an unused one with SQLite's other files.
func removeDatabase(path string) {
	for _, end := range []string{"", "-wal", "-shm", "-journal"} {
		_ = os.Remove(path + end)
	}
}

// leftWhole refuses a damaged log that a killed process has left. The one of a process
// that works changes while it is read, and is looked at by that process.
func leftWhole(dir, log string) error {
	err := wholeLog(log)
	if err == nil || owned(dir) {
		return nil
	}
	return wholeLog(log)
}

// owned reports whether a process works on a directory.
func owned(dir string) bool {
	db, err := handles.Open(filepath.Join(dir, lockFile), sqlite.OpenReadWrite)
	if err != nil {
		return false
	}
	db.SetBusyTimeout(0)
	lock := &Conn{db}
	_, err = lock.exec("BEGIN IMMEDIATE")
	return errors.Join(err, lock.Close()) != nil && sqlite.ErrCode(err).ToPrimary() == sqlite.ResultBusy
}
