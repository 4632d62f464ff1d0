package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/internal/handles"
)

// Snapshotter is a Ranger whose ranges can be read as of one moment by several
// readers, also in other processes.
type Snapshotter interface {
	// Snapshot keeps the present moment until it is closed. The error is an
	// ErrNoSnapshot where the source can be reached, and has none to give.
	Snapshot(ctx context.Context) (Snapshot, error)
}

// Snapshot is one moment of a source.
type Snapshot interface {
	// Name is for Range.Snapshot.
	Name() string
	// Holds reports whether all ranges that name it, and were opened before this call,
	// have rows of one moment: nil, or an ErrNoSnapshot. It is safe for parallel use.
	Holds(ctx context.Context) error
	Close() error
}

// ErrNoSnapshot: rows cannot be read as of the moment of a snapshot.
var ErrNoSnapshot = errors.New("the rows cannot be read as of this moment")

var (
	_ Snapshotter = (*postgres)(nil)
	_ Snapshotter = (*sqliteSource)(nil)
	_ Snapshotter = (*generator)(nil)
)

// postgresSnapshot is a transaction that has exported what it sees. Others may import
// that for as long as it lives.
type postgresSnapshot struct {
	conn *pgx.Conn
	name string
}

// Snapshot implements Snapshotter. Limits of the server on idle transactions do not
// hold for it: it does nothing for as long as the others read.
func (p *postgres) Snapshot(ctx context.Context) (_ Snapshot, err error) {
	conn, err := p.connect(ctx)
	if err != nil {
		return nil, p.clean(err)
	}
	s := &postgresSnapshot{conn: conn}
	if err = begin(ctx, conn); err == nil {
		_, err = conn.Exec(ctx, "SELECT set_config(name, '0', TRUE) FROM pg_settings WHERE name IN ('idle_in_transaction_session_timeout', 'transaction_timeout')")
	}
	if err == nil {
		err = conn.QueryRow(ctx, "SELECT pg_export_snapshot()").Scan(&s.name)
	}
	if err != nil {
		closeConn(conn)
		return nil, p.clean(fmt.Errorf("export a snapshot: %w", noSnapshot(err)))
	}
	return s, nil
}

// noSnapshot tells what a server refuses from one that is gone.
func noSnapshot(err error) error {
	if server := new(pgconn.PgError); errors.As(err, &server) {
		return fmt.Errorf("%w: %s", ErrNoSnapshot, server.Message)
	}
	return err
}

// Name implements Snapshot.
func (s *postgresSnapshot) Name() string { return s.name }

// Holds implements Snapshot: who could not import it has no rows.
func (s *postgresSnapshot) Holds(context.Context) error { return nil }

// Close implements Snapshot.
func (s *postgresSnapshot) Close() error {
	closeConn(s.conn)
	return nil
}

// beginAt is begin as of a snapshot; "" is a moment of its own. The server refuses one
// whose transaction has ended, or is in another server behind the same address.
func beginAt(ctx context.Context, conn *pgx.Conn, snapshot string) error {
	if err := begin(ctx, conn); err != nil || snapshot == "" {
		return err
	}
	if _, err := conn.Exec(ctx, "SET TRANSACTION SNAPSHOT '"+strings.ReplaceAll(snapshot, "'", "''")+"'"); err != nil {
		return fmt.Errorf("import a snapshot: %w", noSnapshot(err))
	}
	return nil
}

// sqliteSnapshot notices commits. A read transaction of SQLite cannot be handed to
// another connection, so each range has one of its own, and they see the same as
// long as nobody commits before the last one is open.
type sqliteSnapshot struct {
	s *sqliteSource

	mu   sync.Mutex
	conn *sqlite.Conn
	was  int64
}

// Snapshot implements Snapshotter.
func (s *sqliteSource) Snapshot(ctx context.Context) (Snapshot, error) {
	conn, err := s.connect(context.WithoutCancel(ctx)) // it outlives the call
	if err != nil {
		return nil, err
	}
	kept := &sqliteSnapshot{s: s, conn: conn}
	if kept.was, err = kept.version(); err != nil {
		return nil, errors.Join(s.explain(err), kept.Close())
	}
	return kept, nil
}

// version changes with each commit of another connection, whichever process has it.
func (s *sqliteSnapshot) version() (n int64, err error) {
	err = sqlitex.ExecuteTransient(s.conn, "PRAGMA data_version", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		n = stmt.ColumnInt64(0)
		return nil
	}})
	return n, err
}

// Name implements Snapshot.
func (s *sqliteSnapshot) Name() string { return "" }

// Holds implements Snapshot.
func (s *sqliteSnapshot) Holds(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.version()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNoSnapshot, s.s.explain(err))
	case now != s.was:
		return fmt.Errorf("%w: %s was changed meanwhile", ErrNoSnapshot, s.s.name())
	}
	return nil
}

// Close implements Snapshot.
func (s *sqliteSnapshot) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return handles.Close(s.conn)
}

// generatorSnapshot is a moment by its name: rows are made up for any.
type generatorSnapshot string

// Snapshot implements Snapshotter.
func (g *generator) Snapshot(context.Context) (Snapshot, error) {
	return generatorSnapshot(g.now().UTC().Format(time.RFC3339Nano)), nil
}

// at is the moment of a snapshot; "" is the present one.
func (g *generator) at(snapshot string) (time.Time, error) {
	if snapshot == "" {
		return g.now(), nil
	}
	at, err := time.Parse(time.RFC3339Nano, snapshot)
	if err != nil {
		return at, fmt.Errorf("%w: it is none of a generator", ErrNoSnapshot)
	}
	return at, nil
}

// Name implements Snapshot.
func (s generatorSnapshot) Name() string { return string(s) }

// Holds implements Snapshot.
func (s generatorSnapshot) Holds(context.Context) error { return nil }

// Close implements Snapshot.
func (s generatorSnapshot) Close() error { return nil }
