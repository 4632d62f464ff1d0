package source

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/server/api"
)

var _ Ranger = (*sqliteSource)(nil)

// Range implements Ranger, for the integer primary key of a table and for columns of
// texts that have an index.
func (s *sqliteSource) Range(ctx context.Context, object Object, columns []string, of Range) (_ Rows, err error) {
	return s.rows(ctx, object, columns, []string{of.Column}, &of)
}

// Sample counts the rows and takes some by chance, from the index alone.
func (s *sqliteSource) Sample(ctx context.Context, object Object, column string) (values [][]byte, rows int64, err error) {
	if object.Query != "" {
		return nil, 0, nil
	}
	err = s.with(ctx, func(conn *sqlite.Conn) error {
		stored, err := s.stored(conn, object)
		if err != nil {
			return err
		}
		from := " FROM main." + quote(stored)
		err = sqlitex.ExecuteTransient(conn, "SELECT count(*)"+from, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
			rows = stmt.ColumnInt64(0)
			return nil
		}})
		if err != nil {
			return fmt.Errorf("count rows of %s: %w", object, err)
		}
		key, err := integerKey(conn, stored)
		if err != nil {
			return err
		}
		r, kind := &sqliteRows{s: s, row: newRow(1), text: make([]byte, 512)}, api.KindInteger
		if key != column {
			index, err := s.textIndex(conn, stored, column)
			if err != nil || index == "" {
				return err
			}
			if r.wide, err = isWide(conn); err != nil {
				return err
			}
			from, kind = from+" INDEXED BY "+quote(index), api.KindString
		}
		err = sqlitex.ExecuteTransient(conn, "SELECT "+quote(column)+from+" WHERE random() % ?1 = 0", &sqlitex.ExecOptions{
			Args: []any{max(rows/sampleSize, 1)}, ResultFunc: func(stmt *sqlite.Stmt) error {
				if stmt.ColumnType(0) != sqlite.TypeNull {
					r.row.reset()
					r.appendCell(stmt, 0, kind)
					values = append(values, bytes.Clone(r.row.buf))
				}
				return nil
			}})
		if err != nil {
			return fmt.Errorf("sample %s: %w", object, err)
		}
		return nil
	})
	return evenly(values), rows, err
}

// textIndex is an index of a table that begins with a column of texts; "" where there
// is none.
func (s *sqliteSource) textIndex(conn *sqlite.Conn, table, column string) (name string, err error) {
	all, err := s.columnsOf(conn, main, table)
	if err != nil || !slices.ContainsFunc(all, func(c api.Column) bool { return c.Name == column && c.Kind == api.KindString }) {
		return "", err
	}
	err = sqlitex.ExecuteTransient(conn, `SELECT l.name FROM pragma_index_list(?1, 'main') l JOIN pragma_index_info(l.name, 'main') i
		WHERE l.partial = 0 AND i.seqno = 0 AND i.name = ?2 ORDER BY l.seq`,
		&sqlitex.ExecOptions{Args: []any{table, column}, ResultFunc: func(stmt *sqlite.Stmt) error {
			name = stmt.ColumnText(0)
			return nil
		}})
	return name, err
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
	// A key of a table WITHOUT ROWID, or declared DESC, has an index of its own
	// and may hold anything.
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

// inside reports whether a row is of the range.
func (r *sqliteRows) inside(stmt *sqlite.Stmt) bool {
	if r.of == nil {
		return true
	}
	r.row.reset()
	r.appendCell(stmt, r.key, r.kinds[r.key])
	return bytes.Compare(r.row.buf, r.of.From) >= 0 && (r.of.To == nil || bytes.Compare(r.row.buf, r.of.To) < 0)
}
