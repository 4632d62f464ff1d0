// Package store keeps the records of a simulated destination: in memory, in a
// SQLite file, or in a schema of PostgreSQL that several simulators share. What
// a record means, and which records are refused, is decided by the caller within
// the lock of a key.
package store

import "strings"

// Store keeps the records. An implementation makes durable, in its own sense,
// what a unit has committed.
type Store interface {
	// Begin opens the unit of work of one batch.
	Begin() (Unit, error)
	// Scan gives at most limit rows with an id above after, in ascending order
	// of id, and the number of all rows of the table.
	Scan(table string, after int64, limit int) ([]Row, int, error)
	// Drop removes all rows of a table; "" removes those of all tables.
	Drop(table string) error
}

// Unit is the work of one batch. After Commit or Rollback it is dead.
type Unit interface {
	// With runs fn while no one else can read or change the rows whose field
	// has that value. field is the quoted name, key the canonical value; a nil
	// key locks the whole table.
	With(t *Table, field, key []byte, fn func(Rows) error) error
	// Commit makes everything durable.
	Commit() error
	// Rollback undoes what the store can undo; after Commit it does nothing.
	Rollback()
}

// Rows are the rows within one lock of unit.With. There may be several rows
// with one key: it is the destination that keeps them unique, not the store.
type Rows interface {
	// Find gives the rows whose field has that value; a nil key gives all.
	Find(field, key []byte) ([]*Row, error)
	// Put inserts data as a new row when old is nil and replaces old otherwise.
	Put(old *Row, data []byte) error
	// Remove deletes a row.
	Remove(old *Row) error
}

// Row is one stored record. Outside of the lock it was found under only data,
// taken within it, may be used: data is replaced as a whole, never edited.
type Row struct {
	ID    int64
	Data  []byte
	where rowRef // in memory; 0 elsewhere
}

// Table names a table and the fields that are indexed: those that the object
// declares unique. A store rebuilds its index when they change.
type Table struct {
	Name    string
	Uniques [][]byte // quoted names
	Wide    bool     // lock the whole table for every record
}

// Renamed is the same table under another name.
func (t *Table) Renamed(name string) *Table {
	if t.Name == name {
		return t
	}
	return &Table{Name: name, Uniques: t.Uniques, Wide: t.Wide}
}

// Open opens memory, sqlite:FILE or the URL of a PostgreSQL database.
func Open(name string) (Store, error) {
	if IsURL(name) {
		return openPostgres(name)
	}
	if file, ok := strings.CutPrefix(name, "sqlite:"); ok {
		return openSQLite(file)
	}
	return newMemoryStore(), nil
}
