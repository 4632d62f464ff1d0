package store

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

// postgres is the engine of PostgreSQL. One process works on a schema: its writing
// connection holds a lock of the session, which goes when the connection goes, so
// nothing is ever written without it.
type postgres struct {
	at     Postgres
	config *pgconn.Config
	folder string // for a copy on its way; "" is memory
	owner  string // what a second process is shown
	lock   int64
	epoch  int64 // counts the processes that had the schema; 0 before this one has it
}

var _ engine = (*postgres)(nil)

// oldestServer is the oldest version that is taken, as server_version_num has it:
// gen_random_uuid needs it. Tests run with 15.
const oldestServer = 130000

// sizeOfSchema is what the tables take with their indexes, in bytes.
const sizeOfSchema = `SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class
	WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'`

// newPostgres reads the settings; nothing is connected yet.
func newPostgres(o Options) (*postgres, error) {
	at, err := ParsePostgres(o.URL, o.Password)
	if err != nil {
		return nil, err
	}
	config, err := at.config()
	if err != nil {
		return nil, err
	}
	name := fnv.New64a()
	_, _ = name.Write([]byte("destkit store in schema " + at.Schema))
	return &postgres{at: at, config: config, folder: o.Dir, owner: o.Owner, lock: int64(name.Sum64())}, nil
}

// openPostgres takes a schema, and makes it when it is missing.
func (s *Store) openPostgres(ctx context.Context, o Options) error {
	s.place = "store"
	p, err := newPostgres(o)
	if err != nil {
		return err
	}
	s.engine, s.measure, s.place = p, sizeOfSchema, p.at.String()
	c, err := p.dial(ctx)
	if err != nil {
		return err
	}
	s.writing = c
	if err := p.own(c); err != nil {
		return err
	}
	version, err := p.version(c)
	if err == nil && version > 0 {
		// A wrong key is noticed before anything is changed.
		err = s.keys.check(c)
	}
	if err == nil {
		err = p.migrate(c, version)
	}
	if err == nil {
		err = s.beside(c)
	}
	if err == nil && o.From != nil {
		err = s.startFrom(ctx, c, o)
	}
	if err == nil {
		err = p.enter(c)
	}
	return err
}

// startFrom fills a schema that holds nothing yet.
func (s *Store) startFrom(ctx context.Context, c *link, o Options) error {
	if held, err := holds(c); err != nil || held {
		return errors.Join(err, ErrHasData)
	}
	staged, remove, err := s.stage(ctx, o.From)
	if err != nil {
		return err
	}
	defer remove()
	defer staged.close()
	return s.engine.overwrite(ctx, c, staged)
}

// dial opens a connection and looks whether the server will do.
func (p *postgres) dial(ctx context.Context) (*link, error) {
	db, err := pgconn.ConnectConfig(ctx, p.config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s port %d as %s: %w", p.at.Host, p.at.Port, p.at.User, explained(err))
	}
	lock := strconv.FormatInt(p.lock+1, 10)
	c := &link{db: db, known: map[string]*prepared{}, patience: statementTime, start: [2]string{
		"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
		// Each statement sees what was committed before it, and nobody commits
		// while the lock is held: serial, without a conflict to try again after.
		"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT pg_advisory_xact_lock(" + lock + ")",
	}}
	if err := p.suits(c); err != nil {
		_ = c.close()
		return nil, err
	}
	return c, nil
}

func (p *postgres) suits(c *link) error {
	var number int64
	var recovering, encoding string
	_, err := c.run("SELECT current_setting('server_version_num'), pg_is_in_recovery(), current_setting('server_encoding')", func(c cells) error {
		number, _ = c.number(0)
		recovering, encoding = c.text(1), c.text(2)
		return nil
	})
	switch {
	case err != nil:
		return err
	case number < oldestServer:
		return fmt.Errorf("%w: the server is PostgreSQL %s; version %d or later is needed", ErrUnfit, c.db.ParameterStatus("server_version"), oldestServer/10000)
	case encoding != "UTF8":
		return fmt.Errorf("%w: the database %s has the encoding %s; make one with ENCODING 'UTF8'", ErrUnfit, p.at.Database, encoding)
	case recovering == "t":
		return fmt.Errorf("%w: the server is in recovery and takes no changes (a standby?)", ErrUnavailable)
	}
	return nil
}

// connect opens a connection for a store that is open. A new writer takes the lock
// again, and refuses when another process had it meanwhile: what this one keeps in
// memory may be wrong since then.
func (p *postgres) connect(ctx context.Context, write bool) (conn, error) {
	c, err := p.dial(ctx)
	if err == nil && write {
		if err = p.regain(c); err != nil {
			_ = c.close()
		}
	}
	if err != nil && !errors.Is(err, ErrUnavailable) {
		// It was good once: whatever it is now, an open store takes it for a pause.
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (p *postgres) regain(c *link) error {
	if err := p.own(c); err != nil {
		return err
	}
	epoch, err := numberOf(c, "SELECT epoch FROM installation")
	if err == nil && epoch != p.epoch {
		err = fmt.Errorf("another process has worked on the schema %s meanwhile; start this one again", p.at.Schema)
	}
	return err
}

// own takes the lock of the schema or says who has it. It waits a moment: the
// server may not have noticed yet that the process before is gone.
func (p *postgres) own(c *link) error {
	err := c.command(fmt.Sprintf("BEGIN; SET LOCAL lock_timeout = '2s'; SELECT pg_advisory_lock(%d); COMMIT", p.lock))
	if err == nil {
		return nil
	}
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || refusal.Code != lockTimeout {
		return err
	}
	owned := &OwnedError{Schema: p.at.Schema}
	// Who it is comes at its start; before that nobody is named.
	_ = c.command(rollback)
	if there, err := numberOf(c, "SELECT count(*) FROM pg_class WHERE oid = to_regclass('installation')"); err == nil && there > 0 {
		_, _ = c.run("SELECT owner FROM installation", func(c cells) error { owned.Owner = c.text(0); return nil })
	}
	return owned
}

// enter writes down that this process has the schema now.
func (p *postgres) enter(c *link) error {
	_, err := c.run("UPDATE installation SET epoch = epoch + 1, owner = ? RETURNING epoch", func(c cells) error {
		p.epoch, _ = c.number(0)
		return nil
	}, p.owner)
	return err
}

// name changes what a second process is shown.
func (p *postgres) name(s *Store, text string) error {
	return s.Update(context.Background(), func(tx *Tx) error {
		_, err := tx.exec("UPDATE installation SET owner = ?", text)
		return err
	})
}

// numberOf reads one number.
func numberOf(c conn, query string, args ...any) (n int64, err error) {
	_, err = c.run(query, func(c cells) error {
		n, _ = c.number(0)
		return nil
	}, args...)
	return n, err
}

// beside ties the data directory to the schema: the ledger in it counts the syncs
// of this installation, and would be wrong for those of another.
func (s *Store) beside(c *link) error {
	if s.dir == "" {
		return nil
	}
	var id string
	if _, err := c.run("SELECT id FROM installation", func(c cells) error { id = c.text(0); return nil }); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if err := removeLeftovers(s.dir); err != nil {
		return err
	}
	return belongs(s.dir, id)
}
