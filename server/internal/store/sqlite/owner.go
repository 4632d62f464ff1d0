package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/destkit/destkit/internal/handles"
)

const (
	lockFile  = "owner.lock"
	ownerFile = "owner"
)

// owner holds a directory for this process. The lock is SQLite's own on a small
// second database, so it works wherever the database does and goes when the
// process goes; the database itself stays open to backups.
type owner struct {
	dir  string
	lock *Conn
}

// own locks the directory or returns its owner.
func own(dir, text string) (*owner, error) {
	path := filepath.Join(dir, lockFile)
	if err := createFile(path); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	db, err := handles.Open(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", translate(err))
	}
	db.SetBusyTimeout(0)
	o := &owner{dir: dir, lock: &Conn{db}}
	// Nothing is ever written there, so it needs no journal file.
	_, err = o.lock.pragma("PRAGMA journal_mode = MEMORY")
	if err == nil {
		_, err = o.lock.exec("BEGIN IMMEDIATE")
	}
	if err != nil {
		err = errors.Join(refusal(dir, err), o.lock.Close())
		return nil, err
	}
	if err := o.write(text); err != nil {
		return nil, errors.Join(err, o.release())
	}
	return o, nil
}

// refusal reads who holds the lock. A process that was killed leaves its text
// behind, so in the moment between the next one's lock and its text the name
// may be the old one.
func refusal(dir string, err error) error {
	if sqlite.ErrCode(err).ToPrimary() != sqlite.ResultBusy {
		return fmt.Errorf("lock: %w", err)
	}
	text, _ := os.ReadFile(filepath.Join(dir, ownerFile))
	return &OwnedError{Owner: strings.TrimSpace(string(text))}
}

// write replaces the text as a whole.
func (o *owner) write(text string) error {
	temp := filepath.Join(o.dir, ownerFile+leftover)
	if err := os.WriteFile(temp, []byte(text+"\n"), 0o600); err != nil {
		return fmt.Errorf("name owner: %w", err)
	}
	if err := os.Rename(temp, filepath.Join(o.dir, ownerFile)); err != nil {
		return fmt.Errorf("name owner: %w", err)
	}
	return nil
}

func (o *owner) release() error {
	err := os.Remove(filepath.Join(o.dir, ownerFile))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, o.lock.Close())
}

// leftover is in the names of files that are not finished yet.
const leftover = ".unfinished"

// removeLeftovers deletes what a killed process did not finish.
func removeLeftovers(dir string) error {
	found, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*"+leftover+"*"))
	for _, path := range found {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// escapeGlob escapes a directory's name for globbing.
func escapeGlob(dir string) string {
	return strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`).Replace(dir)
}
