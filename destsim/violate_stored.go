package destsim

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/codec"
)

// Tools of the violations that look at what is stored or write something else.

// changedRows are rows with another way to put or to remove; nil is the clean
// one.
type changedRows struct {
	store.Rows
	put    func(old *store.Row, data []byte) error
	remove func(old *store.Row) error
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

// unwritten drops the writes that are meant; old is nil for a new record.
func unwritten(meant func(r *record, old *store.Row) bool) seams {
	return seams{rows: func(_ *call, r *record, rows store.Rows) store.Rows {
		return changedRows{Rows: rows, put: func(old *store.Row, data []byte) error {
			if meant(r, old) {
				return nil
			}
			return rows.Put(old, data)
		}}
	}}
}

// doubled adds one more copy to an upsert of an existing record where it is
// meant. The copies that are there have the new values first.
func doubled(meant func(r *record, old *store.Row) bool) seams {
	return seams{rows: func(_ *call, r *record, rows store.Rows) store.Rows {
		if r.operation != rpc.OperationUpsert {
			return rows
		}
		put := false
		return changedRows{Rows: rows, put: func(old *store.Row, data []byte) error {
			more := !put && old != nil && meant(r, old) // asked before old gets the new values
			put = true
			if err := rows.Put(old, data); err != nil || !more {
				return err
			}
			return rows.Put(nil, data)
		}}
	}}
}

// blindRows do not find the rows of the record itself, so that it is created
// once more. A value that belongs to another record is still found.
type blindRows struct {
	store.Rows
	r *record
}

func (b blindRows) Find(field, key []byte) ([]*store.Row, error) {
	found, err := b.Rows.Find(field, key)
	return slices.DeleteFunc(slices.Clone(found), func(o *store.Row) bool {
		own, ok := store.Member(o.Data, b.r.active.quoted)
		return ok && bytes.Equal(own, b.r.key)
	}), err
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
}

// standings looks all records of a batch up.
func (b *batch) standings() []standing {
	all := make([]standing, b.Len())
	u, err := b.call.sim.store.Begin()
	if err != nil {
		return all // the batch itself will meet it again
	}
	defer u.Rollback()
	for i := range all {
		all[i] = b.standing(u, i)
	}
	return all
}

func (b *batch) standing(u store.Unit, i int) (s standing) {
	raw, _ := b.Record(i).Field(b.identifier.APIName)
	if len(raw) == 0 {
		return standing{}
	}
	key, problem := b.identifier.canonical(raw)
	if problem != "" || bytes.Equal(key, store.Null) {
		return standing{}
	}
	err := u.With(b.object.table, b.identifier.quoted, key, func(rows store.Rows) error {
		found, err := rows.Find(b.identifier.quoted, key)
		if err == nil && len(found) > 0 {
			s = standing{true, b.repeated(i, found[0].Data)}
		}
		return err
	})
	if err != nil {
		return standing{}
	}
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

// fingerprint stands for the content of a batch: object, operation, active
// identifier and records, but not the ids of the sync.
type fingerprint [sha256.Size]byte

func (b *batch) fingerprint(records ...codec.RawRecord) (f fingerprint) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q", b.object.APIName, b.operation, b.identifier.APIName)
	for _, r := range records {
		_, _ = h.Write(r.Raw())
	}
	h.Sum(f[:0])
	return f
}

func (b *batch) all() []codec.RawRecord {
	all := make([]codec.RawRecord, b.Len())
	for i := range all {
		all[i] = b.Record(i)
	}
	return all
}

// perCall keeps a value from one seam of a call to a later one.
type perCall[T any] struct{ calls sync.Map }

func (p *perCall[T]) set(c *call, v T) { p.calls.Store(c, v) }

func (p *perCall[T]) get(c *call) (v T) {
	if kept, ok := p.calls.Load(c); ok {
		v = kept.(T)
	}
	return v
}

// take gives the value and forgets it.
func (p *perCall[T]) take(c *call) (v T) {
	if kept, ok := p.calls.LoadAndDelete(c); ok {
		v = kept.(T)
	}
	return v
}

// putLater stores data under a key after d, replacing what is there then; nil
// data removes it. It is for destinations that acknowledge before they write.
func (s *Sim) putLater(d time.Duration, t *store.Table, field, key, data []byte) {
	field, key, data = bytes.Clone(field), bytes.Clone(key), bytes.Clone(data)
	s.later(d, func() {
		u, err := s.store.Begin()
		if err != nil {
			return
		}
		defer u.Rollback()
		err = u.With(t, field, key, func(rows store.Rows) error {
			found, err := rows.Find(field, key)
			switch {
			case err != nil:
				return err
			case data == nil:
				for _, old := range found {
					err = rows.Remove(old)
				}
				return err
			case len(found) > 0:
				return rows.Put(found[0], data)
			}
			return rows.Put(nil, data)
		})
		if err == nil {
			_ = u.Commit()
		}
	})
}
