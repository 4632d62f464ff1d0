package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/destkit/destkit/internal/keepalive"
)

// postgresStore keeps records in a schema of a PostgreSQL database, so that
// several simulators can be one destination (spec 4.2, statelessness rule 3).
// What a batch does is decided here, on rows that it has locked, and written in
// one transaction: the lock of a key is the lock of its row. Two batches that
// create one key at the same time meet at a unique index, and the later one is
// applied again (ErrAgain).
type postgresStore struct {
	pool   *pgxpool.Pool
	schema string
	class  int32 // of the advisory locks, by the name of the schema
	// slots leaves some connections for what is not a batch, such as looking at
	// the common state: a batch on its way never waits for another one to end.
	slots  chan struct{}
	life   context.Context // ends with Close
	end    context.CancelFunc
	shapes shapes

	mu    sync.Mutex
	known map[string]knownTable

	member sync.WaitGroup // the goroutine that keeps the membership
}

// knownTable is a table as this process has seen it; every unit looks again.
type knownTable struct {
	number  int32
	uniques []byte
}

// Limits of the store. Connections are those of one process.
const (
	postgresConnections = 20
	postgresApart       = 4 // connections that batches leave alone
	postgresOldest      = 130000
	// postgresPatience bounds a batch from its first statement to its commit, and
	// everything else but copies of the whole store. A connection of which nothing is
	// heard for so long is lost.
	postgresPatience = 30 * time.Second
	postgresRollback = 5 * time.Second
	defaultSchema    = "destsim"
)

// The second number of an advisory lock; those of tables follow after them.
const (
	lockWorld int32 = iota // shared: a batch or a copy; exclusive: everything is replaced
	lockStart              // who starts looks whether others run
	lockAlive              // shared by all that run
	lockTable = 16
)

// ErrAgain says that another batch was in the way: apply this one again.
var ErrAgain = errors.New("another batch has changed the same records")

// IsURL reports whether a store is one.
func IsURL(name string) bool {
	return strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://")
}

// CheckURL looks at the URL of a database without connecting.
func CheckURL(name string) error {
	_, _, err := parsePostgres(name)
	return err
}

// parsePostgres reads the URL. No error repeats it, since it holds a password.
func parsePostgres(name string) (*pgxpool.Config, string, error) {
	config, err := pgxpool.ParseConfig(name)
	if u, broken := url.Parse(name); err == nil && broken == nil {
		_, err = url.ParseQuery(u.RawQuery) // the driver leaves out what it cannot read
	}
	if err != nil {
		return nil, "", errors.New("the URL of the database is not one: use postgres://USER:PASSWORD@HOST:PORT/DATABASE, with %-escapes for odd characters in it, and only parameters that PostgreSQL knows")
	}
	params := config.ConnConfig.RuntimeParams
	// The service takes search_path for its --store.
	schema := cmp.Or(params["schema"], params["search_path"], defaultSchema)
	delete(params, "schema")
	if len(schema) > 63 || strings.HasPrefix(schema, "pg_") || strings.ContainsAny(schema, "\x00") {
		return nil, "", fmt.Errorf("schema %.64q cannot be one: use up to 63 characters, not beginning with pg_", schema)
	}
	params["search_path"] = pgx.Identifier{schema}.Sanitize()
	params["application_name"] = cmp.Or(params["application_name"], "destkit destsim")
	// Every statement goes by keys. Statistics of a table that was empty a moment
	// ago would have it read as a whole; and what looks dear would be compiled.
	for _, way := range []string{"enable_hashjoin", "enable_mergejoin", "enable_seqscan", "jit"} {
		params[way] = "off"
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = 10 * time.Second
	}
	config.ConnConfig.DialFunc = keepalive.Dialer(postgresPatience).DialContext
	config.PingTimeout = 2 * time.Second
	if !strings.Contains(name, "pool_max_conns=") {
		config.MaxConns = postgresConnections
	}
	if config.MaxConns < postgresApart+1 {
		return nil, "", fmt.Errorf("pool_max_conns must be %d or more: some connections are kept for what is not a batch", postgresApart+1)
	}
	return config, schema, nil
}

// openPostgres connects and makes or checks the schema.
func openPostgres(name string) (*postgresStore, error) {
	config, schema, err := parsePostgres(name)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &postgresStore{
		schema: schema, slots: make(chan struct{}, config.MaxConns-postgresApart), known: map[string]knownTable{},
	}
	s.class = classOf(schema)
	s.life, s.end = context.WithCancel(context.Background())
	if s.pool, err = pgxpool.NewWithConfig(s.life, config); err == nil {
		err = s.prepare()
	}
	if err != nil {
		if s.end(); s.pool != nil {
			s.pool.Close()
		}
		err = explainPostgres(err)
		if config.ConnConfig.Password == "" && strings.Contains(err.Error(), "password authentication failed") {
			err = fmt.Errorf("%w: none was given", err)
		}
		return nil, fmt.Errorf("open store in PostgreSQL: %w", err)
	}
	return s, nil
}

// classOf is the first number of the advisory locks of a schema.
func classOf(schema string) int32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte("destsim " + schema))
	return int32(h.Sum32())
}

// ErrAway marks errors of a database that does not answer, starts, or has no
// connection left.
var ErrAway = errors.New("the database does not answer")

// away is an error of that kind with words of its own.
type away struct{ error }

func (a away) Unwrap() error      { return a.error }
func (away) Is(target error) bool { return target == ErrAway }

// awayStates begin the SQLSTATEs that pass: connections, resources, a server that comes
// or goes, a transaction in which nothing happened while this process stood still.
var awayStates = []string{"08", "53", "57", "25P03"}

// explainPostgres says in one line what went wrong; the driver lists every
// attempt to connect, and who tried with which user.
func explainPostgres(err error) error {
	var server *pgconn.PgError
	var network *net.OpError
	switch {
	case err == nil || errors.Is(err, ErrAgain) || errors.Is(err, ErrClosed):
		return err
	case errors.As(err, &server):
		said := fmt.Errorf("PostgreSQL says: %s (SQLSTATE %s)", server.Message, server.Code)
		if slices.ContainsFunc(awayStates, func(state string) bool { return strings.HasPrefix(server.Code, state) }) {
			return away{said}
		}
		return said
	case errors.As(err, &network):
		return away{fmt.Errorf("cannot reach PostgreSQL: %s: %w", network.Op, network.Err)}
	case errors.Is(err, context.DeadlineExceeded):
		return away{fmt.Errorf("PostgreSQL did not answer within %s", postgresPatience)}
	case errors.Is(err, context.Canceled):
		return ErrClosed
	case pgconn.Timeout(err):
		return away{errors.New("PostgreSQL did not answer in time")}
	}
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		return fmt.Errorf("cannot connect to PostgreSQL: %w", errors.Unwrap(connect))
	}
	return err
}

// lost reports whether a statement may well succeed when everything that its
// transaction did is done again.
func lost(err error) bool {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return errors.Is(err, ErrAgain) || pgconn.SafeToRetry(err)
	}
	switch server.Code {
	case "23505", // another one has created the key meanwhile
		"40001", "40P01", // serialization failure, deadlock
		"55P03": // a lock that was not to be had in time
		return true
	}
	return false
}

// patient is the context of one piece of work.
func (s *postgresStore) patient() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.life, postgresPatience)
}

// Close ends what is under way and waits for it.
func (s *postgresStore) Close() error {
	s.end()
	s.member.Wait()
	s.pool.Close()
	return nil
}

// Restart drops all connections, as the end of the process would.
func (s *postgresStore) Restart() error {
	s.pool.Reset()
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.known)
	return nil
}

// Scan sees what is committed.
func (s *postgresStore) Scan(name string, after int64, limit int) ([]Row, int, error) {
	ctx, cancel := s.patient()
	defer cancel()
	found, total, err := s.scan(ctx, name, after, limit)
	if err != nil {
		return nil, 0, fmt.Errorf("scan store: %w", explainPostgres(err))
	}
	return found, total, nil
}

func (s *postgresStore) scan(ctx context.Context, name string, after int64, limit int) (found []Row, total int, err error) {
	ask := &pgx.Batch{}
	if limit > 0 {
		ask.Queue(`SELECT id, data FROM records WHERE tbl = (SELECT num FROM tables WHERE name = $1) AND id > $2 ORDER BY id LIMIT $3`,
			[]byte(name), after, limit).Query(func(rows pgx.Rows) error {
			found, err = pgx.CollectRows(rows, scanRow)
			return err
		})
	}
	ask.Queue(`SELECT count(*) FROM records WHERE tbl = (SELECT num FROM tables WHERE name = $1)`, []byte(name)).
		QueryRow(func(r pgx.Row) error { return r.Scan(&total) })
	return found, total, s.pool.SendBatch(ctx, ask).Close()
}

func scanRow(r pgx.CollectableRow) (out Row, err error) {
	err = r.Scan(&out.ID, &out.Data)
	return out, err
}

// Drop waits for the batches under way; those that follow find nothing.
func (s *postgresStore) Drop(name string) error {
	err := s.transaction(func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1, $2)", s.class, lockWorld); err != nil {
			return err
		}
		if name == "" {
			return empty(ctx, tx)
		}
		for _, t := range []string{"records", "keys"} {
			if _, err := tx.Exec(ctx, "DELETE FROM "+t+" WHERE tbl = (SELECT num FROM tables WHERE name = $1)", []byte(name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("drop table: %w", explainPostgres(err))
	}
	return nil
}

// empty removes everything; a few rows are removed faster one by one than with
// their files.
func empty(ctx context.Context, tx pgx.Tx) error {
	few := 0
	if err := tx.QueryRow(ctx, "SELECT count(*) FROM (SELECT FROM records LIMIT 1000) AS r").Scan(&few); err != nil {
		return err
	}
	if few == 1000 {
		_, err := tx.Exec(ctx, "TRUNCATE records, keys")
		return err
	}
	q := &pgx.Batch{}
	q.Queue("DELETE FROM records")
	q.Queue("DELETE FROM keys")
	return tx.SendBatch(ctx, q).Close()
}

// transaction runs fn in a transaction of its own.
func (s *postgresStore) transaction(fn func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, cancel := s.patient()
	defer cancel()
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return fn(ctx, tx) })
}

// ensure gives the number of a table and indexes it anew when its unique fields
// are not those that it is indexed by.
func (s *postgresStore) ensure(t *Table) (int32, []byte, error) {
	want := append([]byte{byte(len(t.Uniques))}, bytes.Join(t.Uniques, []byte{0})...)
	s.mu.Lock()
	known, is := s.known[t.Name]
	s.mu.Unlock()
	if is && bytes.Equal(known.uniques, want) {
		return known.number, want, nil
	}
	number := int32(0)
	err := s.transaction(func(ctx context.Context, tx pgx.Tx) (err error) {
		number, err = s.index(ctx, tx, t, want)
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	s.mu.Lock()
	s.known[t.Name] = knownTable{number, want}
	s.mu.Unlock()
	return number, want, nil
}

// forget makes the next unit look at a table again.
func (s *postgresStore) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, name)
}

// index makes a table known to all, and its index agree with its unique fields.
func (s *postgresStore) index(ctx context.Context, tx pgx.Tx, t *Table, want []byte) (number int32, err error) {
	ask := &pgx.Batch{}
	ask.Queue("SET LOCAL lock_timeout = '5s'") // a batch may hold the table and wait for this process
	ask.Queue("SELECT pg_advisory_xact_lock_shared($1, $2)", s.class, lockWorld)
	ask.Queue("INSERT INTO tables (name) VALUES ($1) ON CONFLICT (name) DO NOTHING", []byte(t.Name))
	ask.Queue("SELECT num FROM tables WHERE name = $1", []byte(t.Name)).QueryRow(func(r pgx.Row) error { return r.Scan(&number) })
	if err := tx.SendBatch(ctx, ask).Close(); err != nil {
		return 0, err
	}
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1, $2)", s.class, lockTable+number); err != nil {
		return 0, err
	}
	var have []byte
	if err := tx.QueryRow(ctx, "SELECT uniques FROM tables WHERE num = $1", number).Scan(&have); err != nil || bytes.Equal(have, want) {
		return number, err
	}
	if _, err := tx.Exec(ctx, "DELETE FROM keys WHERE tbl = $1", number); err != nil {
		return 0, err
	}
	if err := s.fillIndex(ctx, tx, t, number); err != nil {
		return 0, err
	}
	_, err = tx.Exec(ctx, "UPDATE tables SET uniques = $2 WHERE num = $1", number, want)
	return number, err
}

// fillIndex reads a table once, a page at a time.
func (s *postgresStore) fillIndex(ctx context.Context, tx pgx.Tx, t *Table, number int32) error {
	copies := map[digest]int32{}
	for after := int64(0); len(t.Uniques) > 0; {
		rows, err := tx.Query(ctx, "SELECT id, data FROM records WHERE tbl = $1 AND id > $2 ORDER BY id LIMIT 5000", number, after)
		if err != nil {
			return err
		}
		page, err := pgx.CollectRows(rows, scanRow)
		if err != nil || len(page) == 0 {
			return err
		}
		after = page[len(page)-1].ID
		var links [][]any
		for _, r := range page {
			for _, d := range digestsOf(number, t.Uniques, r.Data) {
				links = append(links, []any{d, copies[d], number, r.ID})
				copies[d]++
			}
		}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"keys"}, []string{"digest", "copy", "tbl", "id"}, pgx.CopyFromRows(links)); err != nil {
			return err
		}
	}
	return nil
}
