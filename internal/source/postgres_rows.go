package source

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
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
	// The order needs the types, which are known after the first preparation.
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

// isStructure reports columns that only the server can turn into JSON: arrays
// and composite values.
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

// readError keeps the server's message and drops its code.
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

// postgresWriter turns a value as the server sends it into JSON, and reports
// whether the binary form is requested. A type that is not known here reads as
// its text.
func postgresWriter(oid uint32) (write func(dst, value []byte) []byte, binaryForm bool) {
	switch oid {
	case pgtype.BoolOID:
		return func(dst, v []byte) []byte { return cell.AppendBool(dst, len(v) == 1 && v[0] == 1) }, true
	case pgtype.Int2OID:
		return func(dst, v []byte) []byte {
			return strconv.AppendInt(dst, int64(int16(binary.BigEndian.Uint16(v))), 10)
		}, true
	case pgtype.Int4OID:
		return func(dst, v []byte) []byte {
			return strconv.AppendInt(dst, int64(int32(binary.BigEndian.Uint32(v))), 10)
		}, true
	case pgtype.Int8OID:
		return func(dst, v []byte) []byte { return strconv.AppendInt(dst, int64(binary.BigEndian.Uint64(v)), 10) }, true
	case pgtype.OIDOID:
		return func(dst, v []byte) []byte { return strconv.AppendUint(dst, uint64(binary.BigEndian.Uint32(v)), 10) }, true
	case pgtype.Float4OID:
		return func(dst, v []byte) []byte {
			return cell.AppendFloat(dst, float64(math.Float32frombits(binary.BigEndian.Uint32(v))), 32)
		}, true
	case pgtype.Float8OID:
		return func(dst, v []byte) []byte {
			return cell.AppendFloat(dst, math.Float64frombits(binary.BigEndian.Uint64(v)), 64)
		}, true
	case pgtype.NumericOID:
		return appendNumeric, true
	case pgtype.DateOID:
		return appendPostgresDate, true
	case pgtype.TimestampOID:
		return func(dst, v []byte) []byte { return appendPostgresMoment(dst, v, "") }, true
	case pgtype.TimestamptzOID:
		return func(dst, v []byte) []byte { return appendPostgresMoment(dst, v, "Z") }, true
	case pgtype.JSONOID:
		return appendJSONText, false
	case pgtype.JSONBOID:
		return appendJSONText, false
	case pgtype.ByteaOID:
		return cell.AppendBinary, true
	case pgtype.UUIDOID:
		return cell.AppendUUID, true
	}
	return func(dst, v []byte) []byte { return cell.AppendString(dst, v) }, false
}

// appendJSONText writes what the server holds as JSON. Its json may be of
// another form than ours, and in an old database not even valid.
func appendJSONText(dst, text []byte) []byte { return cell.AppendEmbedded(dst, json.RawMessage(text)) }

// appendNumeric writes a decimal from its digits of base 10,000: their number,
// the weight of the first, the sign, the places after the point, the digits.
func appendNumeric(dst, v []byte) []byte {
	digits, weight := int(binary.BigEndian.Uint16(v)), int(int16(binary.BigEndian.Uint16(v[2:])))
	sign, scale := binary.BigEndian.Uint16(v[4:]), int(binary.BigEndian.Uint16(v[6:]))
	switch sign {
	case 0xc000:
		return append(dst, `"NaN"`...)
	case 0xd000:
		return append(dst, `"Infinity"`...)
	case 0xf000:
		return append(dst, `"-Infinity"`...)
	case 0x4000:
		dst = append(dst, '-')
	}
	group := func(place int) int { // of 10,000 to the power of place
		if i := weight - place; i >= 0 && i < digits {
			return int(binary.BigEndian.Uint16(v[8+2*i:]))
		}
		return 0
	}
	dst = strconv.AppendInt(dst, int64(group(max(weight, 0))), 10)
	for place := weight - 1; place >= 0; place-- {
		dst = cell.AppendPadded(dst, group(place), 4)
	}
	if scale == 0 {
		return dst
	}
	dst = append(dst, '.')
	end := len(dst) + scale
	for place := -1; len(dst) < end; place-- {
		dst = cell.AppendPadded(dst, group(place), 4)
	}
	return dst[:end]
}

// Days and times count from 2000-01-01; the ends of the range are infinite.
const (
	postgresEpochDays    = 10957
	postgresEpochSeconds = postgresEpochDays * 86400
)

// appendPostgresDate: days since 2000, with two values for the infinities,
// which are texts here as in the server's own output.
func appendPostgresDate(dst, v []byte) []byte {
	switch days := int32(binary.BigEndian.Uint32(v)); days {
	case math.MaxInt32:
		return append(dst, `"infinity"`...)
	case math.MinInt32:
		return append(dst, `"-infinity"`...)
	default:
		return append(cell.AppendDate(append(dst, '"'), int64(days)+postgresEpochDays), '"')
	}
}

// appendPostgresMoment: microseconds since 2000; zone is Z, or nothing for a
// type without one.
func appendPostgresMoment(dst, v []byte, zone string) []byte {
	switch micros := int64(binary.BigEndian.Uint64(v)); micros {
	case math.MaxInt64:
		return append(dst, `"infinity"`...)
	case math.MinInt64:
		return append(dst, `"-infinity"`...)
	default:
		dst = cell.AppendTimestamp(append(dst, '"'), micros+postgresEpochSeconds*1_000_000, 1_000_000)
		return append(append(dst, zone...), '"')
	}
}
