package destsim

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// Shapes of the violations that look at stored records or write something else.

// changedRows are rows with another way to find, to put or to remove; nil is the clean
// one.
type changedRows struct {
	store.Rows
	find   func(field, key []byte) ([]*store.Row, error)
	put    func(old *store.Row, data []byte) error
	remove func(old *store.Row) error
}

func (c changedRows) Find(field, key []byte) ([]*store.Row, error) {
	if c.find != nil {
		return c.find(field, key)
	}
	return c.Rows.Find(field, key)
}

func (c changedRows) Put(old *store.Row, data []byte) error {
	if c.put != nil {
		return c.put(old, data)
	}
	return c.Rows.Put(old, data)
}

func (c changedRows) Remove(old *store.Row) error {
	if c.remove != nil {
		return c.remove(old)
	}
	return c.Rows.Remove(old)
}

// rowsOf wraps the rows of the records that are meant.
func rowsOf(meant func(r *record) bool, wrap func(r *record, rows store.Rows) store.Rows) seams {
	return seams{rows: func(_ *call, r *record, rows store.Rows) store.Rows {
		if meant(r) {
			return wrap(r, rows)
		}
		return rows
	}}
}

// puts changes stored data: old is nil for a new record, and nil is not written.
func puts(change func(r *record, old *store.Row, data []byte) []byte) seams {
	return seams{rows: func(_ *call, r *record, rows store.Rows) store.Rows {
		return changedRows{Rows: rows, put: func(old *store.Row, data []byte) error {
			if data = change(r, old, data); data == nil {
				return nil
			}
			return rows.Put(old, data)
		}}
	}}
}

// unwritten drops the writes that are meant.
func unwritten(meant func(r *record, old *store.Row) bool) seams {
	return puts(func(r *record, old *store.Row, data []byte) []byte {
		if meant(r, old) {
			return nil
		}
		return data
	})
}

// doubled adds one more copy to an upsert of an existing record where it is
// meant. The copies that are there have the new values first.
func doubled(meant func(r *record, old *store.Row) bool) seams {
	upsert := func(r *record) bool { return r.operation == rpc.OperationUpsert }
	return rowsOf(upsert, func(r *record, rows store.Rows) store.Rows {
		put := false
		return changedRows{Rows: rows, put: func(old *store.Row, data []byte) error {
			more := !put && old != nil && meant(r, old) // called before old gets the new values
			put = true
			if err := rows.Put(old, data); err != nil || !more {
				return err
			}
			return rows.Put(nil, data)
		}}
	})
}

// finds changes the rows that are found for the selected records.
func finds(meant func(r *record) bool, change func(r *record, field []byte, found []*store.Row) []*store.Row) seams {
	return rowsOf(meant, func(r *record, rows store.Rows) store.Rows {
		return changedRows{Rows: rows, find: func(field, key []byte) ([]*store.Row, error) {
			found, err := rows.Find(field, key)
			return change(r, field, found), err
		}}
	})
}

// blind does not find the rows of the records that are meant, so that each is created
// once more. A value that belongs to another record is still found.
func blind(meant func(r *record) bool) seams {
	return finds(meant, func(r *record, _ []byte, found []*store.Row) []*store.Row {
		return slices.DeleteFunc(slices.Clone(found), func(o *store.Row) bool {
			own, ok := store.Member(o.Data, r.active.quoted)
			return ok && bytes.Equal(own, r.key)
		})
	})
}

// same reports whether a row holds every value of the record.
func (r *record) same(data []byte) bool {
	for i := range r.cells {
		value, ok := store.Member(data, r.cells[i].column.quoted)
		if !ok || !bytes.Equal(value, r.cells[i].raw) {
			return false
		}
	}
	return true
}

// standing is what the destination holds of a record before its batch.
type standing struct {
	stored bool
	same   bool // with the values of the record
	data   []byte
}

// standings counts the records of a batch that are stored, and those with the same values.
func (b *batch) standings() (stored, same int) {
	for _, s := range b.allStandings() {
		if s.stored {
			stored++
		}
		if s.same {
			same++
		}
	}
	return stored, same
}

func (b *batch) allStandings() (list []standing) {
	u, err := b.call.sim.store.Begin()
	if err != nil {
		return nil // the batch itself will meet it again
	}
	defer u.Rollback()
	for i := range b.Len() {
		list = append(list, b.standing(u, i))
	}
	return list
}

func (b *batch) standing(u store.Unit, i int) (s standing) {
	key := b.key(i)
	if key == nil {
		return s
	}
	_ = eachRow(u, b.object.table, b.identifier.quoted, key, func(_ store.Rows, row *store.Row) error {
		if !s.stored {
			s = standing{true, b.repeated(i, row.Data), bytes.Clone(row.Data)}
		}
		return nil
	}) // the batch itself will meet an error again
	return s
}

// repeated reports whether a row holds every value that record i brings.
func (b *batch) repeated(i int, data []byte) bool {
	r := b.Record(i)
	for j := range r.Len() {
		name, raw := r.At(j)
		col := b.plan.columns[string(name)]
		if col == nil {
			return false
		}
		value, problem := col.canonical(raw)
		stored, ok := store.Member(data, col.quoted)
		if problem != "" || !ok || !bytes.Equal(stored, value) {
			return false
		}
	}
	return true
}

// storedKey is the place of a record in the store.
type storedKey struct{ object, field, key string }

func (r *record) place() storedKey {
	return storedKey{r.object.APIName, string(r.active.quoted), string(r.key)}
}

// firstIdentifier is the first identifier of the object, nil if it has none.
func (o *object) firstIdentifier() *field {
	for _, f := range o.fields {
		if f.Identifier {
			return f
		}
	}
	return nil
}

// fingerprint represents the content of a batch: object, operation, active
// identifier and some records, but not the ids of the sync.
type fingerprint [sha256.Size]byte

func (b *batch) fingerprint(from, to int) (f fingerprint) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q", b.object.APIName, b.operation, b.identifier.APIName)
	for i := from; i < to; i++ {
		_, _ = h.Write(b.Record(i).Raw())
	}
	h.Sum(f[:0])
	return f
}

// putLater stores data under a key after d, replacing present data; nil data
// removes it. It is for destinations that acknowledge before they write.
func (s *Sim) putLater(d time.Duration, t *store.Table, field, key, data []byte) {
	field, key, data = bytes.Clone(field), bytes.Clone(key), bytes.Clone(data)
	s.later(d, func() {
		_ = s.write(func(u store.Unit) error { // a simulator that is closed has lost it
			if data == nil {
				return removeAll(u, t, field, key)
			}
			return putRow(u, t, field, key, data)
		})
	})
}

// putRow stores data under a key in place of the first row there is.
func putRow(u store.Unit, t *store.Table, field, key, data []byte) error {
	return u.With(t, field, key, func(rows store.Rows) error {
		found, err := rows.Find(field, key)
		if err != nil {
			return err
		}
		return rows.Put(append(found, nil)[0], data)
	})
}
