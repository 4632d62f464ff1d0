package destsim

// store keeps the records. An implementation makes durable, in its own sense,
// what a unit has committed.
type store interface {
	// Begin opens the unit of work of one batch.
	Begin() (unit, error)
	// Scan gives at most limit rows with an id above after, in ascending order
	// of id, and the number of all rows of the table.
	Scan(table string, after int64, limit int) ([]row, int, error)
	// Drop removes all rows of a table; "" removes those of all tables.
	Drop(table string) error
}

// unit is the work of one batch. After Commit or Rollback it is dead.
type unit interface {
	// With runs fn while nobody else can read or change the rows whose field
	// has that value. field is the quoted name, key the canonical value; a nil
	// key locks the whole table.
	With(t *table, field, key []byte, fn func(rows) error) error
	// Commit makes everything durable.
	Commit() error
	// Rollback undoes what the store can undo; after Commit it does nothing.
	Rollback()
}

// rows are the rows within one lock of unit.With. There may be several rows
// with one key: it is the destination that keeps them unique, not the store.
type rows interface {
	// Find gives the rows whose field has that value; a nil key gives all.
	Find(field, key []byte) ([]*row, error)
	// Put inserts data as a new row when old is nil and replaces old otherwise.
	Put(old *row, data []byte) error
	// Remove deletes a row.
	Remove(old *row) error
}

// row is one stored record. Outside of the lock it was found under only data,
// taken within it, may be used: data is replaced as a whole, never edited.
type row struct {
	id    int64
	data  []byte
	where rowRef // in memory; 0 elsewhere
}

// table names a table and the fields that are indexed: those that the object
// declares unique. A store rebuilds its index when they change.
type table struct {
	name    string
	uniques [][]byte // quoted names
	wide    bool     // lock the whole table for every record
}

// renamed is the same table under another name.
func (t *table) renamed(name string) *table {
	if t.name == name {
		return t
	}
	return &table{name: name, uniques: t.uniques, wide: t.wide}
}
