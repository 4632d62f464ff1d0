package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// stateFormat is the version of the tables. Another one is not believed.
const stateFormat = 1

// syncsTable has a row for each sync; people may read it.
const syncsTable = `destkit.syncs`

const makeSyncs = `CREATE TABLE IF NOT EXISTS ` + syncsTable + ` (
	name text PRIMARY KEY, format integer NOT NULL, stamp text NOT NULL, run bigint NOT NULL, rows bigint NOT NULL,
	mapping text NOT NULL, high_water text, notes text, damaged text, applied_at timestamptz NOT NULL DEFAULT now())`

// makeState has no index: every comparison reads all of it, and a key may be
// longer than an index takes.
const makeState = ` (
	key text COLLATE "C" NOT NULL, known boolean NOT NULL, rejected boolean NOT NULL, deleted boolean NOT NULL,
	record_print bigint NOT NULL, row_print bigint NOT NULL, sent text)`

const stateColumns = "key, known, rejected, deleted, record_print, row_print, sent"

// stateSettings make the text of values, of which fingerprints are made, the
// same in every session, and let the server join by hashes, since a merge would
// sort whole rows.
const stateSettings = `SET LOCAL datestyle = 'ISO, MDY'; SET LOCAL intervalstyle = 'postgres'; SET LOCAL extra_float_digits = 1;
SET LOCAL bytea_output = 'hex'; SET LOCAL jit = off; SET LOCAL work_mem = '64MB'; SET LOCAL enable_mergejoin = off; SET LOCAL lock_timeout = '30s'`

// write lends a connection in a transaction that may write, and commits it.
func (s *PostgresState) write(ctx context.Context, use func(context.Context, *pgx.Conn) error) error {
	conn, err := s.p.connect(ctx)
	if err != nil {
		return s.p.clean(err)
	}
	defer closeConn(conn)
	_, err = conn.Exec(ctx, "BEGIN READ WRITE; "+stateSettings)
	if err == nil {
		err = use(ctx, conn)
	}
	if err == nil {
		_, err = conn.Exec(ctx, "COMMIT")
	}
	return s.p.clean(s.explain(err))
}

// explain says what to do where the user of the connection may not write.
func (s *PostgresState) explain(err error) error {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return err
	}
	const insufficientPrivilege, readOnlyTransaction = "42501", "25006"
	if server.Code != insufficientPrivilege && server.Code != readOnlyTransaction {
		return fmt.Errorf("%s (%s)", server.Message, server.Code)
	}
	user := s.p.s.text("username")
	return fmt.Errorf("%w: %s: the advanced engine keeps it in the schema %s: run CREATE SCHEMA %s AUTHORIZATION %s, or use a source with sync_engine basic",
		ErrStateReadOnly, server.Message, StateSchema, StateSchema, quote(user))
}

// make makes what is missing. The schema may have been made for a user who
// may not, so it is looked for first.
func (s *PostgresState) make(ctx context.Context, conn *pgx.Conn) error {
	const makersLock = 0x6465_7374_6b69_74 // "destkit"
	var exists bool
	err := conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", syncsTable).Scan(&exists)
	if err == nil && !exists { // two syncs may come here at once
		_, err = conn.Exec(ctx, fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", makersLock))
	}
	if err != nil {
		return err
	}
	if err := conn.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL", StateSchema).Scan(&exists); err != nil {
		return err
	}
	if !exists {
		if _, err := conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+StateSchema); err != nil {
			return err
		}
	}
	var syncs, state bool
	err = conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL, to_regclass($2) IS NOT NULL", syncsTable, s.table).Scan(&syncs, &state)
	if err == nil && !syncs {
		_, err = conn.Exec(ctx, makeSyncs)
	}
	if err == nil && !state {
		_, err = conn.Exec(ctx, "CREATE TABLE "+s.table+makeState)
	}
	return err
}

// try makes the tables and takes everything back.
func (s *PostgresState) try(ctx context.Context) error {
	errDone := errors.New("all is well")
	err := s.write(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if err := s.make(ctx, conn); err != nil {
			return err
		}
		if err := s.mayWrite(ctx, conn); err != nil {
			return err
		}
		return errDone // the connection is closed, and the transaction with it
	})
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

// mayWrite asks for the rights on tables that are there already, before a run
// has sent anything that it could not note.
func (s *PostgresState) mayWrite(ctx context.Context, conn *pgx.Conn) error {
	var may bool
	err := conn.QueryRow(ctx, `SELECT bool_and(has_table_privilege(t::regclass, r)) FROM unnest($1::text[]) AS t, unnest($2::text[]) AS r`,
		[]string{syncsTable, s.table}, []string{"SELECT", "INSERT", "UPDATE", "DELETE"}).Scan(&may)
	if err == nil && !may {
		err = &pgconn.PgError{Code: "42501", Message: "permission denied for tables of the schema " + StateSchema}
	}
	return err
}

// Open makes what is missing and says what the state knows of itself. The error
// is an ErrStateReadOnly where the user may not write it.
func (s *PostgresState) Open(ctx context.Context) (info StateInfo, err error) {
	err = s.write(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		info, err = s.open(ctx, conn)
		return err
	})
	if err != nil {
		return info, fmt.Errorf("open the state in the warehouse: %w", err)
	}
	return info, nil
}

// Look says what Open would, and takes back what that makes: the transaction is
// never committed.
func (s *PostgresState) Look(ctx context.Context) (info StateInfo, err error) {
	errDone := errors.New("all is well")
	err = s.write(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		if info, err = s.open(ctx, conn); err != nil {
			return err
		}
		return errDone // the connection is closed, and the transaction with it
	})
	if !errors.Is(err, errDone) {
		return info, fmt.Errorf("open the state in the warehouse: %w", err)
	}
	return info, nil
}

func (s *PostgresState) open(ctx context.Context, conn *pgx.Conn) (info StateInfo, err error) {
	if err := conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int / 10000").Scan(&info.Version); err != nil {
		return info, err
	}
	if err := s.make(ctx, conn); err != nil {
		return info, err
	}
	if err := s.mayWrite(ctx, conn); err != nil {
		return info, err
	}
	err = s.read(ctx, conn, &info)
	return info, err
}

// read compares the table with what is noted of it.
func (s *PostgresState) read(ctx context.Context, conn *pgx.Conn, info *StateInfo) error {
	if err := s.checkShape(ctx, conn, info); err != nil {
		return err
	}
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM "+s.table).Scan(&info.Rows); err != nil {
		return err
	}
	var format int
	var rows int64
	var notes *string
	err := conn.QueryRow(ctx, "SELECT format, stamp, run, rows, notes FROM "+syncsTable+" WHERE name = $1", s.name).
		Scan(&format, &info.Stamp, &info.Run, &rows, &notes)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		info.Fresh = info.Rows == 0 && info.Broken == ""
		if !info.Fresh && info.Broken == "" {
			info.Broken = "the state in the warehouse has no row in " + syncsTable
		}
		return nil
	case err != nil:
		return err
	}
	if notes != nil {
		info.Notes = json.RawMessage(*notes)
	}
	switch {
	case info.Broken != "":
	case format != stateFormat:
		info.Broken = fmt.Sprintf("the state in the warehouse has the format %d, not %d", format, stateFormat)
	case rows != info.Rows:
		info.Broken = fmt.Sprintf("the state in the warehouse has %d of %d entries", info.Rows, rows)
	}
	return nil
}

// checkShape makes the table anew when its columns were changed: what
// is in it cannot be read any more.
func (s *PostgresState) checkShape(ctx context.Context, conn *pgx.Conn, info *StateInfo) error {
	if _, err := conn.Exec(ctx, "SAVEPOINT shape"); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, "SELECT "+stateColumns+" FROM "+s.table+" LIMIT 0")
	var server *pgconn.PgError
	const undefinedColumn = "42703"
	if err == nil || !errors.As(err, &server) || server.Code != undefinedColumn {
		return err
	}
	info.Broken = "the table of the state in the warehouse was changed"
	_, err = conn.Exec(ctx, "ROLLBACK TO shape; DROP TABLE "+s.table+"; CREATE TABLE "+s.table+makeState)
	return err
}

// Drop deletes the state and what is noted of it, for a sync that is no more. A
// state that was never made is no error.
func (s *PostgresState) Drop(ctx context.Context) error {
	err := s.write(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		var exists bool
		if err := conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", syncsTable).Scan(&exists); err != nil || !exists {
			return err
		}
		if _, err := conn.Exec(ctx, "DROP TABLE IF EXISTS "+s.table); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, "DELETE FROM "+syncsTable+" WHERE name = $1", s.name)
		return err
	})
	if err != nil {
		return fmt.Errorf("drop the state in the warehouse: %w", err)
	}
	return nil
}
