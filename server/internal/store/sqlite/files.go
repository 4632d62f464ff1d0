package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/destkit/destkit/internal/handles"
)

// Options of a
type Options struct {
	Dir   string // the data directory, which is made when it is missing; "" is memory
	Owner string // shown to a second process on the same directory
	// From is a copy that a new directory or memory begins with; nil: none.
	From io.Reader
	// Check finds out whether the master key of the store is that of the
	Check    func(*Conn) error
	MaxPages int // of the database; 0: no limit. Tests fill a disk with it.
}

// Files is the engine of SQLite: a directory, or memory.
type Files struct {
	dir  string // "" in memory
	path string // of the database, for further connections
	// session: this start has written to the  Whoever has the turn uses it.
	session bool
	owner   *owner // of a directory
}

// Size is a query for the size of a database in bytes.
const Size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"

// databaseFile is the name of the database in a directory.
const databaseFile = "destkit.db"

// HoldsData reports whether a data directory has been used before. An empty file
// counts as nothing: a start that found the disk full leaves one.
func HoldsData(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, databaseFile))
	return err == nil && info.Size() > 0
}

// Open takes a directory, or makes a database in memory, and gives the connection that
// writes.
func Open(ctx context.Context, o Options) (*Files, *Conn, error) {
	f := &Files{dir: o.Dir, path: memoryPath()}
	c, err := f.open(ctx, o)
	if errors.Is(err, ErrDamaged) && f.dir != "" {
		err = fmt.Errorf("%w; put %s back as it was, or restore a backup into a new directory", err, databaseFile)
	}
	if err != nil {
		if c != nil {
			err = errors.Join(err, c.Close())
		}
		return nil, nil, errors.Join(err, f.Close(""))
	}
	return f, c, nil
}

func (f *Files) open(ctx context.Context, o Options) (c *Conn, err error) {
	whole := false // since the last stop
	if f.dir != "" {
		if whole, err = f.openDirectory(ctx, o); err != nil {
			return nil, err
		}
	}
	if c, err = f.connection(); err != nil {
		return nil, err
	}
	if f.dir == "" {
		if err := fill(ctx, c, o); err != nil {
			return c, err
		}
	}
	if o.MaxPages > 0 {
		if _, err := c.pragma(fmt.Sprintf("PRAGMA max_page_count = %d", o.MaxPages)); err != nil {
			return c, err
		}
	}
	version, err := versionOf(c)
	if err == nil && version > 0 && f.dir != "" && !whole {
		err = c.holdsTogether()
	}
	if err == nil && version > 0 {
		// A wrong key is noticed before anything is changed.
		err = o.Check(c)
	}
	if err == nil && f.dir != "" && version != Version() {
		err = f.forgetSum()
	}
	if err != nil {
		return c, err
	}
	return c, migrate(c)
}

// openDirectory takes the directory, and reports whether its database is as the last stop
// left it.
func (f *Files) openDirectory(ctx context.Context, o Options) (whole bool, err error) {
	f.path = filepath.Join(f.dir, databaseFile)
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return false, err
	}
	if f.owner, err = own(f.dir, o.Owner); err != nil {
		return false, err
	}
	if err := f.prepare(ctx, o); err != nil {
		return false, err
	}
	if err := wholeLog(f.path + "-wal"); err != nil {
		return false, err
	}
	if err := renewLog(f.path + "-wal"); err != nil {
		return false, err
	}
	return f.unchanged()
}

// SetOwner changes what a second process on the same directory is shown.
func (f *Files) SetOwner(text string) error { return f.owner.write(text) }

// Close lets go of a directory that no connection is open to; session is that of a
// database that can be vouched for, "" none.
func (f *Files) Close(session string) error {
	if f.session {
		f.leaveSum(session)
	}
	if f.owner == nil {
		return nil
	}
	return f.owner.release()
}

// prepare makes the database file with its mode before SQLite would make it
// with another one. An existing file is never opened here: closing it again
// would drop the locks that this process holds on it.
func (f *Files) prepare(ctx context.Context, o Options) error {
	if err := removeLeftovers(f.dir); err != nil {
		return err
	}
	info, err := os.Stat(f.path)
	switch {
	case err == nil && info.Size() > 0 && o.From != nil:
		return ErrHasData
	case err == nil && o.From == nil:
		return os.Chmod(f.path, 0o600)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	case o.From != nil:
		return f.unpack(ctx, o)
	}
	return createFile(f.path)
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
func (f *Files) connection() (*Conn, error) {
	if f.dir == "" {
		return connect(f.path, sqlite.OpenReadWrite|sqlite.OpenCreate|sqlite.OpenURI)
	}
	return connect(f.path, sqlite.OpenReadWrite|sqlite.OpenWAL)
}

// Connect opens one more connection: the one that writes, or one of those that only read.
func (f *Files) Connect(write bool) (*Conn, error) {
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
// secure_delete: deleted or replaced values leave no bytes behind.
func connect(path string, flags sqlite.OpenFlags) (*Conn, error) {
	db, err := handles.Open(path, flags)
	if err != nil {
		return nil, translate(err)
	}
	db.SetBusyTimeout(10 * time.Second)
	c := &Conn{db}
	for _, setting := range []string{"synchronous = FULL", "foreign_keys = ON", "secure_delete = ON", "trusted_schema = OFF"} {
		if _, err := c.pragma("PRAGMA " + setting); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}
