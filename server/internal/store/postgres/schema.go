package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/destkit/destkit/server/internal/store/database"
	"github.com/destkit/destkit/server/internal/store/migrations"
	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// Options of a schema.
type Options struct {
	URL      string // see Parse
	Password string // goes with URL, unless that holds one
	// Folder is that of what lies beside the schema, and of a copy on its way; "": there
	// is none, and memory.
	Folder string
	// Skewed is called, by any goroutine, with how far the clock of the server is ahead of
	// this machine's: by Open, and whenever it differs by more than about 10 ms from what
	// was told before (0 at first). nil: it is of no use.
	Skewed func(ahead time.Duration)
}

// Keys are what a store keeps open of the keys in its schema, which another process may
// replace.
type Keys interface {
	// Check finds out whether the master key is the one of the schema.
	Check(c database.Conn) error
	// Epoch is the number of the replacement that the keys are good for: -1 before the first.
	Epoch() int64
	// Renew reads the keys of another epoch.
	Renew(epoch int64, query database.Query) error
}

// Schema is the engine of PostgreSQL. Any number of processes work on a schema;
// their changes wait for each other, by a lock that goes with the transaction.
type Schema struct {
	at     Address
	config *pgx.ConnConfig
	pool   *pgxpool.Pool // for statements of others; nil before the store is open
	peers  *peers        // nil as long
	folder string        // of Options
	lock   int64         // held by programs that had a schema to themselves; the next number is that of changes
	notify string        // the channel of the notices

	skew   atomic.Int64 // of the server's clock to this machine's, in nanoseconds
	skewed func(time.Duration)
}

// oldestServer is the oldest version that is taken, as server_version_num has it:
// gen_random_uuid needs it. Tests run with 15.
const oldestServer = 130000

// Size is a query for what the tables take with their indexes, in bytes.
const Size = `SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class
	WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'`

// New reads the settings; nothing is connected yet.
func New(o Options) (*Schema, error) {
	at, err := Parse(o.URL, o.Password)
	if err != nil {
		return nil, err
	}
	config, err := at.config()
	if err != nil {
		return nil, err
	}
	name := fnv.New64a()
	_, _ = name.Write([]byte("destkit store in schema " + at.Schema))
	return &Schema{
		at: at, config: config.ConnConfig, folder: o.Folder, skewed: o.Skewed,
		lock: int64(name.Sum64()), notify: fmt.Sprintf("destkit_%x", name.Sum64()),
	}, nil
}

// Open opens the schema, and makes it when it is missing, and gives the connection that
// writes. Others may do so at the same time. A visitor leaves a schema of an older program
// as it is, and refuses it (ErrUnfit).
func (p *Schema) Open(ctx context.Context, keys Keys, visitor bool) (*Conn, error) {
	c, err := p.dial(ctx, false)
	if err != nil {
		return nil, err
	}
	if err := p.open(ctx, c, keys, visitor); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (p *Schema) open(ctx context.Context, c *Conn, keys Keys, visitor bool) error {
	version, err := p.version(c)
	if err == nil && version > 0 {
		// A wrong key is noticed before anything is changed.
		err = keys.Check(c)
	}
	if err == nil && version < migrations.Version() {
		if visitor {
			return fmt.Errorf("%w: the schema %s is one of an older version; start the service of this version first, which brings it up to date", ErrUnfit, p.at.Schema)
		}
		err = p.migrate(c)
	}
	if err == nil {
		err = p.beside(c)
	}
	if err == nil {
		err = p.share(ctx, keys)
	}
	return err
}

// beside ties the data directory to the schema: the ledger in it counts the syncs
// of this installation, and would be wrong for those of another.
func (p *Schema) beside(c *Conn) error {
	if p.folder == "" {
		return nil
	}
	var id string
	if _, err := c.Run("SELECT id FROM installation", func(c database.Cells) error { id = c.Text(0); return nil }); err != nil {
		return err
	}
	return sqlite.Beside(p.folder, id, copyTime)
}

// share begins to hear the other processes, and to work with them.
func (p *Schema) share(ctx context.Context, keys Keys) error {
	config, err := p.at.config()
	if err != nil {
		return err
	}
	others := newPeers(keys, p)
	config.ConnConfig.Tracer = bounded(statementTime)
	// In a failover a connection may be made to the server that is about to be a
	// standby; the pool would keep it for as long as it works.
	config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	config.PrepareConn = func(context.Context, *pgx.Conn) (bool, error) { return true, others.guard() }
	if p.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err
	}
	p.peers = others
	others.begin(ctx)
	return nil
}

// dial opens a connection, to read for a while or for anything, and looks whether
// the server will do. Where all connections are taken, or the server is not up yet,
// it waits a little: others end soon.
func (p *Schema) dial(ctx context.Context, reads bool) (*Conn, error) {
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		c, err := p.attempt(ctx, reads)
		if err == nil || !errors.Is(err, ErrCrowded) || wait > 400*time.Millisecond {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(wait/2 + rand.N(wait)):
		}
	}
}

func (p *Schema) attempt(ctx context.Context, reads bool) (*Conn, error) {
	config := p.config
	if reads {
		// No one waits for who reads, and a copy takes as long as its reader does.
		config = config.Copy()
		config.RuntimeParams[idleTimeout] = "1min"
	}
	db, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		as := p.at.User
		if p.at.password == "" {
			as += " without a password"
		}
		return nil, fmt.Errorf("connect to %s port %d as %s: %w", p.at.Host, p.at.Port, as, explained(err))
	}
	c := &Conn{
		whole: db, db: db.PgConn(), known: map[string]*prepared{}, timeout: statementTime, channel: p.notify,
		lock: fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", p.lock+1),
	}
	if err := p.suits(c); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func (p *Schema) suits(c *Conn) error {
	var number, there int64
	var recovering, encoding string
	asked := time.Now()
	_, err := c.Run("SELECT current_setting('server_version_num'), pg_is_in_recovery(), current_setting('server_encoding'), "+serverTime, func(c database.Cells) error {
		number, _ = c.Number(0)
		recovering, encoding = c.Text(1), c.Text(2)
		there, _ = c.Number(3)
		return nil
	})
	if err == nil {
		p.compare(there, time.Since(asked))
	}
	switch {
	case err != nil:
		return err
	case number < oldestServer:
		return fmt.Errorf("%w: the server is PostgreSQL %s; version %d or later is needed", ErrUnfit, c.db.ParameterStatus("server_version"), oldestServer/10000)
	case encoding != "UTF8":
		return fmt.Errorf("%w: the database %s has the encoding %s; make one with ENCODING 'UTF8'", ErrUnfit, p.at.Database, encoding)
	case recovering == "t":
		return fmt.Errorf("%w: the server is in recovery and takes no changes; it becomes the primary, or the URL has to name that one", ErrUnavailable)
	}
	return nil
}

// serverTime is the clock of the server in microseconds.
const serverTime = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

// compare finds out how the clock of the server differs from this machine's, by the
// answer to a question that took so long: it is not known better than by half.
func (p *Schema) compare(there int64, took time.Duration) {
	ahead := time.UnixMicro(there).Sub(time.Now().Add(-took / 2))
	if old := time.Duration(p.skew.Load()); (ahead - old).Abs() > took/2+tolerated {
		p.skew.Store(int64(ahead))
		if p.skewed != nil {
			p.skewed(ahead)
		}
	}
}

// tolerated is the difference of two clocks that does not matter.
const tolerated = 10 * time.Millisecond

// Connect opens a connection for a store that is open, and looks whether the schema
// is still one that this program knows.
func (p *Schema) Connect(ctx context.Context, write bool) (database.Conn, error) {
	c, err := p.dial(ctx, !write)
	var at standing
	if err == nil {
		if at, err = c.look(); err == nil {
			p.peers.learn(at)
			err = p.peers.guard()
		}
		if err != nil {
			_ = c.Close()
		}
	}
	if err != nil && !errors.Is(err, ErrUnavailable) && !errors.Is(err, migrations.ErrNewer) {
		// It was good once: whatever it is now, an open store takes it for a pause.
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// numberOf reads one number.
func numberOf(c database.Conn, query string, args ...any) (n int64, err error) {
	_, err = c.Run(query, func(c database.Cells) error {
		n, _ = c.Number(0)
		return nil
	}, args...)
	return n, err
}
