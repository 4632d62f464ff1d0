package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
)

// applyEntries puts the pending entries over the state. An acknowledged record
// or delete replaces what was known; a refusal only marks it, since the
// destination still has what it acknowledged.
var applyEntries = []string{
	`UPDATE %[1]s s SET rejected = p.rejected, deleted = p.deleted, sent = CASE WHEN s.known OR p.sent IS NULL THEN s.sent ELSE p.sent END
	FROM pending p WHERE s.key = p.key AND NOT p.known AND NOT p.removed`,
	`DELETE FROM %[1]s s USING pending p WHERE s.key = p.key AND (p.known OR p.removed)`,
	`INSERT INTO %[1]s (` + stateColumns + `)
	SELECT ` + stateColumns + ` FROM pending p
	WHERE p.known OR p.rejected AND NOT EXISTS (SELECT FROM %[1]s s WHERE s.key = p.key)`,
}

// Apply puts a change over the state in one transaction. The same change may be
// applied again. The error is an ErrStateElsewhere where the state has another
// stamp, and an ErrStateReadOnly where the user may not write any more.
func (s *PostgresState) Apply(ctx context.Context, c StateChange) error {
	err := s.write(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if err := s.make(ctx, conn); err != nil {
			return err
		}
		if err := s.checkStamp(ctx, conn, &c); err != nil {
			return err
		}
		if c.Clear {
			if _, err := conn.Exec(ctx, "DELETE FROM "+s.table); err != nil {
				return err
			}
		}
		if c.Next != nil {
			if err := s.applyAll(ctx, conn, c.Next); err != nil {
				return err
			}
		}
		if err := s.note(ctx, conn, &c); err != nil {
			return err
		}
		if c.Crash != nil {
			c.Crash(false)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("apply to the state in the warehouse: %w", err)
	}
	if c.Crash != nil {
		c.Crash(true)
	}
	return nil
}

// checkStamp waits for others who apply, and looks whether the state is what
// they should have left.
func (s *PostgresState) checkStamp(ctx context.Context, conn *pgx.Conn, c *StateChange) error {
	var stamp string
	err := conn.QueryRow(ctx, "SELECT stamp FROM "+syncsTable+" WHERE name = $1 FOR UPDATE", s.name).Scan(&stamp)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		stamp = ""
	case err != nil:
		return err
	}
	if stamp != c.From && stamp != c.To {
		return ErrStateElsewhere
	}
	return nil
}

// applyAll copies the entries to the server and merges them there.
func (s *PostgresState) applyAll(ctx context.Context, conn *pgx.Conn, next func() (StateEntry, error)) error {
	_, err := conn.Exec(ctx, `CREATE TEMP TABLE pending (key text COLLATE "C", known boolean, rejected boolean, deleted boolean, removed boolean,
		record_print bigint, row_print bigint, sent text) ON COMMIT DROP`)
	if err != nil {
		return err
	}
	from := &entriesSource{next: next}
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"pending"}, []string{"key", "known", "rejected", "deleted", "removed", "record_print", "row_print", "sent"}, from)
	if err != nil {
		return err
	}
	if from.count == 0 {
		return nil
	}
	if _, err := conn.Exec(ctx, "ANALYZE pending"); err != nil {
		return err
	}
	for _, sql := range applyEntries {
		if _, err := conn.Exec(ctx, fmt.Sprintf(sql, s.table)); err != nil {
			return err
		}
	}
	const worthIt = 10_000 // entries after which the server's estimates are stale
	if from.count >= worthIt {
		_, err = conn.Exec(ctx, "ANALYZE "+s.table)
	}
	return err
}

// note writes the row of the sync.
func (s *PostgresState) note(ctx context.Context, conn *pgx.Conn, c *StateChange) error {
	text := func(raw json.RawMessage) *string {
		if raw == nil {
			return nil
		}
		t := string(raw)
		return &t
	}
	var damaged *string
	if c.Damaged != "" {
		damaged = &c.Damaged
	}
	_, err := conn.Exec(ctx, `INSERT INTO `+syncsTable+` AS s (name, format, stamp, run, rows, mapping, high_water, notes, damaged)
		VALUES ($1, $2, $3, $4, (SELECT count(*) FROM `+s.table+`), $5, $6, $7, $8)
		ON CONFLICT (name) DO UPDATE SET format = EXCLUDED.format, stamp = EXCLUDED.stamp, run = EXCLUDED.run, rows = EXCLUDED.rows,
		mapping = EXCLUDED.mapping, high_water = EXCLUDED.high_water, notes = EXCLUDED.notes, damaged = EXCLUDED.damaged, applied_at = now()`,
		s.name, stateFormat, c.To, c.Run, c.Mapping, text(c.HighWater), text(c.Notes), damaged)
	return err
}

// entriesSource feeds COPY one entry at a time.
type entriesSource struct {
	next  func() (StateEntry, error)
	count int64
	row   [8]any
	err   error
}

// Next implements pgx.CopyFromSource.
func (e *entriesSource) Next() bool {
	entry, err := e.next()
	if err != nil {
		if !errors.Is(err, io.EOF) {
			e.err = err
		}
		return false
	}
	e.count++
	e.row = [8]any{string(entry.Key), entry.Known, entry.Rejected, entry.Deleted, entry.Removed, entry.Record, entry.Row, nil}
	if entry.Sent != nil {
		e.row[7] = string(entry.Sent)
	}
	return true
}

// Values implements pgx.CopyFromSource.
func (e *entriesSource) Values() ([]any, error) { return e.row[:], nil }

// Err implements pgx.CopyFromSource.
func (e *entriesSource) Err() error { return e.err }
