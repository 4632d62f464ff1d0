package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/internal/handles"
	"github.com/destkit/destkit/internal/source/internal/cell"
	"github.com/destkit/destkit/internal/source/rowsort"
	"github.com/destkit/destkit/server/api"
)

// Rows reads a table or a query in one transaction. In the order of the table's
// integer primary key nothing is sorted; else rows are sorted on disk.
func (s *sqliteSource) Rows(ctx context.Context, object Object, columns, order []string) (_ Rows, err error) {
	defer s.tidy(&err)()
	ctx, watch := s.options.Limits.watched(ctx)
	conn, err := s.connect(ctx)
	if err != nil {
		watch.stop()
		return nil, err
	}
	r := &sqliteRows{s: s, ctx: ctx, watch: watch, conn: conn, text: make([]byte, 512), most: s.options.Limits.withDefaults().Row, wait: rowsort.Wait(ctx)}
	defer func() {
		if err != nil {
			err = errors.Join(r.explain(err), r.Close())
		}
	}()
	if err := sqlitex.ExecuteTransient(conn, "BEGIN", nil); err != nil {
		return nil, err
	}
	if r.wide, err = isWide(conn); err != nil {
		return nil, err
	}
	if object.Query != "" {
		return s.queryRows(r, object, columns, order)
	}
	stored, err := s.stored(conn, object)
	if err != nil {
		return nil, err
	}
	all, err := s.columnsOf(conn, main, stored)
	if err != nil {
		return nil, err
	}
	chosen, err := choose(object, all, columns, order)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(chosen.wanted))
	for i, column := range chosen.wanted {
		names[i] = quote(all[column].Name)
	}
	r.reads(all, chosen)
	text := "SELECT " + strings.Join(names, ", ") + " FROM main." + quote(stored)
	if len(names) == 0 {
		text = "SELECT NULL FROM main." + quote(stored)
	}
	key, err := integerKey(conn, stored)
	if err != nil {
		return nil, err
	}
	if len(chosen.order) > 0 && all[chosen.wanted[chosen.order[0]]].Name == key {
		if err := r.openByDigits(text, quote(key), chosen.order[0]); err != nil {
			return nil, err
		}
		watch.opened()
		return arranged(ctx, r, chosen, true, s.scratch)
	}
	stmt, _, err := conn.PrepareTransient(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", object, err)
	}
	r.lanes = []*lane{{stmt: stmt}}
	watch.opened()
	return arranged(ctx, r, chosen, false, s.scratch)
}

// integerKey is the column that is another name of the row id: the only one
// that surely holds nothing but integers. "" where a table has none.
func integerKey(conn *sqlite.Conn, table string) (name string, err error) {
	keys := 0
	err = sqlitex.ExecuteTransient(conn, "SELECT name, type, pk FROM pragma_table_xinfo(?1, 'main') WHERE pk > 0",
		&sqlitex.ExecOptions{Args: []any{table}, ResultFunc: func(stmt *sqlite.Stmt) error {
			if keys++; strings.EqualFold(stmt.ColumnText(1), "INTEGER") {
				name = stmt.ColumnText(0)
			}
			return nil
		}})
	if keys != 1 || name == "" {
		return "", err
	}
	// A key of a table WITHOUT ROWID, or declared DESC, has its own index and
	// may hold anything.
	index := 0
	err = sqlitex.ExecuteTransient(conn, "SELECT count(*) FROM pragma_index_list(?1, 'main') WHERE origin = 'pk'",
		&sqlitex.ExecOptions{Args: []any{table}, ResultFunc: func(stmt *sqlite.Stmt) error {
			index = stmt.ColumnInt(0)
			return nil
		}})
	if index > 0 {
		return "", err
	}
	return name, err
}

// queryRows runs the query as it is; columns that were not requested are passed
// over.
func (s *sqliteSource) queryRows(r *sqliteRows, object Object, columns, order []string) (Rows, error) {
	all, err := s.queryColumns(r.conn, object.Query)
	if err != nil {
		return nil, err
	}
	chosen, err := choose(object, all, columns, order)
	if err != nil {
		return nil, err
	}
	stmt, err := s.prepareQuery(r.conn, object.Query)
	if err != nil {
		return nil, err
	}
	r.reads(all, chosen)
	r.places = chosen.wanted
	r.lanes = []*lane{{stmt: stmt}}
	r.watch.opened()
	return arranged(r.ctx, r, chosen, false, s.scratch)
}

// isWide reports a database in UTF-16.
func isWide(conn *sqlite.Conn) (wide bool, err error) {
	err = sqlitex.ExecuteTransient(conn, "PRAGMA encoding", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		wide = stmt.ColumnText(0) != "UTF-8"
		return nil
	}})
	return wide, err
}

// sqliteRows reads statements of one transaction: one statement, or one for each
// number of digits of an integer key, merged.
type sqliteRows struct {
	s      *sqliteSource
	ctx    context.Context
	watch  *watch
	conn   *sqlite.Conn
	most   int          // bytes of a row
	left   int          // of the present one
	wait   func() error // called before a wide value is taken
	failed error        // of wait
	kinds  []api.Kind
	places []int // columns of the statement; nil: as they come
	lanes  []*lane
	key    int   // column of an integer key
	at     *lane // whose row was handed out
	wide   bool  // texts are stored in UTF-16
	row    cell.Row
	text   []byte
}

// lane is one statement; row means that it is on a row.
type lane struct {
	stmt *sqlite.Stmt
	row  bool
	key  []byte
}

// reads sets the columns to read.
func (r *sqliteRows) reads(all []api.Column, chosen selection) {
	r.row = cell.NewRow(len(chosen.wanted))
	for _, column := range chosen.wanted {
		r.kinds = append(r.kinds, all[column].Kind)
	}
}

// openByDigits makes a lane for each number of digits, with and without a sign.
// Numbers of one length have the same order as their texts, so the key's own
// index gives each lane sorted.
func (r *sqliteRows) openByDigits(text, key string, column int) error {
	r.key = column
	return lanes(func(low, high int64, descending bool) error {
		order := " ORDER BY " + key
		if descending {
			order += " DESC"
		}
		stmt, _, err := r.conn.PrepareTransient(text + " WHERE " + key + " BETWEEN ?1 AND ?2" + order)
		if err != nil {
			return fmt.Errorf("read in order of %s: %w", key, err)
		}
		stmt.BindInt64(1, low)
		stmt.BindInt64(2, high)
		l := &lane{stmt: stmt}
		if err := r.step(l); err != nil || !l.row {
			return errors.Join(err, stmt.Finalize())
		}
		r.lanes = append(r.lanes, l)
		return nil
	})
}

// lanes are the stretches of integers whose texts come in the order of their
// size: those of each number of digits, below zero and above.
func lanes(each func(low, high int64, descending bool) error) error {
	low := int64(0)
	for high := int64(9); ; high = high*10 + 9 {
		if err := each(low, high, false); err != nil {
			return err
		}
		if err := each(-high, -max(low, 1), true); err != nil {
			return err
		}
		low = high + 1
		if high >= 999_999_999_999_999_999 {
			break
		}
	}
	if err := each(low, math.MaxInt64, false); err != nil {
		return err
	}
	return each(math.MinInt64, -low, true)
}

// step moves a lane on and reads its key where it has one.
func (r *sqliteRows) step(l *lane) (err error) {
	if l.row, err = l.stmt.Step(); err != nil || !l.row {
		return err
	}
	l.key = strconv.AppendInt(l.key[:0], l.stmt.ColumnInt64(r.key), 10)
	return nil
}

// Next implements Rows.
func (r *sqliteRows) Next() ([][]byte, error) {
	if r.row.Buf == nil {
		r.row.Forget() // a long one
	}
	r.watch.enter()
	l, err := r.advance()
	r.watch.leave()
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", r.explain(err))
	}
	if l == nil {
		return nil, io.EOF
	}
	r.row.Reset()
	r.left = r.most
	for i, kind := range r.kinds {
		column := i
		if r.places != nil {
			column = r.places[i]
		}
		r.appendCell(l.stmt, column, kind)
		r.row.End()
		if r.failed != nil {
			return nil, fmt.Errorf("read rows: %w", r.failed)
		}
		if r.left < 0 || len(r.row.Buf) > r.most {
			r.row.Buf, r.text = nil, nil
			return nil, fmt.Errorf("read rows: %w", r.s.options.Limits.errRow())
		}
	}
	if cap(r.row.Buf) > keptRow || cap(r.text) > keptRow {
		defer r.shrink()
	}
	return r.row.Values(), nil
}

// BeforeWide sets the function to call before a wide row is taken, for a sort of these rows.
func (r *sqliteRows) BeforeWide(wait func() error) { r.wait = wait }

// keptRow is how much memory stays from row to row.
const keptRow = 1 << 20

// shrink lets the memory of a long row go: the caller still has its values.
func (r *sqliteRows) shrink() { r.row.Buf, r.text = nil, nil }

// explain returns why the reading has ended. Once closed, it has reported that already.
func (r *sqliteRows) explain(err error) error {
	if r.conn == nil {
		return err
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	return r.s.explain(err)
}

// advance finds the statement that is on the next row; nil at the end.
func (r *sqliteRows) advance() (*lane, error) {
	if len(r.lanes) == 1 && r.lanes[0].key == nil {
		more, err := r.lanes[0].stmt.Step()
		if err != nil || !more {
			return nil, err
		}
		return r.lanes[0], nil
	}
	if r.at != nil {
		if err := r.step(r.at); err != nil {
			return nil, err
		}
	}
	r.at = nil
	for _, l := range r.lanes {
		if l.row && (r.at == nil || bytes.Compare(l.key, r.at.key) < 0) {
			r.at = l
		}
	}
	return r.at, nil
}

// AppendCell writes a value by its own type, not by the declared type of its
// column: the database stores any value in any column. Only 0 and 1 of a
// boolean column and JSON text of a structured one have another form.
func (r *sqliteRows) appendCell(stmt *sqlite.Stmt, column int, kind api.Kind) {
	switch stmt.ColumnType(column) {
	case sqlite.TypeNull:
		r.row.Buf = append(r.row.Buf, cell.Null...)
	case sqlite.TypeInteger:
		n := stmt.ColumnInt64(column)
		if kind == api.KindBoolean && (n == 0 || n == 1) {
			r.row.Buf = cell.AppendBool(r.row.Buf, n == 1)
			return
		}
		r.row.Buf = strconv.AppendInt(r.row.Buf, n, 10)
	case sqlite.TypeFloat:
		r.row.Buf = cell.AppendFloat(r.row.Buf, stmt.ColumnFloat(column), 64)
	case sqlite.TypeText:
		r.read(stmt, column)
		if (kind == api.KindObject || kind == api.KindArray) && utf8.Valid(r.text) {
			r.row.Buf = cell.AppendEmbedded(r.row.Buf, r.text)
			return
		}
		r.row.Buf = cell.AppendString(r.row.Buf, r.text)
	default:
		r.read(stmt, column)
		r.row.Buf = cell.AppendBinary(r.row.Buf, r.text)
	}
	if cap(r.text) > 2*keptRow {
		r.text = nil
	}
}

// read copies bytes out of the database. Only what may not fit costs a second
// question; asking for the length first has a database in UTF-16 converted.
func (r *sqliteRows) read(stmt *sqlite.Stmt, column int) {
	r.text = r.text[:cap(r.text)]
	if !r.wide && len(r.text) > 0 {
		if n := stmt.ColumnBytes(column, r.text); n < len(r.text) {
			r.text = r.text[:n]
			return
		}
	}
	n := stmt.ColumnLen(column)
	if r.left -= n; r.left < 0 { // the row is refused
		r.text = r.text[:0]
		return
	}
	if n > rowsort.WideRow {
		if r.failed = r.wait(); r.failed != nil {
			r.text = r.text[:0]
			return
		}
	}
	if cap(r.text) < n {
		r.text = make([]byte, n, n+min(n, keptRow))
	}
	r.text = r.text[:n]
	stmt.ColumnBytes(column, r.text)
}

// Close may be called again.
func (r *sqliteRows) Close() error {
	r.watch.stop()
	for _, l := range r.lanes {
		_ = l.stmt.Finalize()
	}
	conn := r.conn
	if r.lanes, r.conn = nil, nil; conn == nil {
		return nil
	}
	return handles.Close(conn)
}
