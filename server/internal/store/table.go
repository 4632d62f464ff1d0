package store

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// Row is what every stored row has. UpdatedAt is the moment of the last Save.
type Row struct {
	ID        int64
	Version   int64 // counts from 1
	CreatedAt time.Time
	UpdatedAt time.Time
}

func (r *Row) row() *Row { return r }

// rowOf is the Row that every kind of row embeds.
func rowOf(v any) *Row { return v.(interface{ row() *Row }).row() }

// Head names one state of a row: content that a View saw under both never gets
// stale, until the whole database is replaced (Store.Restore). An Update may
// still be undone, and other content get the same id and version.
type Head struct{ ID, Version int64 }

// Page selects a part of a list, ordered by creation time and then id. Number
// counts from 1; 0 is 1. PerPage 0 means all rows. The zero Page is the whole
// list, newest first.
type Page struct {
	Number, PerPage int64
	Ascending       bool
}

// window gives LIMIT and OFFSET; a page that no list can have is past every end.
func (p Page) window() (limit, offset int64) {
	if p.PerPage <= 0 {
		return math.MaxInt64, 0
	}
	number := max(p.Number, 1) - 1
	if number > math.MaxInt64/p.PerPage {
		return p.PerPage, math.MaxInt64
	}
	return p.PerPage, number * p.PerPage
}

// Table stores one kind of row: the columns of Row first, then its own ones in the order
// of cells. Its methods work within a transaction; owner is the id of what rows belong to,
// such as a workspace.
type Table[T any] struct {
	name, kind string
	scope      string // column of the owner; "" when there is none
	columns    []string
	cells      func(*T) []any                 // the stored values of a row, as scan.into takes it
	duplicate  func(*T) (field, value string) // of the unique constraint; nil: none
	visible    string                         // condition that hides rows; "": none
	counted    bool                           // row_counts has the length of its lists
	uses       []use                          // references that keep a row from being deleted

	// Extra work of a kind of row beyond its columns; nil: none.
	begin  func(*Tx, *T)       // before it is created
	stored func(*Tx, *T) error // after it was created or saved
	loaded func(*Tx, *T) error // after it was read
	remove func(t *Table[T], tx *Tx, owner, id int64) error

	sqlInsert, sqlUpdate, sqlDelete, sqlSelect, sqlHead string
	sqlTotal, sqlDown, sqlUp, sqlHeadsDown, sqlHeadsUp  string
}

const rowColumns = "id, version, created_at, updated_at"

// define writes the table's statements once.
func define[T any](t Table[T]) *Table[T] {
	own := strings.Join(t.columns, ", ")
	marks := strings.Repeat(", ?", len(t.columns))
	t.sqlInsert = "INSERT INTO " + t.name + " (version, created_at, updated_at, " + own +
		") VALUES (1, ?, ?" + marks + ") RETURNING id"
	t.sqlUpdate = "UPDATE " + t.name + " SET version = version + 1, updated_at = ?, " +
		strings.Join(t.columns, " = ?, ") + " = ? WHERE id = ? AND version = ?"
	where := " WHERE " + cmp.Or(t.visible, "1 = 1")
	scoped := where
	if t.scope != "" {
		scoped += " AND " + t.scope + " = ?"
	}
	t.sqlDelete = "DELETE FROM " + t.name + scoped + " AND id = ?"
	t.sqlSelect = "SELECT " + rowColumns + ", " + own + " FROM " + t.name + where
	t.sqlHead = "SELECT id, version FROM " + t.name + scoped + " AND id = ?"
	t.sqlTotal = "SELECT count(*) FROM " + t.name + scoped
	if t.counted {
		t.sqlTotal = "SELECT rows FROM row_counts WHERE name = '" + t.name + "' AND owner = ?"
	}
	down := " ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?"
	up := " ORDER BY created_at, id LIMIT ? OFFSET ?"
	list := "SELECT " + rowColumns + ", " + own + " FROM " + t.name + scoped
	heads := "SELECT id, version FROM " + t.name + scoped
	t.sqlDown, t.sqlUp = list+down, list+up
	t.sqlHeadsDown, t.sqlHeadsUp = heads+down, heads+up
	return &t
}

// Create stores a new row; *DuplicateError for a value that must be unique.
func (t *Table[T]) Create(tx *Tx, v *T) error {
	if t.begin != nil {
		t.begin(tx, v)
	}
	id, err := tx.insert(t.sqlInsert, append([]any{tx.now, tx.now}, arguments(t.cells(v))...)...)
	if err != nil {
		return fmt.Errorf("create %s: %w", t.kind, t.explain(v, err))
	}
	*rowOf(v) = Row{ID: id, Version: 1, CreatedAt: tx.now, UpdatedAt: tx.now}
	return t.after(t.stored, tx, v)
}

func (t *Table[T]) after(hook func(*Tx, *T) error, tx *Tx, v *T) error {
	if hook == nil {
		return nil
	}
	return hook(tx, v)
}

// Save stores a changed row; ErrConflict when another one has changed it since it was
// read.
func (t *Table[T]) Save(tx *Tx, v *T) error {
	row := rowOf(v)
	args := append([]any{tx.now}, arguments(t.cells(v))...)
	changed, err := tx.exec(t.sqlUpdate, append(args, row.ID, row.Version)...)
	if err == nil && changed == 0 {
		err = t.missing(tx, row.ID)
	}
	if err != nil {
		return fmt.Errorf("save %s %d: %w", t.kind, row.ID, t.explain(v, err))
	}
	row.Version++
	row.UpdatedAt = tx.now
	return t.after(t.stored, tx, v)
}

// missing returns why a row with its version was not found.
func (t *Table[T]) missing(tx *Tx, id int64) error {
	found := ErrNotFound
	err := tx.query("SELECT 1 FROM "+t.name+" WHERE id = ?", func(sqlite.Row) error {
		found = ErrConflict
		return nil
	}, id)
	return errors.Join(err, found)
}

// explain names the value that exists already.
func (t *Table[T]) explain(v *T, err error) error {
	if t.duplicate == nil || !sqlite.Unique(err) {
		return err
	}
	field, value := t.duplicate(v)
	return &DuplicateError{Kind: t.kind, Field: field, Value: value}
}

// Delete deletes a row, with what hangs on it; *InUseError while another one needs it.
func (t *Table[T]) Delete(tx *Tx, owner, id int64) error {
	if t.remove != nil {
		return t.remove(t, tx, owner, id)
	}
	if len(t.uses) > 0 {
		if _, err := t.Head(tx, owner, id); err != nil {
			return err
		}
		if err := tx.unused(t.kind, id, t.uses...); err != nil {
			return err
		}
	}
	return t.delete(tx, owner, id)
}

// delete removes a row; scope is left out where the table has none.
func (t *Table[T]) delete(tx *Tx, scopeAndID ...any) error {
	changed, err := tx.exec(t.sqlDelete, scopeAndID...)
	switch id, _ := scopeAndID[len(scopeAndID)-1].(int64); {
	case err == nil && changed == 0:
		err = ErrNotFound
	case sqlite.Dangling(err): // the row stays, and what holds on to it does too
		err = &InUseError{Kind: t.kind, ID: id, By: "resource", Count: 1}
	}
	if err != nil {
		return fmt.Errorf("delete %s %v: %w", t.kind, scopeAndID[len(scopeAndID)-1], err)
	}
	return nil
}

// Read reads one row of an owner.
func (t *Table[T]) Read(tx *Tx, owner, id int64) (*T, error) {
	return t.one(tx, "id = ? AND "+t.scope+" = ?", id, owner)
}

// Any reads one row of whichever owner, for those who may see the rows of all.
func (t *Table[T]) Any(tx *Tx, id int64) (*T, error) { return t.one(tx, "id = ?", id) }

// one reads the row that meets a condition.
func (t *Table[T]) one(tx *Tx, condition string, args ...any) (*T, error) {
	found, err := t.some(tx, condition, args...)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("read %s: %w", t.kind, ErrNotFound)
	}
	return found[0], nil
}

// some reads the rows that meet a condition, which may end in an order.
func (t *Table[T]) some(tx *Tx, condition string, args ...any) ([]*T, error) {
	return t.read(tx, t.sqlSelect+" AND "+condition, args...)
}

func (t *Table[T]) read(tx *Tx, query string, args ...any) ([]*T, error) {
	var found []*T
	err := tx.query(query, func(c sqlite.Row) error {
		v := new(T)
		s := scan{cells: c}
		*rowOf(v) = Row{ID: s.number(), Version: s.number(), CreatedAt: s.time(), UpdatedAt: s.time()}
		for _, cell := range t.cells(v) {
			s.into(cell)
		}
		found = append(found, v)
		return s.err
	}, args...)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", t.kind, err)
	}
	for _, v := range found {
		if err := t.after(t.loaded, tx, v); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// List reads one page of the rows of an owner, and the number of all of them.
func (t *Table[T]) List(tx *Tx, owner int64, p Page) ([]*T, int64, error) {
	return t.list(tx, p, owner)
}

// All reads the rows of an owner page by page, oldest first.
func (t *Table[T]) All(tx *Tx, owner int64) ([]*T, error) {
	return Every(func(p Page) ([]*T, int64, error) { return t.List(tx, owner, p) })
}

func (t *Table[T]) list(tx *Tx, p Page, scope ...any) ([]*T, int64, error) {
	query := t.sqlDown
	if p.Ascending {
		query = t.sqlUp
	}
	limit, offset := p.window()
	found, err := t.read(tx, query, append(append([]any{}, scope...), limit, offset)...)
	if err != nil {
		return nil, 0, err
	}
	total, err := t.total(tx, scope...)
	return found, total, err
}

func (t *Table[T]) total(tx *Tx, scope ...any) (int64, error) {
	total, err := tx.number(t.sqlTotal, scope...)
	if err != nil {
		return 0, fmt.Errorf("count %ss: %w", t.kind, err)
	}
	return total, nil
}

// Heads is List without reading the rows themselves.
func (t *Table[T]) Heads(tx *Tx, owner int64, p Page) ([]Head, int64, error) {
	query := t.sqlHeadsDown
	if p.Ascending {
		query = t.sqlHeadsUp
	}
	limit, offset := p.window()
	var found []Head
	err := tx.query(query, func(c sqlite.Row) error {
		s := scan{cells: c}
		found = append(found, Head{ID: s.number(), Version: s.number()})
		return nil
	}, owner, limit, offset)
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", t.kind, err)
	}
	total, err := t.total(tx, owner)
	return found, total, err
}

// Head reads the version of one row.
func (t *Table[T]) Head(tx *Tx, owner, id int64) (head Head, err error) {
	err = tx.query(t.sqlHead, func(c sqlite.Row) error {
		s := scan{cells: c}
		head = Head{ID: s.number(), Version: s.number()}
		return nil
	}, owner, id)
	if err == nil && head.ID == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Head{}, fmt.Errorf("read %s: %w", t.kind, err)
	}
	return head, nil
}

// use describes rows that refer to another one.
type use struct {
	by    string
	query string // counts them by the id of the row in use
}

// unused fails with *InUseError when a row is still in use.
func (tx *Tx) unused(kind string, id int64, uses ...use) error {
	for _, u := range uses {
		count, err := tx.number(u.query, id)
		if err != nil {
			return fmt.Errorf("delete %s %d: %w", kind, id, err)
		}
		if count > 0 {
			return &InUseError{Kind: kind, ID: id, By: u.by, Count: int(count)}
		}
	}
	return nil
}
