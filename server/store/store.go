package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"
)

// Options of a store. The zero value is an empty store in memory.
type Options struct {
	// Dir is the data directory; it is made when it is missing. "" keeps
	// everything in memory and nothing on disk.
	Dir string
	// Clock gives the times of rows, to many goroutines at once; nil is time.Now.
	Clock func() time.Time
	// MasterKey wraps the data keys: 32 bytes (AES-256). Stores in memory may
	// leave it nil for a random one, unless they start From a copy.
	MasterKey []byte
	// Random makes tokens and keys; nil is crypto/rand. Nonces never come from
	// it: a seed used twice would repeat them under the same key.
	Random io.Reader
	// Owner is what a second process on the same directory is shown, such as
	// "pid 4711, http://127.0.0.1:8080". SetOwner changes it.
	Owner string
	// From is a copy (Store.Copy, or the file of Backup) that a new directory or
	// a store in memory starts with. It needs the master key of its origin.
	From io.Reader

	maxPages int // of the database; 0: no limit. Tests fill a disk with it.
}

// Store is an open store; its methods may be called from many goroutines.
type Store struct {
	dir    string
	clock  func() time.Time
	random io.Reader
	owner  *owner // nil in memory
	keys   keyring

	path    string        // of the database, for further connections
	writing *conn         // used by the holder of turn
	turn    chan struct{} // holds one value while nobody changes anything
	readers chan *conn    // idle ones; nil stands for one that is not open yet
	closed  chan struct{}
	closing sync.Once

	generation atomic.Uint64
}

// Generation counts the changes that were committed. What was read after
// Generation answered n is still so as long as it answers n.
func (s *Store) Generation() uint64 { return s.generation.Load() }

const databaseFile = "destkit.db"

// HoldsData tells whether a data directory has been used before. An empty file
// counts as nothing: a start that found the disk full leaves one.
func HoldsData(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, databaseFile))
	return err == nil && info.Size() > 0
}

// Open opens or creates a store. Errors: *OwnedError while another process works
// on the directory, ErrNewer, ErrWrongKey, ErrHasData (From with a directory
// that is not new), ErrNotACopy.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{dir: o.Dir, clock: o.Clock, random: o.Random, closed: make(chan struct{})}
	if s.clock == nil {
		s.clock = time.Now
	}
	if s.random == nil {
		s.random = rand.Reader
	}
	if err := s.keys.setMaster(o); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := s.open(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", s.place(), err), s.shut())
	}
	return s, nil
}

// place names the store in errors.
func (s *Store) place() string {
	if s.dir == "" {
		return "store in memory"
	}
	return "data directory " + s.dir
}

func (s *Store) open(ctx context.Context, o Options) (err error) {
	if s.dir == "" {
		s.path = memoryPath()
	} else {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return err
		}
		if s.owner, err = own(s.dir, o.Owner); err != nil {
			return err
		}
		s.path = filepath.Join(s.dir, databaseFile)
		if err := s.prepareFile(ctx, o); err != nil {
			return err
		}
	}
	if s.writing, err = s.connect(); err != nil {
		return err
	}
	if s.dir == "" {
		if err := s.fill(ctx, o.From); err != nil {
			return err
		}
	}
	if o.maxPages > 0 {
		if _, err := s.writing.pragma(fmt.Sprintf("PRAGMA max_page_count = %d", o.maxPages)); err != nil {
			return err
		}
	}
	// A wrong key is noticed before anything is changed.
	if err := s.keys.check(s.writing); err != nil {
		return err
	}
	if err := migrate(s.writing); err != nil {
		return err
	}
	s.serve()
	return s.Update(ctx, (*Tx).openInstallation)
}

// prepareFile makes the database file with its mode before SQLite would make it
// with another one. An existing file is never opened here: closing it again
// would drop the locks that this process holds on it.
func (s *Store) prepareFile(ctx context.Context, o Options) error {
	if err := removeLeftovers(s.dir); err != nil {
		return err
	}
	info, err := os.Stat(s.path)
	switch {
	case err == nil && info.Size() > 0 && o.From != nil:
		return ErrHasData
	case err == nil && o.From == nil:
		return os.Chmod(s.path, 0o600)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	case o.From != nil:
		return s.unpack(ctx, o.From)
	}
	return createFile(s.path)
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

// connect opens one more connection.
func (s *Store) connect() (*conn, error) {
	if s.dir == "" {
		return connect(s.path, sqlite.OpenReadWrite|sqlite.OpenCreate|sqlite.OpenURI)
	}
	return connect(s.path, sqlite.OpenReadWrite|sqlite.OpenWAL)
}

// connect opens a connection. FULL: a commit is on disk before it returns.
// secure_delete: what was deleted or replaced leaves no bytes behind.
func connect(path string, flags sqlite.OpenFlags) (*conn, error) {
	db, err := sqlite.OpenConn(path, flags)
	if err != nil {
		return nil, translate(err)
	}
	db.SetBusyTimeout(10 * time.Second)
	c := &conn{db}
	for _, setting := range []string{"synchronous = FULL", "foreign_keys = ON", "secure_delete = ON", "trusted_schema = OFF"} {
		if _, err := c.pragma("PRAGMA " + setting); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

// SetOwner changes what a second process on the same directory is shown.
func (s *Store) SetOwner(text string) error {
	if s.owner == nil {
		return nil
	}
	return s.owner.write(text)
}

// now is the present time as rows keep it.
func (s *Store) now() time.Time { return s.clock().UTC().Truncate(time.Millisecond) }

// Close waits for the transactions under way, refuses further ones and closes
// the database.
func (s *Store) Close() error {
	var err error
	s.closing.Do(func() {
		close(s.closed)
		<-s.turn
		for range cap(s.readers) {
			if c := <-s.readers; c != nil {
				err = errors.Join(err, c.close())
			}
		}
		err = errors.Join(err, s.shut())
	})
	if err != nil {
		return fmt.Errorf("close %s: %w", s.place(), err)
	}
	return nil
}

// shut closes what a started or half-started store holds besides its readers;
// the lock goes last.
func (s *Store) shut() (err error) {
	if s.writing != nil {
		err = s.writing.close()
	}
	if s.owner != nil {
		err = errors.Join(err, s.owner.release())
	}
	return err
}
