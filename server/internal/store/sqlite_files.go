package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/destkit/destkit/internal/handles"
	"github.com/destkit/destkit/server/internal/store/database"
	"github.com/destkit/destkit/server/internal/store/migrations"
)

// files is the engine of SQLite: a directory, or memory.
type files struct {
	dir  string // "" in memory
	path string // of the database, for further connections
	// session: this start has written to the database. Whoever has the turn uses it.
	session bool
}

var _ engine = (*files)(nil)

// sizeOfFile is the size of a SQLite database in bytes.
const sizeOfFile = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"

// openFiles takes a directory, or makes a database in memory.
func (s *Store) openFiles(ctx context.Context, o Options) error {
	err := s.openDatabase(ctx, o)
	if errors.Is(err, ErrDamaged) && s.dir != "" {
		err = fmt.Errorf("%w; put %s back as it was, or restore a backup into a new directory", err, databaseFile)
	}
	return err
}

func (s *Store) openDatabase(ctx context.Context, o Options) (err error) {
	f := &files{dir: s.dir, path: memoryPath()}
	whole := false // since the last stop
	s.engine, s.measure, s.memory = f, sizeOfFile, s.dir == ""
	if s.dir != "" {
		s.place, f.path = "data directory "+s.dir, filepath.Join(s.dir, databaseFile)
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return err
		}
		if s.owner, err = own(s.dir, o.Owner); err != nil {
			return err
		}
		if err := belongs(s.dir, ""); err != nil {
			return err
		}
		if err := s.prepareFile(ctx, f.path, o); err != nil {
			return err
		}
		if err := wholeLog(f.path + "-wal"); err != nil {
			return err
		}
		if err := renewLog(f.path + "-wal"); err != nil {
			return err
		}
		if whole, err = f.unchanged(); err != nil {
			return err
		}
	}
	c, err := f.connection()
	if err != nil {
		return err
	}
	s.writing = c
	if s.memory {
		if err := s.fill(ctx, c, o.From); err != nil {
			return err
		}
	}
	if o.maxPages > 0 {
		if _, err := c.pragma(fmt.Sprintf("PRAGMA max_page_count = %d", o.maxPages)); err != nil {
			return err
		}
	}
	version, err := versionOf(c)
	if err == nil && version > 0 && !s.memory && !whole {
		err = c.holdsTogether()
	}
	if err == nil && version > 0 {
		// A wrong key is noticed before anything is changed.
		err = s.keys.check(c)
	}
	if err == nil && !s.memory && version != migrations.Version() {
		err = f.forgetSum()
	}
	if err != nil {
		return err
	}
	return migrate(c)
}

// prepareFile makes the database file with its mode before SQLite would make it
// with another one. An existing file is never opened here: closing it again
// would drop the locks that this process holds on it.
func (s *Store) prepareFile(ctx context.Context, path string, o Options) error {
	if err := removeLeftovers(s.dir, 0); err != nil {
		return err
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Size() > 0 && o.From != nil:
		return ErrHasData
	case err == nil && o.From == nil:
		return os.Chmod(path, 0o600)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	case o.From != nil:
		return s.unpack(ctx, path, o.From)
	}
	return createFile(path)
}

// createFile makes an empty file that only its owner can read.
func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// memoryPath names a database in memory that several connections share as long
// as one of them is open.
func memoryPath() string {
	return "file:/" + rand.Text() + "?vfs=memdb"
}

// connection opens one more connection.
func (f *files) connection() (*lite, error) {
	if f.dir == "" {
		return connect(f.path, sqlite.OpenReadWrite|sqlite.OpenCreate|sqlite.OpenURI)
	}
	return connect(f.path, sqlite.OpenReadWrite|sqlite.OpenWAL)
}

func (f *files) connect(_ context.Context, write bool) (database.Conn, error) {
	c, err := f.connection()
	if err != nil {
		return nil, err
	}
	if !write {
		if _, err := c.pragma("PRAGMA query_only = ON"); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// connect opens a connection. FULL: a commit is on disk before it returns.
// secure_delete: what was deleted or replaced leaves no bytes behind.
func connect(path string, flags sqlite.OpenFlags) (*lite, error) {
	db, err := handles.Open(path, flags)
	if err != nil {
		return nil, translate(err)
	}
	db.SetBusyTimeout(10 * time.Second)
	c := &lite{db}
	for _, setting := range []string{"synchronous = FULL", "foreign_keys = ON", "secure_delete = ON", "trusted_schema = OFF"} {
		if _, err := c.pragma("PRAGMA " + setting); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}
