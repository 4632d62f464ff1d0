package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/internal/handles"
	"github.com/destkit/destkit/internal/reach"
	"github.com/destkit/destkit/internal/source/internal/cell"
	"github.com/destkit/destkit/server/api"
)

// main is the catalog and the schema of tables without either.
const main = "main"

// sqliteType describes a database in a file.
func sqliteType() *sourceType {
	d := describe("sqlite", "SQLite",
		matching(text("path", "Path", "/data/crm.sqlite", "A database file on the machine of the service. It is only read."), namePattern))
	d.SQL = true
	unopened := func(s settings, o Options) *sqliteSource {
		return &sqliteSource{path: s.text("path"), scratch: o.Scratch, options: o}
	}
	return &sourceType{Description: d, steps: opening,
		unopened: func(s settings, o Options) describer { return unopened(s, o) },
		open: func(ctx context.Context, _ *sourceType, s settings, o Options) (Source, error) {
			src := unopened(s, o)
			return src, src.with(ctx, firstPage)
		}}
}

// sqliteSource opens a connection for each use: it costs some 100 µs, and a
// connection that is kept would pin the write-ahead log of the user's database.
type sqliteSource struct {
	path      string
	scratch   string
	options   Options
	warehouse *warehouse // of an emulated type; nil: a user's file
}

// Close has nothing to do: each reading has its own connection.
func (s *sqliteSource) Close() error { return nil }

// firstPage reads the first page of a database, which opening alone does not.
func firstPage(conn *sqlite.Conn) error {
	return sqlitex.ExecuteTransient(conn, "SELECT count(*) FROM sqlite_schema", nil)
}

// with lends a connection that can only read.
func (s *sqliteSource) with(ctx context.Context, use func(*sqlite.Conn) error) (err error) {
	defer s.tidy(&err)()
	ctx, watch := s.options.Limits.watched(ctx)
	defer watch.stop()
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = handles.Close(conn) }()
	if err := use(conn); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("read %s: %w", s.name(), context.Cause(ctx))
		}
		return s.explain(err)
	}
	return nil
}

// tidy gives what is called when a reading has ended: on an error it removes the empty -wal,
// and the -shm, that the reading made. A connection that can write does so when it is the last.
func (s *sqliteSource) tidy(failed *error) func() {
	if s.warehouse != nil {
		return func() {}
	}
	place, err := s.options.find(s.path)
	if err != nil {
		return func() {}
	}
	wal := place.Real() + "-wal"
	_, before := os.Lstat(wal)
	return func() {
		made, err := os.Lstat(wal)
		if *failed == nil || !errors.Is(before, fs.ErrNotExist) || err != nil || made.Size() > 0 {
			return
		}
		if conn, err := handles.Open(place.Real(), sqlite.OpenReadWrite|openNoFollow); err == nil {
			conn.SetBusyTimeout(0)
			_ = firstPage(conn) // opens the files
			_ = handles.Close(conn)
		}
	}
}

// name is what messages call it.
func (s *sqliteSource) name() string {
	if s.warehouse != nil {
		return s.warehouse.typ
	}
	return s.path
}

// busyTimeout is how long a locked database is waited for.
const busyTimeout = 5 * time.Second

// connect opens the file for reading only.
func (s *sqliteSource) connect(ctx context.Context) (*sqlite.Conn, error) {
	if s.warehouse != nil {
		conn, err := s.warehouse.connect(ctx)
		if err != nil {
			return nil, err
		}
		if err := s.prepare(ctx, conn); err != nil {
			return nil, errors.Join(err, handles.Close(conn))
		}
		return conn, nil
	}
	place, err := s.options.find(s.path)
	if err != nil {
		return nil, err
	}
	before, err := plain(place, s.path, false)
	if err != nil {
		return nil, err
	}
	// An absolute path is never read as ":memory:" or as a URI.
	conn, err := handles.Open(place.Real(), sqlite.OpenReadOnly|openNoFollow)
	if err != nil {
		// Only now: to open and close a database by other means takes away the
		// locks that this process has on it.
		f, unopened := s.options.openFile(s.path)
		if unopened != nil {
			return nil, unopened
		}
		_ = f.Close()
		return nil, fmt.Errorf("open %s: %s", s.path, sqlite.ErrCode(err).Message())
	}
	if err := s.same(ctx, conn, place, before); err != nil {
		return nil, errors.Join(err, handles.Close(conn))
	}
	return conn, nil
}

// prepare bounds what a reading takes.
func (s *sqliteSource) prepare(ctx context.Context, conn *sqlite.Conn) error {
	err := prepareReader(ctx, conn) // first: it waits for locks no longer than that
	if err == nil {
		err = s.options.Limits.confine(conn)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	default:
		err = s.explain(err)
	}
	return err
}

// openNoFollow refuses a path with a link in it: SQLITE_OPEN_NOFOLLOW, which the
// driver has no name for. Links were followed before.
const openNoFollow sqlite.OpenFlags = 0x01000000

// same prepares a connection, and checks its file again: the library opens by the
// path alone. A database of the service is recognized by its content, wherever it
// was copied to.
func (s *sqliteSource) same(ctx context.Context, conn *sqlite.Conn, place *reach.Place, before os.FileInfo) error {
	if err := s.prepare(ctx, conn); err != nil {
		return err
	}
	after, err := plain(place, s.path, false)
	if err != nil {
		return err
	}
	if !os.SameFile(before, after) {
		return fmt.Errorf("open %s: it was replaced while it was opened", s.path)
	}
	if s.options.Files == nil || s.options.Files.Database == 0 {
		return nil
	}
	id, err := pragma(conn, "application_id")
	if err != nil {
		return s.explain(err)
	}
	if uint32(id) == s.options.Files.Database {
		return reach.Private(s.path)
	}
	return nil
}

// prepareReader binds a connection to a context.
func prepareReader(ctx context.Context, conn *sqlite.Conn) error {
	conn.SetInterrupt(ctx.Done())
	conn.SetBusyTimeout(busyTimeout)
	return nil
}

// explain puts the driver's words about the file itself into plain ones.
func (s *sqliteSource) explain(err error) error {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultTooBig:
		return s.options.Limits.errRow()
	case sqlite.ResultNoMem:
		return errMemory
	case sqlite.ResultNotADB:
		return fmt.Errorf("read %s: the file is not a SQLite database", s.name())
	case sqlite.ResultCorrupt:
		return fmt.Errorf("read %s: the database is damaged", s.name())
	case sqlite.ResultCantOpen, sqlite.ResultReadOnly:
		return fmt.Errorf("read %s: the database is in write-ahead mode and its -shm file cannot be made; make the folder writable for the service", s.name())
	case sqlite.ResultBusy, sqlite.ResultLocked:
		return fmt.Errorf("read %s: the database is locked by another program", s.name())
	}
	return err
}

// pathless leaves out the path, which messages name as it was given.
func pathless(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Tables lists tables and views. A view that no longer fits its tables is
// listed without columns; Columns reports what is wrong with it.
func (s *sqliteSource) Tables(ctx context.Context) ([]api.Table, error) {
	tables := []api.Table{}
	err := s.with(ctx, func(conn *sqlite.Conn) error {
		var names []string
		err := sqlitex.ExecuteTransient(conn,
			"SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'view', 'virtual')"+
				" AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
			&sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
				names = append(names, stmt.ColumnText(0))
				return nil
			}})
		if err != nil {
			return fmt.Errorf("list tables: %w", err)
		}
		for _, name := range names {
			columns, err := s.columnsOf(conn, main, name)
			if err != nil && sqlite.ErrCode(err).ToPrimary() != sqlite.ResultError {
				return err
			}
			table := api.Table{Type: api.ObjectTable, TableCatalog: main, TableSchema: main, TableName: name, Columns: columns}
			if s.warehouse != nil {
				table.TableCatalog = s.warehouse.catalog
				table.TableSchema, table.TableName = s.warehouse.split(name)
			}
			tables = append(tables, table)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	sortTables(tables)
	return tables, nil
}

// Columns of a table, view or query.
func (s *sqliteSource) Columns(ctx context.Context, object Object) (columns []api.Column, err error) {
	err = s.with(ctx, func(conn *sqlite.Conn) error {
		columns, err = s.columnsIn(conn, object)
		return err
	})
	return columns, err
}

// columnsIn is Columns over a connection that is open.
func (s *sqliteSource) columnsIn(conn *sqlite.Conn, object Object) ([]api.Column, error) {
	if object.Query != "" {
		return s.queryColumns(conn, object.Query)
	}
	stored, err := s.stored(conn, object)
	if err != nil {
		return nil, err
	}
	columns, err := s.columnsOf(conn, main, stored)
	if err != nil {
		return nil, fmt.Errorf("read columns of %s: %w", object, err)
	}
	return columns, nil
}

// stored is the name under which the database keeps a table. Names compare like
// the database's own, without case for ASCII letters; the stored form is used on.
func (s *sqliteSource) stored(conn *sqlite.Conn, object Object) (string, error) {
	name := object.Name
	if s.warehouse != nil {
		var ok bool
		if name, ok = s.warehouse.join(object); !ok {
			return "", fmt.Errorf("find table %s: %w", object, ErrNoTable)
		}
	} else if !isMain(object.Catalog) || !isMain(object.Schema) {
		return "", fmt.Errorf("find table %s: catalog and schema of a sqlite source are %s: %w", object, main, ErrNoTable)
	}
	found := ""
	err := sqlitex.ExecuteTransient(conn,
		"SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name = ?1 COLLATE NOCASE AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
		&sqlitex.ExecOptions{Args: []any{name}, ResultFunc: func(stmt *sqlite.Stmt) error {
			found = stmt.ColumnText(0)
			return nil
		}})
	if err != nil {
		return "", fmt.Errorf("find table %s: %w", object, err)
	}
	if found == "" {
		return "", fmt.Errorf("find table %s: %w", object, ErrNoTable)
	}
	return found, nil
}

// isMain accepts the one catalog and schema of files, also left out.
func isMain(name string) bool { return name == "" || name == main }

// columnsOf reads the declared columns; hidden ones of virtual tables are no
// columns to their users, generated ones are.
func (s *sqliteSource) columnsOf(conn *sqlite.Conn, schema, name string) ([]api.Column, error) {
	columns := []api.Column{}
	err := sqlitex.ExecuteTransient(conn, "SELECT name, type FROM pragma_table_xinfo(?1, ?2) WHERE hidden <> 1 ORDER BY cid",
		&sqlitex.ExecOptions{Args: []any{name, schema}, ResultFunc: func(stmt *sqlite.Stmt) error {
			columns = append(columns, s.column(stmt.ColumnText(0), stmt.ColumnText(1)))
			return nil
		}})
	return columns, err
}

// column describes one column by its declared type; an emulated warehouse shows
// its own word for it.
func (s *sqliteSource) column(name, declared string) api.Column {
	kind := cell.Declared(declared)
	switch {
	case s.warehouse != nil:
		declared = s.warehouse.dialect.typeName(declared, kind)
	case declared == "":
		declared = "ANY" // an expression, or a column without a type
	}
	return api.Column{Name: name, Type: declared, Kind: kind}
}

// quote makes an identifier of SQL.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
