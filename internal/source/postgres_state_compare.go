package source

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/destkit/destkit/internal/source/internal/cell"
	"github.com/destkit/destkit/server/api"
)

// compareSQL is one comparison: one statement, so one snapshot of rows and
// state. found has every key of either side once, so that a key that stands
// twice is known before anything of it is handed out; the rows themselves are
// joined to the few keys that matter. Of what was sent before, a row only reports
// whether it is there.
//
//	1 NOT MATERIALIZED or MATERIALIZED  2 key  3 columns  4 their fingerprint  5 FROM  6 state
//	7 which keys are written  8 the columns of src  9 a NULL for each  10 which keys are gone
const compareSQL = `WITH src AS %[1]s (SELECT %[2]s AS k, %[4]s AS h%[3]s FROM %[5]s),
found AS MATERIALIZED (
	SELECT d.k, d.h, d.n, s.* FROM (SELECT k, min(h) AS h, count(*) AS n FROM src GROUP BY k) d
	FULL JOIN %[6]s s ON d.k = s.key)
SELECT * FROM (
SELECT 3::int4 AS kind, f.k, 0::int8 AS n, f.h, f.key IS NOT NULL AS has, f.known, f.rejected, f.deleted, f.record_print, f.row_print, CASE WHEN f.sent IS NOT NULL THEN '' END%[8]s
FROM found f JOIN src ON src.k = f.k WHERE f.n = 1 AND %[7]s
UNION ALL
SELECT 0, NULL, coalesce(sum(n), 0)::int8, (coalesce(sum(n) FILTER (WHERE k IS NULL), 0))::int8, NULL, NULL, NULL, NULL,
	(coalesce(sum(n) FILTER (WHERE k IS NOT NULL AND n > 1), 0))::int8,
	count(*) FILTER (WHERE n IS NULL), NULL%[9]s FROM found f
UNION ALL
SELECT 1, NULL, count(*) FILTER (WHERE k IS NOT NULL AND n = 1 AND %[7]s), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL%[9]s FROM found f
UNION ALL
(SELECT 2, k, n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL%[9]s FROM found WHERE k IS NOT NULL AND n > 1 ORDER BY k LIMIT 100)
UNION ALL
SELECT 4, key, NULL, NULL, true, known, rejected, deleted, record_print, row_print, sent%[9]s FROM found WHERE n IS NULL AND %[10]s
) u ORDER BY kind, k COLLATE "C"`

// fixedColumns are those before the cells of a row.
const fixedColumns = 11

// wholeSQL gives a state in key order.
const wholeSQL = `SELECT 5::int4, key, NULL::int8, NULL::int8, true, known, rejected, deleted, record_print, row_print, sent FROM %s ORDER BY key`

// Kinds of rows on the wire: those of StateRowKind, with the totals in two.
const (
	wireTotals    = 0
	wireWrites    = 1
	wireDuplicate = 2
	wireWrite     = 3
	wireGone      = 4
	wireWhole     = 5
)

// Read gives the differences that c asks for, in the order of their kinds and
// keys, or all entries in key order where c is nil. Memory does not grow with
// their number. The error is an ErrNotInSQL where the server cannot compute the
// keys as this program does.
func (s *PostgresState) Read(ctx context.Context, c *Comparison) (_ StateReader, err error) {
	conn, err := s.p.connect(ctx)
	if err != nil {
		return nil, s.p.clean(err)
	}
	defer func() {
		if err != nil {
			err = s.p.clean(err)
			closeConn(conn)
		}
	}()
	if err := begin(ctx, conn); err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, stateSettings); err != nil {
		return nil, readError(err)
	}
	r := &stateReader{p: s.p, conn: conn}
	sql := fmt.Sprintf(wholeSQL, s.table)
	if c != nil {
		if sql, err = s.compare(ctx, conn, c, r); err != nil {
			return nil, err
		}
	}
	described, err := conn.PgConn().Prepare(ctx, "", sql, nil)
	var server *pgconn.PgError
	const undefinedTable = "42P01"
	if c == nil && errors.As(err, &server) && server.Code == undefinedTable {
		closeConn(conn)
		return noState{}, nil
	}
	if err != nil {
		return nil, postgresQueryError(err)
	}
	formats := make([]int16, len(described.Fields))
	for i, f := range described.Fields {
		if i < fixedColumns {
			formats[i] = pgx.BinaryFormatCode
			continue
		}
		write, binary := postgresWriter(f.DataTypeOID)
		if r.structures[i-fixedColumns] {
			write, binary = appendJSONText, false
		}
		if binary {
			formats[i] = pgx.BinaryFormatCode
		}
		r.writers = append(r.writers, write)
	}
	r.row = cell.NewRow(len(r.writers))
	r.result = conn.PgConn().ExecPrepared(ctx, "", nil, nil, formats)
	return r, nil
}

// noState is a state that was never made.
type noState struct{}

// Next implements StateReader.
func (noState) Next() (StateRow, error) { return StateRow{}, io.EOF }

// Close implements StateReader.
func (noState) Close() error { return nil }

// compare makes the statement.
func (s *PostgresState) compare(ctx context.Context, conn *pgx.Conn, c *Comparison, r *stateReader) (string, error) {
	all, from, err := s.p.columns(ctx, conn, c.Object)
	if err != nil {
		return "", err
	}
	chosen, err := choose(c.Object, all, c.Columns, []string{c.Key})
	if err != nil {
		return "", err
	}
	types, err := postgresTypes(ctx, conn, all, chosen.wanted, from)
	if err != nil {
		return "", err
	}
	at := chosen.order[0]
	key := stateKey(conn, types[at], quote(c.Key), c.KeyText)
	if key == "" || isStructure(all[chosen.wanted[at]]) {
		return "", fmt.Errorf("compare by column %q: %w", c.Key, ErrNotInSQL)
	}
	var columns, names, nulls strings.Builder
	for i, column := range chosen.wanted[:chosen.width] {
		fmt.Fprintf(&columns, ", %s AS c%d", selectExpr(all[column]), i)
		fmt.Fprintf(&names, ", src.c%d", i)
		nulls.WriteString(", NULL")
		r.structures = append(r.structures, isStructure(all[column]))
	}
	// A query is run once: it may be expensive, and need not give the same rows
	// twice.
	once := "NOT MATERIALIZED"
	if c.Object.Query != "" {
		once = "MATERIALIZED"
	}
	return fmt.Sprintf(compareSQL, once, key, columns.String(), rowPrint(conn, all, chosen.wanted[:chosen.width], types),
		from, s.table, c.written(), names.String(), nulls.String(), fmt.Sprint(c.Gone)), nil
}

// postgresTypes are the types of some columns, by their numbers.
func postgresTypes(ctx context.Context, conn *pgx.Conn, all []api.Column, wanted []int, from string) (oids []uint32, err error) {
	names := make([]string, len(wanted))
	for i, column := range wanted {
		names[i] = quote(all[column].Name)
	}
	described, err := conn.PgConn().Prepare(ctx, "", "SELECT "+strings.Join(names, ", ")+" FROM "+from, nil)
	if err != nil {
		return nil, postgresQueryError(err)
	}
	for _, f := range described.Fields {
		oids = append(oids, f.DataTypeOID)
	}
	return oids, nil
}

// rowPrint is the expression of a row's fingerprint. Two values with the same
// one must be the same value as far as records go, so a type that takes
// different texts for equal (numeric, jsonb, texts by a collation) is hashed by
// its text, and floats by their bytes.
func rowPrint(conn *pgx.Conn, all []api.Column, wanted []int, types []uint32) string {
	var parts []string
	for i, column := range wanted {
		name := quote(all[column].Name)
		switch types[i] {
		case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.BoolOID, pgtype.DateOID, pgtype.TimestampOID, pgtype.TimestamptzOID,
			pgtype.UUIDOID, pgtype.ByteaOID:
		case pgtype.TextOID, pgtype.VarcharOID:
			name += ` COLLATE "C"`
		case pgtype.Float4OID:
			name = "float4send(" + name + ")"
		case pgtype.Float8OID:
			name = "float8send(" + name + ")"
		default:
			name += `::text COLLATE "C"`
		}
		parts = append(parts, name)
	}
	row := "ROW(" + strings.Join(parts, ", ") + ")"
	const hashesRecords = 14 // the first version that does
	major, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < hashesRecords {
		return "hashtextextended(" + row + `::text COLLATE "C", 0)`
	}
	return "hash_record_extended(" + row + ", 0)"
}

// written is the condition on a key that stands once. A superset is harmless:
// who asks decides by the record.
func (c *Comparison) written() string {
	switch {
	case c.Every:
		return "true"
	case c.Once:
		return "f.known IS NOT true"
	}
	condition := "f.key IS NULL OR f.rejected OR NOT f.known OR f.row_print <> f.h"
	if c.Sent {
		condition += " OR f.sent IS NULL"
	}
	return "(" + condition + ")"
}

// stateKey is the expression of a key's JSON text, in the order of its bytes, or
// "". Only types whose text is the same here and there are taken, and texts
// only while the server stores them in UTF-8, as to_json escapes bytes then as
// cell.AppendString does.
func stateKey(conn *pgx.Conn, oid uint32, column string, asText bool) string {
	switch oid {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID:
		if !asText {
			return column + `::text COLLATE "C"`
		}
		return `('"' || ` + column + `::text || '"') COLLATE "C"`
	case pgtype.UUIDOID:
		return `('"' || ` + column + `::text || '"') COLLATE "C"`
	case pgtype.TextOID, pgtype.VarcharOID:
		if conn.PgConn().ParameterStatus("server_encoding") == "UTF8" {
			return "to_json(" + column + `)::text COLLATE "C"`
		}
	}
	return ""
}

// stateReader reads the stream of one statement.
type stateReader struct {
	p          *postgres
	conn       *pgx.Conn
	result     *pgconn.ResultReader
	structures []bool
	writers    []func(dst, value []byte) []byte
	row        cell.Row
	totals     StateCounts
	written    int64
}

// Next implements StateReader.
func (r *stateReader) Next() (StateRow, error) {
	for {
		if !r.result.NextRow() {
			if _, err := r.result.Close(); err != nil {
				return StateRow{}, r.p.clean(readError(err))
			}
			if r.written != r.totals.Writes {
				return StateRow{}, fmt.Errorf("read rows: %d of %d rows came: the source gave other rows when it was read again in one statement", r.written, r.totals.Writes)
			}
			return StateRow{}, io.EOF
		}
		got, whole := r.decode(r.result.Values())
		if whole {
			return got, nil
		}
	}
}

// decode reads a row. The totals come in two, of which the first is kept back.
func (r *stateReader) decode(v [][]byte) (StateRow, bool) {
	number := func(i int) int64 {
		if len(v[i]) != 8 {
			return 0
		}
		return int64(binary.BigEndian.Uint64(v[i]))
	}
	flag := func(i int) bool { return len(v[i]) == 1 && v[i][0] == 1 }
	got := StateRow{
		Entry: StateEntry{Key: v[1], Known: flag(5), Rejected: flag(6), Deleted: flag(7), Record: number(8), Row: number(9), Sent: v[10]},
		Has:   flag(4),
	}
	switch binary.BigEndian.Uint32(v[0]) {
	case wireTotals:
		r.totals = StateCounts{Rows: number(2), Nulls: number(3), Duplicates: number(8), Gone: number(9)}
		return got, false
	case wireWrites:
		r.totals.Writes = number(2)
		return StateRow{Kind: StateTotals, Totals: r.totals}, true
	case wireDuplicate:
		got.Kind, got.Copies = StateDuplicate, number(2)
	case wireWrite:
		got.Kind, got.Print = StateWrite, number(3)
		got.Cells = r.cells(v[fixedColumns:])
		r.written++
	case wireGone:
		got.Kind = StateGone
	case wireWhole:
		got.Kind = StateWhole
	}
	return got, true
}

// cells writes the values of a row as JSON.
func (r *stateReader) cells(values [][]byte) [][]byte {
	r.row.Reset()
	for i, value := range values {
		if value == nil {
			r.row.Buf = append(r.row.Buf, cell.Null...)
		} else {
			r.row.Buf = r.writers[i](r.row.Buf, value)
		}
		r.row.End()
	}
	return r.row.Values()
}

// Close drops the connection where something is still coming.
func (r *stateReader) Close() error {
	if r.conn == nil {
		return nil
	}
	conn := r.conn
	r.conn = nil
	if conn.PgConn().IsBusy() {
		_ = conn.PgConn().Conn().Close()
		return nil
	}
	closeConn(conn)
	return nil
}
