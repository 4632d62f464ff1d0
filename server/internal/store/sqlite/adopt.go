package sqlite

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
)

// ErrNotACopy refuses anything but a whole copy of a store.
var ErrNotACopy = error(&unfit{"not a copy of a store"})

// adopt checks that a database is a whole copy of a store that the master key
// opens, and brings it to the present version.
func adopt(c *Conn, check func(*Conn) error) error {
	version, err := versionOf(c)
	if err == nil && version == 0 {
		return ErrNotACopy
	}
	if err != nil {
		return notACopy(err)
	}
	first, faults := "", 0
	err = c.Query("SELECT quick_check FROM pragma_quick_check WHERE quick_check <> 'ok' UNION ALL SELECT 'a reference to nothing' FROM pragma_foreign_key_check",
		func(c Row) error {
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
	if err := check(c); err != nil {
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
// our mark: its effect is unknown.
func sameSchema(c *Conn) error {
	empty, err := emptyStore()
	if err != nil {
		return err
	}
	got, err := schemaOf(c)
	if err == nil && !slices.Equal(empty.schema, got) {
		err = fmt.Errorf("%w: its tables are not those of version %d", ErrNotACopy, Version())
	}
	return notACopy(err)
}

// notACopy names the SQLite errors for bytes that are no database, or a
// damaged one.
func notACopy(err error) error {
	switch code := sqlite.ErrCode(err).ToPrimary(); {
	case errors.Is(err, ErrDamaged), code == sqlite.ResultNotADB, code == sqlite.ResultCorrupt:
		return fmt.Errorf("%w: %w", ErrNotACopy, err)
	}
	return err
}

// unpack makes the database file of a new directory from a copy.
func (f *Files) unpack(ctx context.Context, o Options) error {
	path, temp := f.path, f.path+leftover
	defer removeDatabase(temp)
	staged, err := stageFile(ctx, o.From, temp, o.Check)
	if err != nil {
		return err
	}
	if err := errors.Join(staged.Checkpoint(), staged.Close()); err != nil {
		return err
	}
	if err := syncFile(temp); err != nil {
		return err
	}
	// Leftover files of an older database must not be taken for this one's.
	for _, end := range []string{"-wal", "-shm", "-journal", sumEnd} {
		if err := os.Remove(path + end); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncFolder(f.dir)
}

// stageFile puts a copy into a file and adopts it.
func stageFile(ctx context.Context, from io.Reader, temp string, check func(*Conn) error) (*Conn, error) {
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
	return adopted(c, check)
}

func adopted(c *Conn, check func(*Conn) error) (*Conn, error) {
	if err := adopt(c, check); err != nil {
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

// stageMemory puts a copy into a separate database in memory and adopts it.
func stageMemory(ctx context.Context, from io.Reader, check func(*Conn) error) (*Conn, error) {
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
	return adopted(c, check)
}

// inMemory opens a separate database with these bytes.
func inMemory(data []byte) (*Conn, error) {
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
func fill(ctx context.Context, c *Conn, o Options) error {
	var staged *Conn
	empty, err := emptyStore()
	if o.From != nil {
		staged, err = stageMemory(ctx, o.From, o.Check)
	} else if err == nil {
		staged, err = inMemory(empty.image)
	}
	if err != nil {
		return err
	}
	return errors.Join(c.overwrite(staged), staged.Close())
}

// Overwrite replaces every row by those of an adopted copy, all or none.
func (f *Files) Overwrite(writer, staged *Conn) error {
	if f.dir != "" {
		if err := f.forgetSum(); err != nil {
			return err
		}
		f.session = false
	}
	return writer.overwrite(staged)
}

// overwrite replaces a database by another one, all at once.
func (c *Conn) overwrite(from *Conn) error {
	b, err := sqlite.NewBackup(c.db, "main", from.db, "main")
	if err != nil {
		return translate(err)
	}
	_, err = b.Step(-1)
	return translate(errors.Join(err, b.Close()))
}

// Stage adopts a copy: in the data directory where there is one, in memory
// otherwise (""). remove follows the last use. Errors: ErrNotACopy,
// ErrNewer, and those of check.
func Stage(ctx context.Context, dir string, from io.Reader, check func(*Conn) error) (staged *Conn, remove func(), err error) {
	if dir == "" {
		staged, err = stageMemory(ctx, from, check)
		return staged, func() {}, err
	}
	temp := filepath.Join(dir, rand.Text()+leftover)
	remove = func() { removeDatabase(temp) }
	if staged, err = stageFile(ctx, from, temp, check); err != nil {
		remove()
	}
	return staged, remove, err
}
