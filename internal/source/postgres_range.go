package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

var _ Ranger = (*postgres)(nil)

// Range implements Ranger, for columns whose order the server can make that of
// the JSON texts. An index on a column of integers or of UUIDs is used.
func (p *postgres) Range(ctx context.Context, object Object, columns []string, of Range) (Rows, error) {
	return p.rows(ctx, object, columns, []string{of.Column}, &of)
}

// sampledPages is how many pages of a table are looked at.
const sampledPages = 256

// Sample looks at pages by chance, also of a table that was never analysed.
// Views are not cut: each part would compute the whole view.
func (p *postgres) Sample(ctx context.Context, object Object, column string) (values [][]byte, rows int64, err error) {
	if object.Query != "" {
		return nil, 0, nil
	}
	err = p.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		all, from, err := p.columns(ctx, conn, object)
		if err != nil {
			return err
		}
		chosen, err := choose(object, all, []string{column}, []string{column})
		if err != nil {
			return err
		}
		described, err := conn.PgConn().Prepare(ctx, "", "SELECT "+quote(column)+" FROM "+from, nil)
		if err != nil {
			return postgresQueryError(err)
		}
		if orderBy(conn, all, chosen, described.Fields) == "" {
			return nil
		}
		values, rows, err = samplePages(ctx, conn, from, "to_json("+quote(column)+")::text")
		return err
	})
	return values, rows, err
}

// samplePages reads some pages of what stands for a table in FROM.
func samplePages(ctx context.Context, conn *pgx.Conn, from, text string) (values [][]byte, rows int64, err error) {
	var kind string
	var pages float64
	err = conn.QueryRow(ctx, `SELECT relkind::text, (pg_relation_size(oid) + coalesce((
		SELECT sum(pg_relation_size(relid)) FROM pg_partition_tree(oid) WHERE relid <> oid), 0))::float8 / current_setting('block_size')::float8
		FROM pg_class WHERE oid = $1::text::regclass`, from).Scan(&kind, &pages)
	if err != nil {
		return nil, 0, fmt.Errorf("measure %s: %w", from, err)
	}
	if !strings.Contains("rpm", kind) {
		return nil, 0, nil
	}
	percent := min(100, 100*sampledPages/max(pages, 1))
	found, err := conn.Query(ctx, "SELECT "+text+" FROM "+from+" TABLESAMPLE SYSTEM ("+strconv.FormatFloat(percent, 'f', -1, 64)+")")
	if err != nil {
		return nil, 0, fmt.Errorf("sample %s: %w", from, err)
	}
	defer found.Close()
	for found.Next() {
		rows++
		if value := found.RawValues()[0]; value != nil {
			values = append(values, append([]byte(nil), value...))
		}
	}
	if err := found.Err(); err != nil {
		return nil, 0, fmt.Errorf("sample %s: %w", from, err)
	}
	return evenly(values), int64(float64(rows) * 100 / percent), nil
}

// where is the clause of a range, with its parameters.
func (r *Range) where(column string, field pgconn.FieldDescription) (clause string, parameters [][]byte, err error) {
	if r.From == nil && r.To == nil {
		return "", nil, nil
	}
	switch field.DataTypeOID {
	case pgtype.Int2OID:
		clause, err = r.integers(column, math.MinInt16, math.MaxInt16)
	case pgtype.Int4OID:
		clause, err = r.integers(column, math.MinInt32, math.MaxInt32)
	case pgtype.Int8OID:
		clause, err = r.integers(column, math.MinInt64, math.MaxInt64)
	case pgtype.UUIDOID:
		return r.compared(column, "::uuid", func(bound []byte) (text []byte, err error) {
			var s string
			err = json.Unmarshal(bound, &s)
			return []byte(s), err
		})
	default:
		return r.compared("to_json("+column+`)::text COLLATE "C"`, "", func(bound []byte) ([]byte, error) { return bound, nil })
	}
	if r.To == nil {
		clause = "(" + clause + " OR " + column + " IS NULL)"
	}
	return " WHERE " + clause, nil, err
}

// integers lists the stretches of numbers of a range: so an index is used.
func (r *Range) integers(column string, least, most int64) (string, error) {
	var some []string
	err := lanes(func(low, high int64, _ bool) error {
		if low, high = max(low, least), min(high, most); low > high {
			return nil
		}
		if low, high, ok := r.bounds(low, high); ok {
			some = append(some, fmt.Sprintf("%s BETWEEN (%d)::bigint AND (%d)::bigint", column, low, high))
		}
		return nil
	})
	if len(some) == 0 {
		some = []string{"FALSE"}
	}
	return "(" + strings.Join(some, " OR ") + ")", err
}

// compared compares an expression with the bounds as parameters.
func (r *Range) compared(expr, cast string, parameter func(bound []byte) ([]byte, error)) (string, [][]byte, error) {
	var parts []string
	var parameters [][]byte
	var errs []error
	add := func(bound []byte, sign string) {
		if bound == nil {
			return
		}
		value, err := parameter(bound)
		errs, parameters = append(errs, err), append(parameters, value)
		parts = append(parts, fmt.Sprintf("%s %s $%d%s", expr, sign, len(parameters), cast))
	}
	add(r.From, ">=")
	add(r.To, "<")
	clause := strings.Join(parts, " AND ")
	if r.To == nil {
		clause = "(" + clause + " OR (" + strings.TrimSuffix(expr, ` COLLATE "C"`) + ") IS NULL)"
	}
	return " WHERE " + clause, parameters, errors.Join(errs...)
}
