// Package store keeps the records of a simulated destination: in memory or in a
// SQLite file. The meaning of a record, and which records are refused, are
// decided by the caller within the lock of a key.
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
	// Dump calls fixed when the content to be dumped is decided and no batch is
	// half in it, then each for every row in ascending order of id. lastID is
	// the highest id that was ever given. Batches go on during each.
	Dump(fixed func(lastID int64), each func(table string, r Row) error) error
	// Stage opens room for another content, which is not seen before Commit.
	Stage() (Stage, error)
}

// Stage is a content in the making. After Commit or Discard it is dead.
type Stage interface {
	// Put adds a row; ids ascend over all tables.
	Put(table string, r Row) error
	// Commit replaces everything in the store; a failure changes nothing.
	Commit(lastID int64) error
	// Discard frees the staged content; after Commit it does nothing.
	Discard()
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

// Open opens memory or sqlite:FILE.
func Open(name string) (Store, error) {
	if file, ok := strings.CutPrefix(name, "sqlite:"); ok {
		return openSQLite(file)
	}
	return newMemoryStore(), nil
}
