package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/reach"
	"github.com/destkit/destkit/internal/source/internal/fileformat"
	"github.com/destkit/destkit/server/api"
)

// fileType describes a source of files of one format.
func fileType(name, label string, format fileformat.Format) *sourceType {
	hint := "A file, or a folder whose " + strings.Join(format.Extensions(), " and ") + " files are a table each, on the machine of the service."
	d := describe(name, label,
		matching(text("path", "Path", "/data/users"+format.Extensions()[0], hint), namePattern))
	d.File = true
	_, typed := format.(fileformat.Parquet)
	d.Inferred = !typed
	return &sourceType{Description: d, steps: opening,
		open: func(_ context.Context, _ *sourceType, s settings, o Options) (Source, error) {
			src := &files{typ: name, path: s.text("path"), format: format, options: o}
			_, err := src.list()
			return src, err
		}}
}

// files is a source of one file or of the files of one folder.
type files struct {
	typ, path string
	format    fileformat.Format
	options   Options
}

// Close has nothing to do: files are open only while they are read.
func (s *files) Close() error { return nil }

// fileTable is one file and the name of its table: the base name without its
// extension, or with it where two files would have the same name.
type fileTable struct{ name, path string }

// list finds the files; a path that is named outright may have any extension.
func (s *files) list() ([]fileTable, error) {
	place, err := s.options.find(s.path)
	if err != nil {
		return nil, err
	}
	info, err := plain(place, s.path, true)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		f, err := s.options.openFile(s.path) // reports now whether it can be read at all
		if err != nil {
			return nil, err
		}
		return []fileTable{{stem(s.path), s.path}}, f.Close()
	}
	entries, err := place.Entries()
	if err != nil {
		return nil, openError(s.path, err)
	}
	var tables []fileTable
	count := map[string]int{}
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, ".") || !slices.Contains(s.format.Extensions(), strings.ToLower(filepath.Ext(name))) {
			continue
		}
		path := filepath.Join(s.path, name)
		within, err := s.options.find(path)
		if reach.Refused(err) {
			return nil, err
		}
		if err != nil {
			continue
		}
		if info, err := within.Stat(); err != nil || !info.Mode().IsRegular() {
			continue
		}
		tables = append(tables, fileTable{stem(name), path})
		count[stem(name)]++
	}
	for i, t := range tables {
		if count[t.name] > 1 {
			tables[i].name = filepath.Base(t.path)
		}
	}
	return tables, nil
}

// stem is the base name without its extension.
func stem(path string) string {
	base := filepath.Base(path)
	if short := strings.TrimSuffix(base, filepath.Ext(base)); short != "" {
		return short
	}
	return base
}

// find looks for the file of a table; its base name with the extension is taken
// as well.
func (s *files) find(object Object) (string, error) {
	if object.Query != "" {
		return "", noQueries(s.typ)
	}
	tables, err := s.list()
	if err != nil {
		return "", err
	}
	if isMain(object.Catalog) && isMain(object.Schema) {
		for _, exact := range []bool{true, false} {
			for _, t := range tables {
				if exact && t.name == object.Name || !exact && filepath.Base(t.path) == object.Name {
					return t.path, nil
				}
			}
		}
	}
	return "", fmt.Errorf("find table %s: %w", object, ErrNoTable)
}

// Tables reads the columns of every file. One that cannot be read fails the
// whole: a file that is left out silently would look like a table that is gone.
func (s *files) Tables(ctx context.Context) ([]api.Table, error) {
	found, err := s.list()
	if err != nil {
		return nil, err
	}
	tables := []api.Table{}
	for _, t := range found {
		columns, err := s.columns(ctx, t.path)
		if err != nil {
			return nil, err
		}
		tables = append(tables, api.Table{Type: api.ObjectTable, TableCatalog: main, TableSchema: main, TableName: t.name, Columns: columns})
	}
	sortTables(tables)
	return tables, nil
}

// Columns implements Source.
func (s *files) Columns(ctx context.Context, object Object) ([]api.Column, error) {
	path, err := s.find(object)
	if err != nil {
		return nil, err
	}
	return s.columns(ctx, path)
}

// columns opens the file for its columns alone.
func (s *files) columns(ctx context.Context, path string) ([]api.Column, error) {
	f, err := s.options.openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return s.columnsOf(ctx, path, f)
}

// columnsOf reads the columns of an open file.
func (s *files) columnsOf(ctx context.Context, path string, f *os.File) ([]api.Column, error) {
	columns, err := fileformat.Columns(ctx, s.format, f)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, pathless(err))
	}
	return columns, nil
}

// sortTables puts tables into the order of catalog, schema and name.
func sortTables(tables []api.Table) {
	slices.SortFunc(tables, func(a, b api.Table) int {
		return cmp.Or(strings.Compare(a.TableCatalog, b.TableCatalog), strings.Compare(a.TableSchema, b.TableSchema), strings.Compare(a.TableName, b.TableName))
	})
}

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
