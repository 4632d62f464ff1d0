package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/internal/connector"
	"github.com/destkit/destkit/internal/handles"
	"github.com/destkit/destkit/server/api"
)

// warehouseDialect is how one product differs from the database under it.
type warehouseDialect struct {
	catalogField  string // the credential that names the catalog
	defaultSchema string
	schemas       []string // all of them, the default one included
	upper         bool     // names are stored in upper case
	types         map[api.Kind]string
	tables        []sampleTable // that a new one holds
}

// warehouse is the database of one emulated source: one SQLite file. Tables of
// the default schema have their own name there, others "schema.table".
type warehouse struct {
	typ     string
	dialect *warehouseDialect
	catalog string
	path    string // of the file, or a URI of memory
	flags   sqlite.OpenFlags
}

// openWarehouse opens the database behind an emulated warehouse: a file, or a
// key of one in memory.
func openWarehouse(ctx context.Context, t *sourceType, s settings, o Options) (*sqliteSource, error) {
	w := &warehouse{typ: t.ServiceName, dialect: t.dialect, catalog: s.text(t.dialect.catalogField)}
	if o.Warehouse != "" {
		path, err := filepath.Abs(o.Warehouse)
		if err != nil {
			return nil, fmt.Errorf("open warehouse: %w", err)
		}
		w.path = path
	} else {
		w.flags = sqlite.OpenURI
		w.path = "file:/destkit/" + url.PathEscape(w.typ) + "/" + url.PathEscape(o.Key) + "?vfs=memdb"
		if err := kept.keep(o.Key, w.path); err != nil {
			return nil, fmt.Errorf("open warehouse in memory: %w", err)
		}
	}
	if err := w.fill(ctx); err != nil {
		return nil, err
	}
	return &sqliteSource{warehouse: w, scratch: o.Scratch}, nil
}

// sourceType is the type that an entry describes, made once. Beneath it is
// SQLite, so it takes queries.
func (e *Entry) sourceType() *sourceType {
	e.once.Do(func() {
		d := describe(e.ServiceName, e.Label, connector.Configs(e.Credentials)...)
		d.Emulated, d.SQL, d.StreamingDatabase = true, true, e.StreamingDatabase
		d.SupportsWarehouseWriteback = e.Writeback
		d.DocumentationSlug = cmp.Or(e.DocumentationSlug, d.DocumentationSlug)
		if len(e.Engines) > 0 {
			d.SupportedSyncEngines = slices.Clone(e.Engines)
		}
		e.made = emulated(d, e)
		e.made.compile()
	})
	return e.made
}

// emulated makes a type of an emulated warehouse.
func emulated(d Description, e *Entry) *sourceType {
	authenticate := func(t *sourceType, s settings) error {
		if id := e.Refuse.Refused(s); id != "" {
			return fmt.Errorf("log in to %s: %s is refused", t.ServiceName, id)
		}
		return nil
	}
	check := func(s settings) []api.Problem {
		problems := e.Lacking(s)
		for i := range problems {
			problems[i].Field = "credentials." + problems[i].Field
		}
		return problems
	}
	return &sourceType{Description: d, entry: e, dialect: e.Warehouse.dialect(), check: check,
		open: func(ctx context.Context, t *sourceType, s settings, o Options) (Source, error) {
			if err := authenticate(t, s); err != nil {
				return nil, err
			}
			return openWarehouse(ctx, t, s, o)
		},
		steps: func(t *sourceType, s settings, o Options) *probe {
			p := &probe{}
			p.add(stepConnect, func(ctx context.Context) error {
				src, err := openWarehouse(ctx, t, s, o)
				if err == nil {
					p.src = src
				}
				return err
			})
			p.add(stepAuthenticate, func(context.Context) error { return authenticate(t, s) })
			p.addRead()
			return p
		}}
}

// connect opens a connection of the warehouse's own; callers only read.
func (w *warehouse) connect(ctx context.Context) (*sqlite.Conn, error) {
	return w.open(ctx, sqlite.OpenReadWrite)
}

// open connects to it; the connection ends its work with the context.
func (w *warehouse) open(ctx context.Context, flags sqlite.OpenFlags) (*sqlite.Conn, error) {
	conn, err := handles.Open(w.path, flags|w.flags)
	if err != nil {
		return nil, fmt.Errorf("open warehouse: %s", sqlite.ErrCode(err).Message())
	}
	return conn, prepareReader(ctx, conn)
}

// applicationID marks a file as a warehouse of this package ("dkwh").
const applicationID = 0x646b7768

// filling lets one warehouse be filled at a time: while a database changes its
// journal mode, SQLite refuses others instead of letting them wait.
var filling sync.Mutex

// fill makes the sample tables in a new warehouse. Of two that open it at once
// the second finds it filled.
func (w *warehouse) fill(ctx context.Context) (err error) {
	filling.Lock()
	defer filling.Unlock()
	if w.flags == 0 {
		if err := os.MkdirAll(filepath.Dir(w.path), 0o700); err != nil {
			return fmt.Errorf("make folder of warehouse: %w", pathless(err))
		}
	}
	conn, err := w.open(ctx, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		return err
	}
	defer func() { _ = handles.Close(conn) }()
	if filled, err := w.filled(conn); err != nil || filled {
		return err
	}
	if w.flags != 0 { // no other process has it, and filling is locked
		return w.copySample(conn)
	}
	// Readers and Execute do not wait for each other.
	if err := sqlitex.ExecuteTransient(conn, "PRAGMA journal_mode = wal", nil); err != nil {
		return fmt.Errorf("open warehouse: %w", err)
	}
	end, err := sqlitex.ImmediateTransaction(conn)
	if err != nil {
		return fmt.Errorf("open warehouse: %w", err)
	}
	defer end(&err)
	if filled, err := w.filled(conn); err != nil || filled {
		return err
	}
	return w.fillSample(conn)
}

// filled reports whether a database has its sample tables. A database of another
// program is left as it is.
func (w *warehouse) filled(conn *sqlite.Conn) (bool, error) {
	// The tables first: another process may fill the database between the two, and
	// commits the mark with the tables.
	changes, err := pragma(conn, "schema_version")
	if err != nil {
		return false, err
	}
	id, err := pragma(conn, "application_id")
	if err != nil || id == applicationID {
		return err == nil, err
	}
	if changes > 0 {
		err = errors.New("open warehouse: the file is a database of another program")
	}
	return false, err
}

// pragma reads a number of the database.
func pragma(conn *sqlite.Conn, name string) (n int64, err error) {
	err = sqlitex.ExecuteTransient(conn, "PRAGMA "+name, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		n = stmt.ColumnInt64(0)
		return nil
	}})
	if err != nil {
		return 0, fmt.Errorf("read %s of warehouse: %w", name, err)
	}
	return n, nil
}

// keeper holds warehouses in memory alive: such a database lives as long as
// a client is connected to it.
type keeper struct {
	mu    sync.Mutex
	conns map[string]map[string]*sqlite.Conn // key, path
}

// kept holds the warehouses in memory open: SQLite drops such a database with
// its last connection.
var kept = keeper{conns: map[string]map[string]*sqlite.Conn{}}

// keep opens a connection that is never used, unless there is one.
func (k *keeper) keep(key, path string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.conns[key][path] != nil {
		return nil
	}
	conn, err := handles.Open(path, sqlite.OpenReadWrite|sqlite.OpenCreate|sqlite.OpenURI)
	if err != nil {
		return err
	}
	// The first use makes the connection take part in the shared database.
	if _, err := pragma(conn, "schema_version"); err != nil {
		return errors.Join(err, handles.Close(conn))
	}
	if k.conns[key] == nil {
		k.conns[key] = map[string]*sqlite.Conn{}
	}
	k.conns[key][path] = conn
	return nil
}

// Forget drops the warehouses in memory of one key, once those who read them
// have ended.
func Forget(key string) {
	kept.mu.Lock()
	defer kept.mu.Unlock()
	for _, conn := range kept.conns[key] {
		_ = handles.Close(conn)
	}
	delete(kept.conns, key)
}

// Execute runs statements on an emulated warehouse, all or none: CREATE, INSERT,
// UPDATE, DELETE and so on, in the SQL of SQLite with the names of the
// warehouse. On every other source it returns ErrReadOnly.
func Execute(ctx context.Context, src Source, sql string) (err error) {
	s, ok := src.(*sqliteSource)
	if !ok || s.warehouse == nil {
		return fmt.Errorf("execute statements: %w", ErrReadOnly)
	}
	return s.with(ctx, func(conn *sqlite.Conn) (err error) {
		end, err := sqlitex.ImmediateTransaction(conn)
		if err != nil {
			return fmt.Errorf("execute statements: %w", err)
		}
		defer end(&err)
		defer func() { _ = conn.SetAuthorizer(nil) }() // before end, which commits
		if err := conn.SetAuthorizer(sqlite.AuthorizeFunc(onlyTables)); err != nil {
			return fmt.Errorf("execute statements: %w", err)
		}
		text, places := s.warehouse.rewrite(conn, sql, true)
		if i := strings.IndexByte(text, 0); i >= 0 {
			return &QueryError{Message: "the statements hold a NUL character", Position: position(sql, places, i)}
		}
		return runAll(conn, text, func(err error, at int) error {
			q := queryError(err, sql, nil)
			if found, ok := sqlite.ErrorOffset(err); ok {
				at += found
			}
			var problem *QueryError
			if errors.As(q, &problem) {
				problem.Position = position(sql, places, at)
				if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultAuth {
					problem.Message = "the statement is not allowed here: only tables and their rows can be changed"
				}
			}
			return q
		})
	})
}

// runAll runs the statements of a text; fail gets the byte at which the failing
// one starts.
func runAll(conn *sqlite.Conn, text string, fail func(err error, at int) error) error {
	for at := 0; at < len(text); {
		stmt, trailing, err := conn.PrepareTransient(text[at:])
		if err != nil {
			return fail(err, at)
		}
		for more := true; more && err == nil; {
			more, err = stmt.Step()
		}
		_ = stmt.Finalize()
		if err != nil {
			if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultConstraint {
				return &QueryError{Message: driverWords(err)}
			}
			return fail(err, at)
		}
		at = len(text) - trailing
	}
	return nil
}

// onlyTables keeps statements to the one database and to its transaction.
func onlyTables(action sqlite.Action) sqlite.AuthResult {
	switch action.Type() {
	case sqlite.OpAttach, sqlite.OpDetach, sqlite.OpPragma, sqlite.OpTransaction, sqlite.OpSavepoint:
		return sqlite.AuthResultDeny
	}
	return sqlite.AuthResultOK
}
