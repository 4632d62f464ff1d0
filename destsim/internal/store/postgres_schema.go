package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// postgresVersion is raised whenever an older program could misread the schema.
const postgresVersion = 1

// postgresSchema: keys is the index over the unique fields. A key may be of any
// length and an entry of an index may not, so a digest stands for it. copy is 0
// for all but the further rows of a key, which only broken rules make: so two
// batches that create the same key meet there. buckets are the limits that all
// simulators have in common; losing them in a crash does no harm.
const postgresSchema = `
CREATE TABLE destination (one boolean PRIMARY KEY DEFAULT true CHECK (one), version integer NOT NULL,
	base bytea, state bytea, state_version bigint NOT NULL DEFAULT 0);
CREATE TABLE tables (num integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name bytea NOT NULL UNIQUE, uniques bytea);
CREATE SEQUENCE record_ids;
CREATE TABLE records (tbl integer NOT NULL, id bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (tbl, id)) WITH (fillfactor = 85);
CREATE TABLE keys (digest uuid NOT NULL, copy integer NOT NULL, tbl integer NOT NULL, id bigint NOT NULL, PRIMARY KEY (digest, copy));
CREATE UNLOGGED TABLE buckets (name bytea PRIMARY KEY, tokens double precision NOT NULL, at timestamptz NOT NULL) WITH (fillfactor = 20);
`

// prepare makes the schema, or checks that it is one that this program knows.
func (s *postgresStore) prepare() error {
	return s.transaction(func(ctx context.Context, tx pgx.Tx) error {
		var server int
		if err := tx.QueryRow(ctx, "SELECT current_setting('server_version_num')::integer").Scan(&server); err != nil {
			return err
		}
		if err := checkServer(server); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1, $2)", s.class, lockStart); err != nil {
			return err
		}
		there, empty, err := s.look(ctx, tx)
		switch {
		case err != nil && !errors.Is(err, pgx.ErrNoRows):
			return err
		case there:
			return s.checkVersion(ctx, tx)
		case err == nil && !empty:
			return s.foreign()
		}
		return s.create(ctx, tx, err != nil)
	})
}

// look reports whether the schema is that of a destination, or empty; ErrNoRows when
// there is none.
func (s *postgresStore) look(ctx context.Context, tx pgx.Tx) (there, empty bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'destination' AND relnamespace = n.oid),
		NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid) FROM pg_namespace n WHERE nspname = $1`, s.schema).Scan(&there, &empty)
	return there, empty, err
}

func (s *postgresStore) foreign() error {
	return fmt.Errorf("schema %q holds something else: give the destination one of its own, ?schema=NAME", s.schema)
}

// create makes the schema; one that is there and empty is taken.
func (s *postgresStore) create(ctx context.Context, tx pgx.Tx, missing bool) error {
	if missing {
		var may bool
		var user, database string
		if err := tx.QueryRow(ctx, `SELECT has_database_privilege(current_database(), 'CREATE'), current_user, current_database()`).Scan(&may, &user, &database); err != nil {
			return err
		}
		if !may {
			return fmt.Errorf("%s may make no schema in it: GRANT CREATE ON DATABASE %s TO %[1]s, or CREATE SCHEMA %[3]s AUTHORIZATION %[1]s", user, database, s.schema)
		}
		if _, err := tx.Exec(ctx, "CREATE SCHEMA "+pgx.Identifier{s.schema}.Sanitize()); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, postgresSchema); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "INSERT INTO destination (version) VALUES ($1)", postgresVersion)
	return err
}

// checkServer refuses a server that lacks what the statements need; 13 is the
// oldest that is tried.
func checkServer(version int) error {
	if version < postgresOldest {
		return fmt.Errorf("PostgreSQL is of version %d.%d: 13 or newer is needed", version/10000, version%100)
	}
	return nil
}

func (s *postgresStore) checkVersion(ctx context.Context, tx pgx.Tx) error {
	var version int
	err := tx.QueryRow(ctx, "SELECT version FROM destination").Scan(&version)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("schema %q is not that of a simulated destination, or was emptied: use another one, ?schema=NAME", s.schema)
	case err == nil && version != postgresVersion:
		return fmt.Errorf("schema %q is of version %d, which another version of the program has written; this one knows version %d: use that program, or another schema, ?schema=NAME", s.schema, version, postgresVersion)
	}
	return err
}

// ErrOtherBase: two configurations cannot be one destination.
var ErrOtherBase = errors.New("another simulator runs on this schema with other objects, speed or limits: start all of them with the same configuration, or give this one a schema of its own, ?schema=NAME")

// Join makes this process one of those that are the destination, until Close.
// The first one calls first, and starts from its configuration base; a further
// one has to have the same, and takes over what is in force.
func (s *postgresStore) Join(base []byte, first func() error) error {
	ctx, cancel := s.patient()
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err == nil {
		if err = s.join(ctx, conn, base, first); err != nil {
			closeConnection(conn)
		}
	}
	if err != nil {
		return fmt.Errorf("join the simulators of the schema: %w", explainPostgres(err))
	}
	s.member.Go(func() { s.stay(conn) })
	return nil
}

func (s *postgresStore) join(ctx context.Context, conn *pgx.Conn, base []byte, first func() error) error {
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1, $2)", s.class, lockStart); err != nil {
		return err
	}
	alone, err := s.alone(ctx, conn, base)
	if err != nil {
		return err
	}
	if alone {
		if _, err := conn.Exec(ctx, "UPDATE destination SET base = $1", base); err != nil {
			return err
		}
		if err := first(); err != nil {
			return err
		}
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock_shared($1, $2)", s.class, lockAlive); err != nil {
		return err
	}
	if alone {
		if _, err := conn.Exec(ctx, "SELECT pg_advisory_unlock($1, $2)", s.class, lockAlive); err != nil {
			return err
		}
	}
	_, err = conn.Exec(ctx, "SELECT pg_advisory_unlock($1, $2)", s.class, lockStart)
	return err
}

// leaving is how long a server may take to notice that a simulator has ended.
const leaving = 2 * time.Second

// alone reports whether no other simulator runs; then it holds the lock of those that do,
// for itself. Others have the same base, or it is an error. One that has just ended is
// waited for: its connection outlives it for a moment.
func (s *postgresStore) alone(ctx context.Context, conn *pgx.Conn, base []byte) (alone bool, err error) {
	for until := time.Now().Add(leaving); ; {
		if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1, $2)", s.class, lockAlive).Scan(&alone); alone || err != nil {
			return alone, err
		}
		var have []byte
		if err := conn.QueryRow(ctx, "SELECT base FROM destination").Scan(&have); err != nil || bytes.Equal(have, base) {
			return false, err
		}
		if time.Now().After(until) {
			return false, ErrOtherBase
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stay holds the lock of those that run, and takes it again when the server was
// away.
func (s *postgresStore) stay(conn *pgx.Conn) {
	for s.life.Err() == nil {
		if conn != nil {
			_, _ = conn.WaitForNotification(s.life) // ends with the connection: no one notifies
			closeConnection(conn)
		}
		ctx, cancel := s.patient()
		var err error
		if conn, err = pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig); err == nil {
			_, err = conn.Exec(ctx, "SELECT pg_advisory_lock_shared($1, $2)", s.class, lockAlive)
		}
		cancel()
		if err != nil {
			if conn != nil {
				closeConnection(conn)
				conn = nil
			}
			select {
			case <-s.life.Done():
			case <-time.After(time.Second):
			}
		}
	}
	if conn != nil {
		closeConnection(conn)
	}
}

// closeConnection takes leave of the server, whatever became of the context.
func closeConnection(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}
