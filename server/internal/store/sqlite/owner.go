package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/destkit/destkit/internal/handles"
	"github.com/destkit/destkit/server/internal/store/database"
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

// own takes the directory or says who has it.
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
	// Nothing is ever written there, so it needs no journal beside it.
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
	return &database.OwnedError{Owner: strings.TrimSpace(string(text))}
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

// removeLeftovers deletes what a killed process did not finish: what is older than
// anybody who lives takes.
func removeLeftovers(dir string, age time.Duration) error {
	found, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*"+leftover+"*"))
	for _, path := range found {
		if info, gone := os.Stat(path); gone == nil && time.Since(info.ModTime()) >= age {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// escapeGlob makes a directory's name stand for itself.
func escapeGlob(dir string) string {
	return strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`).Replace(dir)
}

// installationFile ties a directory to a schema of PostgreSQL.
const installationFile = "installation"

// Beside makes the directory of what lies beside a schema of PostgreSQL, and ties it to
// that: id is the schema's. What is unfinished in it since so long is removed.
func Beside(dir, id string, age time.Duration) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := removeLeftovers(dir, age); err != nil {
		return err
	}
	return belongs(dir, id)
}

// ErrElsewhere says that a data directory goes with another store.
var ErrElsewhere = database.Unfit("the data directory belongs to another store")

// belongs refuses a directory of another store: id is that of a schema, "" of the
// directory itself. A directory without a store is taken.
func belongs(dir, id string) error {
	path := filepath.Join(dir, installationFile)
	text, err := os.ReadFile(path)
	there := strings.TrimSpace(string(text))
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	case id == "" && there != "":
		return fmt.Errorf("%w, one in PostgreSQL: start with its URL", ErrElsewhere)
	case id == "" || there == id:
		return nil
	case there != "":
		return fmt.Errorf("%w, another schema of PostgreSQL: start with that one, or with a new directory", ErrElsewhere)
	case HoldsData(dir):
		return fmt.Errorf("%w, the one in it: name a new directory, and bring the data over with a backup", ErrElsewhere)
	}
	return os.WriteFile(path, []byte(id+"\n"), 0o600)
}
