package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/destkit/destkit/internal/reach"
)

// find says where a path leads that a source may read.
func (o Options) find(path string) (*reach.Place, error) {
	place, err := o.Files.Find(path)
	return place, openError(path, err)
}

// openFile opens a file that is one; a named pipe would wait for ever.
func (o Options) openFile(path string) (*os.File, error) {
	place, err := o.find(path)
	if err != nil {
		return nil, err
	}
	if _, err := plain(place, path, false); err != nil {
		return nil, err
	}
	f, err := place.Open()
	return f, openError(path, err)
}

// plain looks at a place without opening it, and tells clearly why it cannot be
// read as a file, or as a folder where that is allowed.
func plain(place *reach.Place, path string, folder bool) (os.FileInfo, error) {
	info, err := place.Stat()
	switch {
	case err != nil:
		return nil, openError(path, err)
	case info.IsDir() && folder:
	case info.IsDir():
		return nil, fmt.Errorf("open %s: it is a folder, and must be a file", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("open %s: it is not a regular file", path)
	}
	return info, nil
}

// openError says why a path could not be opened, with the path as it was given.
func openError(path string, err error) error {
	switch {
	case err == nil || reach.Refused(err):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("open %s: there is no such file", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("open %s: the service may not read it", path)
	}
	return fmt.Errorf("open %s: %w", path, pathless(err))
}
