package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/server/internal/store/sealing"
	"github.com/destkit/destkit/server/internal/store/sqlite"
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
	// Plan computes, from a moment on, when a sync runs by itself. Create and Save of
	// Syncs call it. nil: no syncs are run.
	Plan func(y *Sync, from time.Time) Plan
	// From is a copy (Store.Copy, or the file of Backup) that a new directory or a store
	// in memory starts with, whatever kind of store it came from. It needs the master key of its origin.
	From io.Reader

	maxPages int // of the database; 0: no limit. Tests fill a disk with it.
}

// Store is an open store; its methods may be called from many goroutines.
type Store struct {
	dir    string
	place  string // names the store in errors
	clock  func() time.Time
	random io.Reader
	keys   *sealing.Ring
	plan   func(*Sync, time.Time) Plan

	files   *sqlite.Files
	memory  bool              // there is no directory; readers and the writer are kept apart
	writing *sqlite.Conn      // used by the holder of turn; nil when it was lost
	turn    line              // before the writer
	readers chan *sqlite.Conn // idle ones; nil means one that is not open
	closed  chan struct{}
	closing sync.Once

	damaged    atomic.Bool // a statement has met damage: the checksum of a stop must not vouch for it
	generation atomic.Uint64
	work       struct{ statements, rows atomic.Uint64 }
}

// Work is what transactions have done since the store was opened: statements that
// they ran, and rows that those gave.
type Work struct{ Statements, Rows uint64 }

// Waiting is how many changes wait for their turn to write.
func (s *Store) Waiting() int { return s.turn.waits() }

// Work reports how much has been done.
func (s *Store) Work() Work {
	return Work{s.work.statements.Load(), s.work.rows.Load()}
}

// Generation counts the changes that were committed. Data read after
// Generation returned n is current as long as it returns n.
func (s *Store) Generation() uint64 { return s.generation.Load() }

// HoldsData reports whether a data directory has been used before.
func HoldsData(dir string) bool { return sqlite.HoldsData(dir) }

// Open opens or creates a store. Errors: *OwnedError while another process works
// on the directory, ErrNewer, ErrWrongKey, ErrHasData (From with a store that is not new)
// and ErrNotACopy.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{dir: o.Dir, place: "store in memory", clock: o.Clock, random: o.Random, plan: o.Plan, closed: make(chan struct{})}
	if s.clock == nil {
		s.clock = time.Now
	}
	if s.random == nil {
		s.random = rand.Reader
	}
	master, err := o.master()
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s.keys = sealing.NewRing(master, s.random)
	if err := s.open(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", s.place, err), s.shut(""))
	}
	return s, nil
}

// master is the master key of the options, or a random one.
func (o Options) master() (sealing.Master, error) {
	key := o.MasterKey
	if key == nil {
		if o.Dir != "" || o.From != nil {
			return sealing.Master{}, errors.New("a master key is needed: 32 bytes")
		}
		key = make([]byte, sealing.KeySize)
		if _, err := rand.Read(key); err != nil {
			return sealing.Master{}, err
		}
	}
	master, err := sealing.NewMaster(key)
	if err != nil {
		return master, fmt.Errorf("take master key: %w", err)
	}
	return master, nil
}

func (s *Store) open(ctx context.Context, o Options) error {
	if s.memory = s.dir == ""; !s.memory {
		s.place = "data directory " + s.dir
	}
	files, c, err := sqlite.Open(ctx, sqlite.Options{Dir: o.Dir, Owner: o.Owner, From: o.From, Check: s.keys.Check, MaxPages: o.maxPages})
	if err != nil {
		return err
	}
	s.files, s.writing = files, c
	s.serve()
	return s.Update(ctx, (*Tx).openKeys)
}

// SetOwner changes what a second process on the same directory is shown.
func (s *Store) SetOwner(text string) error {
	if s.memory {
		return nil
	}
	return s.files.SetOwner(text)
}

// now is the present time as rows keep it.
func (s *Store) now() time.Time { return s.clock().UTC().Truncate(time.Millisecond) }

// Close waits for the transactions under way, refuses further ones and closes
// the database.
func (s *Store) Close() error {
	var err error
	s.closing.Do(func() {
		close(s.closed)
		_ = s.turn.take(context.Background(), nil) // it has no end to fail at
		for range cap(s.readers) {
			if c := <-s.readers; c != nil {
				err = errors.Join(err, c.Close())
			}
		}
		session := s.session()
		err = errors.Join(err, s.shut(session))
	})
	if err != nil {
		return fmt.Errorf("close %s: %w", s.place, err)
	}
	return nil
}

// session names what the last start has written to a database on disk that is no longer
// in use; "": it cannot be vouched for.
func (s *Store) session() string {
	if s.memory || s.writing == nil || s.damaged.Load() {
		return ""
	}
	return s.files.Session(s.writing)
}

// shut closes what a started or half-started store holds besides its readers;
// the lock goes last. session is that of a database that was in use.
func (s *Store) shut(session string) (err error) {
	if s.writing != nil {
		err = s.writing.Close()
	}
	if s.files != nil && !s.memory {
		if err != nil {
			session = ""
		}
		err = errors.Join(err, s.files.Close(session))
	}
	return err
}
