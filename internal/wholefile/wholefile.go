// Package wholefile owns writing a file as a whole or not at all: who reads it never meets
// half of it, and a full disk costs nothing that was there. The content is up to its
// callers.
package wholefile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
)

// Write replaces the file at path by what write writes: the bytes go to a file next to
// it that is renamed at the end, so that an error leaves the old content. A device or a
// pipe, which cannot be renamed onto, is written directly. Errors of the file system are
// explained.
func Write(path string, write func(io.Writer) error) error {
	return explain(replace(path, 0, write))
}

// WritePrivate is Write with a file that only its owner can read.
func WritePrivate(path string, write func(io.Writer) error) error {
	return explain(replace(path, 0o600, write))
}

// replace gives the file a mode; 0: that of the file that was there.
func replace(path string, private fs.FileMode, write func(io.Writer) error) error {
	// A link is followed: the file behind it is replaced, not the link.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	mode := fs.FileMode(0o666) // less the umask, like any file that a program makes
	if info, err := os.Stat(path); err == nil {
		if info.IsDir() {
			return errors.New("it is a folder")
		}
		if !info.Mode().IsRegular() {
			return writeDirect(path, write)
		}
		mode = info.Mode().Perm()
	}
	if private != 0 {
		mode = private
	}
	f, err := createBeside(path, mode)
	if err != nil {
		return err
	}
	temp := f.Name()
	if err := fill(f, write); err != nil {
		os.Remove(temp)
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		os.Remove(temp)
		return err
	}
	return nil
}

// explain describes what an error of the file system means.
func explain(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("the disk is full, the file was not written: %w", err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the folder does not exist: %w", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("no permission to write there: %w", err)
	}
	return err
}

// createBeside makes a hidden file in the folder of path, where a rename
// stays within one file system.
func createBeside(path string, mode fs.FileMode) (*os.File, error) {
	for {
		name := fmt.Sprintf(".%s.%08x.tmp", filepath.Base(path), rand.Uint32())
		f, err := os.OpenFile(filepath.Join(filepath.Dir(path), name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		return f, err
	}
}

// fill writes, syncs and closes f. The sync makes a full disk known here,
// before the rename, on file systems that allocate late.
func fill(f *os.File, write func(io.Writer) error) error {
	b := bufio.NewWriter(f)
	err := write(b)
	if err == nil {
		err = b.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// writeDirect writes to what exists and is no file. It is opened without the
// creating flags: a device that disappeared must not come back as a file.
func writeDirect(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
