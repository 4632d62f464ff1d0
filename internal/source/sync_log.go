package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// SyncLogTable is the table in StateSchema into which logs of syncs are written.
const SyncLogTable = "sync_log"

// LogRow is what became of one record of a run. ID is never the same for
// two of them, and the same when a row is written again.
type LogRow struct {
	ID                  string          `json:"log_id"`
	SyncID              int64           `json:"sync_id"`
	RunID               int64           `json:"sync_run_id"`
	Identifier          string          `json:"record_identifier"`
	Payload             json.RawMessage `json:"record_payload"`
	StartedAt           time.Time       `json:"batch_started_at"`
	CompletedAt         time.Time       `json:"batch_completed_at"`
	Operation           string          `json:"operation"`
	Status              string          `json:"status"`
	Message             *string         `json:"status_message"`
	LoggedAt            time.Time       `json:"_census_logged_at"`
	DestinationID       int64           `json:"destination_id"`
	DestinationObjectID string          `json:"destination_object_id"`
	SourceID            int64           `json:"source_id"`
	SourceObjectID      string          `json:"source_object_id"`
}

// logColumns are the columns of the table with their types in PostgreSQL and in an
// emulated warehouse.
var logColumns = []struct{ name, postgres, emulated string }{
	{"log_id", "text PRIMARY KEY", "TEXT PRIMARY KEY"}, {"sync_id", "bigint NOT NULL", "INTEGER"}, {"sync_run_id", "bigint NOT NULL", "INTEGER"},
	{"record_identifier", "text", "TEXT"}, {"record_payload", "json", "JSON"}, {"batch_started_at", "timestamptz", "DATETIME"},
	{"batch_completed_at", "timestamptz", "DATETIME"}, {"operation", "text", "TEXT"}, {"status", "text", "TEXT"}, {"status_message", "text", "TEXT"},
	{loggedAt, "timestamptz NOT NULL", "DATETIME"}, {"destination_id", "bigint", "INTEGER"}, {"destination_object_id", "text", "TEXT"},
	{"source_id", "bigint", "INTEGER"}, {"source_object_id", "text", "TEXT"},
}

// loggedAt is the column by which rows grow old.
const loggedAt = "_census_logged_at"

// SyncLog is the table of a source that can take logs.
type SyncLog interface {
	// Append adds rows; one that is there already stays.
	Append(ctx context.Context, rows []LogRow) error
	// Expire removes the rows that were logged before a moment.
	Expire(ctx context.Context, before time.Time) error
}

// LogIn is the log that a source keeps; false where it can keep none.
func LogIn(src Source) (SyncLog, bool) {
	switch s := src.(type) {
	case *postgres:
		return &postgresLog{PostgresState{p: s}}, true
	case *sqliteSource:
		if s.warehouse != nil {
			return &warehouseLog{s}, true
		}
	}
	return nil, false
}

// logText is rows as one JSON text. Databases take no NUL in a text.
func logText(rows []LogRow) (string, error) {
	for i := range rows {
		r := &rows[i]
		r.Identifier = strings.ReplaceAll(r.Identifier, "\x00", "\ufffd")
		if r.Message != nil && strings.Contains(*r.Message, "\x00") {
			clean := strings.ReplaceAll(*r.Message, "\x00", "\ufffd")
			r.Message = &clean
		}
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return "", fmt.Errorf("write log of sync: %w", err)
	}
	return string(text), nil
}

// postgresLog writes with the rights of the state of syncs.
type postgresLog struct{ PostgresState }

const postgresLogTable = StateSchema + "." + SyncLogTable

// change runs a statement on the table, which it makes where it is missing.
func (l *postgresLog) change(ctx context.Context, sql string, argument any) error {
	err := l.write(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		var schema, table bool
		err := conn.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL, to_regclass($2) IS NOT NULL", StateSchema, postgresLogTable).Scan(&schema, &table)
		if err == nil && !schema {
			_, err = conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+StateSchema)
		}
		if err == nil && !table {
			columns := make([]string, len(logColumns))
			for i, c := range logColumns {
				columns[i] = c.name + " " + c.postgres
			}
			_, err = conn.Exec(ctx, "CREATE TABLE IF NOT EXISTS "+postgresLogTable+" ("+strings.Join(columns, ", ")+")")
		}
		if err == nil {
			_, err = conn.Exec(ctx, sql, argument)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", postgresLogTable, err)
	}
	return nil
}

// Append implements SyncLog.
func (l *postgresLog) Append(ctx context.Context, rows []LogRow) error {
	text, err := logText(rows)
	if err != nil {
		return err
	}
	return l.change(ctx, "INSERT INTO "+postgresLogTable+" SELECT * FROM json_populate_recordset(NULL::"+postgresLogTable+", $1::text::json) ON CONFLICT (log_id) DO NOTHING", text)
}

// Expire implements SyncLog.
func (l *postgresLog) Expire(ctx context.Context, before time.Time) error {
	return l.change(ctx, "DELETE FROM "+postgresLogTable+" WHERE "+loggedAt+" < $1", before)
}

// warehouseLog is the table of an emulated warehouse.
type warehouseLog struct{ s *sqliteSource }

// warehouseLogTable is its name there: SQLite has no schemas.
var warehouseLogTable = quote(StateSchema + "." + SyncLogTable)

func (l *warehouseLog) change(ctx context.Context, sql string, argument any) error {
	err := l.s.with(ctx, func(conn *sqlite.Conn) (err error) {
		end, err := sqlitex.ImmediateTransaction(conn)
		if err != nil {
			return err
		}
		defer end(&err)
		columns := make([]string, len(logColumns))
		for i, c := range logColumns {
			columns[i] = c.name + " " + c.emulated
		}
		if err := sqlitex.ExecuteTransient(conn, "CREATE TABLE IF NOT EXISTS "+warehouseLogTable+" ("+strings.Join(columns, ", ")+")", nil); err != nil {
			return err
		}
		return sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{Args: []any{argument}})
	})
	if err != nil {
		return errors.Join(fmt.Errorf("write %s.%s", StateSchema, SyncLogTable), err)
	}
	return nil
}

// Append implements SyncLog.
func (l *warehouseLog) Append(ctx context.Context, rows []LogRow) error {
	text, err := logText(rows)
	if err != nil {
		return err
	}
	values := make([]string, len(logColumns))
	for i, c := range logColumns {
		arrow := "->>"
		if c.emulated == "JSON" {
			arrow = "->"
		}
		values[i] = "value " + arrow + " '" + c.name + "'"
	}
	return l.change(ctx, "INSERT OR IGNORE INTO "+warehouseLogTable+" SELECT "+strings.Join(values, ", ")+" FROM json_each(?1)", text)
}

// Expire implements SyncLog. Moments are compared as what they mean: their texts
// differ in the digits of a second.
func (l *warehouseLog) Expire(ctx context.Context, before time.Time) error {
	return l.change(ctx, "DELETE FROM "+warehouseLogTable+" WHERE julianday("+loggedAt+") < julianday(?1)", before.UTC().Format("2006-01-02T15:04:05.000Z"))
}
