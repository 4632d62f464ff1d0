package sqlite

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"

	"zombiezen.com/go/sqlite"
)

// Compose writes a copy whose rows fill puts into an empty database: one in a folder, so
// that memory does not grow with the rows, or in memory where there is none ("").
func Compose(folder string, w io.Writer, fill func(*Conn) error) error {
	staged, path, err := emptyCopy(folder)
	if err != nil {
		return err
	}
	if path != "" {
		defer os.Remove(path)
	}
	if err = fill(staged); err == nil {
		err = staged.markBackup()
	}
	var data []byte
	if err == nil && path == "" {
		data, err = staged.Image()
	}
	if err = errors.Join(err, staged.Close()); err != nil {
		return err
	}
	if path == "" {
		_, err = w.Write(data)
		return err
	}
	return sendFile(w, path)
}

// emptyCopy makes a database without rows.
func emptyCopy(folder string) (staged *Conn, path string, err error) {
	empty, err := emptyStore()
	if err != nil {
		return nil, "", err
	}
	if folder == "" {
		staged, err = inMemory(empty.image)
		return staged, "", err
	}
	path = filepath.Join(folder, rand.Text()+leftover)
	if err := os.WriteFile(path, empty.image, 0o600); err != nil {
		return nil, "", err
	}
	staged, err = connect(path, sqlite.OpenReadWrite)
	if err != nil {
		_ = os.Remove(path)
	}
	return staged, path, err
}

// ReplaceFile writes a file that appears whole or not at all and replaces an earlier one.
func ReplaceFile(to string, write func(io.Writer) error) error {
	temp := to + "." + rand.Text() + leftover
	defer os.Remove(temp)
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := os.Rename(temp, to); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(to))
}
