package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"zombiezen.com/go/sqlite"
)

// Copy writes what there is now as a SQLite database, by a connection that reads and has
// nothing else to do.
func (f *Files) Copy(ctx context.Context, reader *Conn, w io.Writer) error {
	if f.dir == "" {
		data, err := reader.Image()
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	}
	temp := filepath.Join(f.dir, rand.Text()+leftover)
	defer removeDatabase(temp)
	if err := reader.backup(ctx, temp); err != nil {
		return err
	}
	if err := wholeCopy(temp); err != nil {
		return err
	}
	return sendFile(w, temp)
}

func sendFile(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// backupPages are copied between two looks at the context.
const backupPages = 1024

// backup copies what a reader sees into a new file.
func (c *Conn) backup(ctx context.Context, to string) error {
	if err := createFile(to); err != nil {
		return err
	}
	out, err := connect(to, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	if _, err := out.pragma("PRAGMA synchronous = OFF"); err != nil { // after a crash the file is useless
		return err
	}
	b, err := sqlite.NewBackup(out.db, "main", c.db, "main")
	if err != nil {
		return translate(err)
	}
	defer b.Close()
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if more, err = b.Step(backupPages); err != nil {
			return translate(err)
		}
	}
	return nil
}

// wholeCopy looks at pages that were copied unread: a snapshot of a damaged database
// would vouch for it.
func wholeCopy(path string) error {
	c, err := (&Files{path: path}).look()
	if err != nil {
		return err
	}
	return errors.Join(c.holdsTogether(), c.Close())
}

// vacuum writes what a database holds now into a new file: one read, so others
// go on writing, and without the free pages of the original.
func vacuum(ctx context.Context, path, to string) error {
	if err := createFile(to); err != nil {
		return err
	}
	c, err := connect(path, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := versionOf(c); err != nil {
		return err
	}
	c.db.SetInterrupt(ctx.Done())
	if _, err := c.exec("VACUUM INTO ?", to); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	if err := markFile(to); err != nil {
		return err
	}
	return syncFile(to)
}

// syncFile makes sure that a file's bytes are on disk.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// ErrInside refuses a backup within the data directory: it would be lost together
// with the original.
var ErrInside = error(&unfit{"a backup belongs outside of the data directory"})

// Backup copies the database of a data directory into a file, which appears whole
// or not at all and replaces an earlier one. The directory may be in use by this
// or another process, which goes on writing meanwhile; no key is needed. To start
// from a backup, open a new directory with Options.From.
func Backup(ctx context.Context, dir, to string) error {
	if err := backup(ctx, dir, to); err != nil {
		return fmt.Errorf("back up %s to %s: %w", dir, to, err)
	}
	return nil
}

func backup(ctx context.Context, dir, to string) error {
	path := filepath.Join(dir, databaseFile)
	if info, err := os.Stat(path); err != nil {
		return err
	} else if info.Size() == 0 {
		return errors.New("the directory holds no data yet")
	}
	if inside, err := sameFolder(dir, filepath.Dir(to)); err != nil {
		return err
	} else if inside {
		return ErrInside
	}
	if err := leftWhole(dir, path+"-wal"); err != nil {
		return err
	}
	// A checksum would vouch for existing damage.
	if _, err := (&Files{dir: dir, path: path}).unchanged(); err != nil {
		return err
	}
	temp := to + "." + rand.Text() + leftover
	defer removeDatabase(temp)
	if err := vacuum(ctx, path, temp); err != nil {
		return err
	}
	if err := os.Rename(temp, to); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(to))
}

func sameFolder(a, b string) (bool, error) {
	one, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other), err
}

// syncFolder makes a rename durable where the system can do that.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_ = f.Sync() // some systems refuse it for folders
	return f.Close()
}
