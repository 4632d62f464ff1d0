package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/destkit/destkit/internal/source/internal/cell"
	"github.com/destkit/destkit/server/api"
)

// Rows reads a table or a query with one statement, so in one snapshot. The
// server sorts where its order can be made that of the JSON texts; else rows
// are sorted on disk here.
func (p *postgres) Rows(ctx context.Context, object Object, columns, order []string) (_ Rows, err error) {
	ctx, watch := p.limits.watched(ctx)
	conn, err := p.connect(ctx)
	if err != nil {
		watch.stop()
		return nil, p.clean(err)
	}
	defer func() {
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			err = p.clean(err)
			watch.stop()
			closeConn(conn)
		}
	}()
	if err := begin(ctx, conn); err != nil {
		return nil, err
	}
	all, from, err := p.columns(ctx, conn, object)
	if err != nil {
		return nil, err
	}
	chosen, err := choose(object, all, columns, order)
	if err != nil {
		return nil, err
	}
	exprs := make([]string, len(chosen.wanted))
	for i, column := range chosen.wanted {
		exprs[i] = selectExpr(all[column])
	}
	sql := "SELECT " + strings.Join(exprs, ", ") + " FROM " + from
	described, err := conn.PgConn().Prepare(ctx, "", sql, nil)
	if err != nil {
		return nil, postgresQueryError(err)
	}
	r := &postgresRows{p: p, ctx: ctx, watch: watch, conn: conn, row: cell.NewRow(len(exprs))}
	formats := make([]int16, len(described.Fields))
	for i, f := range described.Fields {
		write, binary := postgresWriter(f.DataTypeOID)
		if isStructure(all[chosen.wanted[i]]) {
			write, binary = appendJSONText, false
		}
		if binary {
			formats[i] = pgx.BinaryFormatCode
		}
		r.writers = append(r.writers, write)
	}
	// The order needs the types, which only the first preparation tells.
	sorted := orderBy(conn, all, chosen, described.Fields)
	if sorted != "" {
		if _, err := conn.PgConn().Prepare(ctx, "", sql+sorted, nil); err != nil {
			return nil, postgresQueryError(err)
		}
	}
	r.result = conn.PgConn().ExecPrepared(ctx, "", nil, nil, formats)
	watch.opened()
	return arranged(ctx, r, chosen, sorted != "", p.scratch)
}

// isStructure tells columns that only the server can turn into JSON: arrays and
// composite values.
func isStructure(c api.Column) bool {
	return c.Kind == api.KindArray || c.Kind == api.KindObject && c.Type != "json" && c.Type != "jsonb"
}

// selectExpr leaves structures to the server, which knows their element types.
func selectExpr(c api.Column) string {
	if isStructure(c) {
		return "to_json(" + quote(c.Name) + ")::text"
	}
	return quote(c.Name)
}

// orderBy is the clause that makes the server sort as the JSON texts sort, or
// "". Its to_json escapes as cell.AppendString does; that only holds while texts are
// stored in UTF-8. NULL comes last there, as null does behind digits and quotes.
func orderBy(conn *pgx.Conn, all []api.Column, chosen selection, fields []pgconn.FieldDescription) string {
	if len(chosen.order) == 0 || conn.PgConn().ParameterStatus("server_encoding") != "UTF8" {
		return ""
	}
	var exprs []string
	for _, at := range chosen.order {
		name := quote(all[chosen.wanted[at]].Name)
		switch fields[at].DataTypeOID {
		case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.UUIDOID:
			exprs = append(exprs, name+`::text COLLATE "C"`)
		case pgtype.TextOID, pgtype.VarcharOID:
			if isStructure(all[chosen.wanted[at]]) {
				return ""
			}
			exprs = append(exprs, "to_json("+name+`)::text COLLATE "C"`)
		default:
			return ""
		}
	}
	return " ORDER BY " + strings.Join(exprs, ", ")
}

// postgresRows reads the stream of one statement.
type postgresRows struct {
	p       *postgres
	ctx     context.Context
	watch   *watch
	conn    *pgx.Conn
	result  *pgconn.ResultReader
	writers []func(dst, value []byte) []byte
	row     cell.Row
}

// Next implements Rows. The end is where errors of the server show.
func (r *postgresRows) Next() ([][]byte, error) {
	r.watch.enter()
	more := r.result.NextRow()
	r.watch.leave()
	if !more {
		if _, err := r.result.Close(); err != nil {
			if r.ctx.Err() != nil {
				err = context.Cause(r.ctx)
			}
			return nil, r.p.clean(readError(err))
		}
		return nil, io.EOF
	}
	r.row.Reset()
	for i, value := range r.result.Values() {
		if i >= len(r.writers) {
			break
		}
		if value == nil {
			r.row.Buf = append(r.row.Buf, cell.Null...)
		} else {
			r.row.Buf = r.writers[i](r.row.Buf, value)
		}
		r.row.End()
	}
	return r.row.Values(), nil
}

// readError keeps what the server says and drops its code.
func readError(err error) error {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return fmt.Errorf("read rows: %s", server.Message)
	}
	return fmt.Errorf("read rows: %w", err)
}

// Close may be called again, and in the middle: the connection is dropped then,
// since reading the rest could take hours.
func (r *postgresRows) Close() error {
	if r.conn == nil {
		return nil
	}
	r.watch.stop()
	conn := r.conn
	r.conn = nil
	if r.result != nil && conn.PgConn().IsBusy() {
		_ = conn.PgConn().Conn().Close()
		return nil
	}
	closeConn(conn)
	return nil
}
