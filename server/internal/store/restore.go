package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"zombiezen.com/go/sqlite"

	"github.com/destkit/destkit/server/internal/store/database"
	"github.com/destkit/destkit/server/internal/store/migrations"
)

// adopt checks that a database is a whole copy of a store that our master key
// opens, and brings it to the present version.
func (s *Store) adopt(c *lite) error {
	version, err := versionOf(c)
	if err == nil && version == 0 {
		return ErrNotACopy
	}
	if err != nil {
		return notACopy(err)
	}
	first, faults := "", 0
	err = c.query("SELECT quick_check FROM pragma_quick_check WHERE quick_check <> 'ok' UNION ALL SELECT 'a reference to nothing' FROM pragma_foreign_key_check",
		func(c database.Cells) error {
			if faults++; faults == 1 {
				first = c.Text(0)
			}
			return nil
		})
	if err == nil && faults > 0 {
		err = cmp.Or(unreadPage(first), fmt.Errorf("%w: it has %d faults", ErrNotACopy, faults))
	}
	if err != nil {
		return notACopy(err)
	}
	if err := s.keys.check(c); err != nil {
		return notACopy(err)
	}
	if err := c.intact(); err != nil {
		return notACopy(err)
	}
	if err := migrate(c); err != nil {
		return notACopy(err)
	}
	if err := sameSchema(c); err != nil {
		return err
	}
	return c.mark(CopiedRestored)
}

// sameSchema refuses a database with other tables or triggers than ours under
// our mark: what it would do cannot be known.
func sameSchema(c *lite) error {
	empty, err := emptyStore()
	if err != nil {
		return err
	}
	got, err := schemaOf(c)
	if err == nil && !slices.Equal(empty.schema, got) {
		err = fmt.Errorf("%w: its tables are not those of version %d", ErrNotACopy, migrations.Version())
	}
	return notACopy(err)
}

// notACopy names what SQLite says of bytes that are no database, or a damaged
// one.
func notACopy(err error) error {
	switch code := sqlite.ErrCode(err).ToPrimary(); {
	case errors.Is(err, ErrDamaged), code == sqlite.ResultNotADB, code == sqlite.ResultCorrupt:
		return fmt.Errorf("%w: %w", ErrNotACopy, err)
	}
	return err
}

// unpack makes the database file of a new directory from a copy.
func (s *Store) unpack(ctx context.Context, path string, from io.Reader) error {
	temp := path + leftover
	defer removeDatabase(temp)
	staged, err := s.stageFile(ctx, from, temp)
	if err != nil {
		return err
	}
	if err := errors.Join(staged.empty(), staged.Close()); err != nil {
		return err
	}
	if err := syncFile(temp); err != nil {
		return err
	}
	// What is left of an older database must not be taken for this one's.
	for _, end := range []string{"-wal", "-shm", "-journal", sumEnd} {
		if err := os.Remove(path + end); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncFolder(s.dir)
}

// stageFile puts a copy into a file and adopts it.
func (s *Store) stageFile(ctx context.Context, from io.Reader, temp string) (*lite, error) {
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(f, &untilDone{ctx, from})
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read copy: %w", err)
	}
	c, err := connect(temp, sqlite.OpenReadWrite)
	if err != nil {
		return nil, notACopy(err)
	}
	return s.adopted(c)
}

func (s *Store) adopted(c *lite) (*lite, error) {
	if err := s.adopt(c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// untilDone reads until a context is done.
type untilDone struct {
	ctx  context.Context
	from io.Reader
}

func (r *untilDone) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}

// The header of a SQLite file; the two bytes at journalVersion are 2 when it was
// in WAL mode, which a database in memory cannot be.
const (
	fileHeader     = "SQLite format 3\x00"
	headerSize     = 100
	journalVersion = 18
)

// stageMemory puts a copy into a database of its own in memory and adopts it.
func (s *Store) stageMemory(ctx context.Context, from io.Reader) (*lite, error) {
	data, err := io.ReadAll(&untilDone{ctx, from})
	if err != nil {
		return nil, fmt.Errorf("read copy: %w", err)
	}
	if len(data) < headerSize || !bytes.HasPrefix(data, []byte(fileHeader)) {
		return nil, ErrNotACopy
	}
	copy(data[journalVersion:], []byte{1, 1})
	c, err := inMemory(data)
	if err != nil {
		return nil, err
	}
	return s.adopted(c)
}

// inMemory opens a database of its own with these bytes.
func inMemory(data []byte) (*lite, error) {
	c, err := connect(":memory:", sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil || data == nil {
		return c, err
	}
	if err := c.db.Deserialize("main", data); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// fill copies a copy, or what every store begins with, into the empty store in
// memory.
func (s *Store) fill(ctx context.Context, c *lite, from io.Reader) error {
	var staged *lite
	empty, err := emptyStore()
	if from != nil {
		staged, err = s.stageMemory(ctx, from)
	} else if err == nil {
		staged, err = inMemory(empty.image)
	}
	if err != nil {
		return err
	}
	return errors.Join(c.overwrite(staged), staged.Close())
}

func (*files) overwrite(_ context.Context, writer database.Conn, staged *lite) error {
	return writer.(*lite).overwrite(staged)
}

// overwrite replaces a database by another one, all at once.
func (c *lite) overwrite(from *lite) error {
	b, err := sqlite.NewBackup(c.db, "main", from.db, "main")
	if err != nil {
		return translate(err)
	}
	_, err = b.Step(-1)
	return translate(errors.Join(err, b.Close()))
}

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
	staged, remove, err := s.stage(ctx, from)
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
	if err := s.keys.check(staged); err != nil {
		return err
	}
	// An idle connection may have been lost; it is opened anew here.
	c, err := s.begun(ctx, s.writing, true)
	if err == nil {
		c = ended(c)
	}
	if s.writing = c; c == nil || err != nil {
		return cmp.Or(err, ErrUnavailable)
	}
	if f, ok := s.onDisk(); ok {
		if err := f.forgetSum(); err != nil {
			return err
		}
		f.session = false
	}
	if err := s.engine.overwrite(ctx, c, staged); err != nil {
		return err
	}
	s.keys.forget(nil)
	return s.change(context.WithoutCancel(ctx), (*Tx).openInstallation)
}

// stage adopts a copy: in the data directory where there is one, in memory
// otherwise.
func (s *Store) stage(ctx context.Context, from io.Reader) (staged *lite, remove func(), err error) {
	if s.dir == "" {
		staged, err = s.stageMemory(ctx, from)
		return staged, func() {}, err
	}
	temp := filepath.Join(s.dir, rand.Text()+leftover)
	remove = func() { removeDatabase(temp) }
	if staged, err = s.stageFile(ctx, from, temp); err != nil {
		remove()
	}
	return staged, remove, err
}
