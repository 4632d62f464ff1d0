package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/destkit/destkit/internal/source/internal/fileformat"
)

var _ Reader = (*files)(nil)

// Rows reads a file from its start to its end. Files have no order, so ordered
// rows are sorted on disk.
func (s *files) Rows(ctx context.Context, object Object, columns, order []string) (_ Rows, err error) {
	path, err := s.find(object)
	if err != nil {
		return nil, err
	}
	f, err := s.options.openFile(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	// Taken before the columns are read, so that no change goes unseen.
	before, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, pathless(err))
	}
	all, err := s.columnsOf(ctx, path, f)
	if err != nil {
		return nil, err
	}
	chosen, err := choose(object, all, columns, order)
	if err != nil {
		return nil, err
	}
	rows, err := s.format.Rows(ctx, f, all, chosen.wanted)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return arranged(ctx, &fileRows{rows: rows, file: f, path: path, before: before}, chosen, false, s.options.Scratch)
}

// fileRows watches over the file: rows of a file that is written meanwhile are
// of no moment that ever was.
type fileRows struct {
	rows   Rows
	file   *os.File
	path   string
	before os.FileInfo
}

// Next implements Rows. A file that was changed while it was read is an error:
// its rows may be of neither state.
func (r *fileRows) Next() ([][]byte, error) {
	values, err := r.rows.Next()
	if err == nil {
		return values, nil
	}
	after, statErr := r.file.Stat()
	// Also at the plain end: a file that was cut short ends like any other.
	changed := statErr != nil || after.Size() != r.before.Size() || !after.ModTime().Equal(r.before.ModTime())
	switch {
	case changed:
		return nil, fmt.Errorf("read %s: %w", r.path, fileformat.ErrChanged)
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	}
	return nil, fmt.Errorf("read %s: %w", r.path, err)
}

func (r *fileRows) Close() error { return errors.Join(r.rows.Close(), r.file.Close()) }
