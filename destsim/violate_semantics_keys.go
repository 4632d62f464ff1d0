package destsim

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// deleteViolations are SEM-009 to SEM-011.
func deleteViolations() []violation {
	return []violation{
		breaks("SEM-009", "delete is acknowledged and removes nothing",
			seams{rows: func(_ *call, _ *record, rows store.Rows) store.Rows {
				return changedRows{Rows: rows, remove: func(*store.Row) error { return nil }}
			}}),
		breaks("SEM-009.2", "delete writes the record like upsert", turned(rpc.OperationDelete, rpc.OperationUpsert)),
		keeps("SEM-010", "delete removes every record that the same sync has written", func(*Sim) seams { return deletesMore(func(_, _ string) bool { return true }) }),
		keeps("SEM-010.2", "delete removes every record of the same sync whose identifier begins with the first 8 characters of a deleted one", func(*Sim) seams { return deletesMore(samePrefix) }),
		breaks("SEM-011", "a delete batch of which no record exists is an error",
			refused(rpc.CodeServerError, "record not found", func(b *batch) bool {
				return b.operation == rpc.OperationDelete && b.Len() > 0 && count(b.standings(), standing.isStored) == 0
			})),
	}
}

// prefixLength is how much of an identifier SEM-010.2 looks at.
const prefixLength = 8

// samePrefix compares two canonical keys; integers by their digits.
func samePrefix(deleted, other string) bool {
	text := func(key string) string {
		if s, err := rawjson.StringText([]byte(key)); err == nil {
			return s
		}
		return key
	}
	start := []rune(text(deleted))
	return strings.HasPrefix(text(other), string(start[:min(prefixLength, len(start))]))
}

// syncKeys remembers which records every sync has written.
type syncKeys struct {
	mu      sync.Mutex
	written map[int64]map[storedKey]bool
}

func (k *syncKeys) add(id int64, place storedKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.written == nil {
		k.written = map[int64]map[storedKey]bool{}
	}
	if k.written[id] == nil {
		k.written[id] = map[storedKey]bool{}
	}
	k.written[id][place] = true
}

// take gives and forgets the records of a sync beside deleted that are meant.
func (k *syncKeys) take(id int64, deleted storedKey, meant func(deleted, other string) bool) (keys []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for place := range k.written[id] {
		if place.object == deleted.object && place.field == deleted.field && meant(deleted.key, place.key) {
			delete(k.written[id], place)
			keys = append(keys, place.key)
		}
	}
	return keys
}

// deletesMore removes further records that the same sync has written.
func deletesMore(meant func(deleted, other string) bool) seams {
	var known syncKeys
	return seams{apply: func(_ *call, r *record, next next) result {
		done, b := next(r), r.batch
		switch {
		case !done.success || done.skipped:
		case r.operation != rpc.OperationDelete:
			known.add(b.Plan.SyncID, r.place())
		default:
			for _, key := range known.take(b.Plan.SyncID, r.place(), meant) {
				if err := removeAll(b.unit, r.object.table, r.active.quoted, []byte(key)); err != nil {
					b.failed = err
				}
			}
		}
		return done
	}}
}

func removeAll(u store.Unit, t *store.Table, field, key []byte) error {
	return u.With(t, field, key, func(rows store.Rows) error {
		found, err := rows.Find(field, key)
		for _, old := range found {
			if err = rows.Remove(old); err != nil {
				return err
			}
		}
		return err
	})
}

// softDelete remembers what was deleted, and lets upsert bring back only the
// values of then.
func softDelete() seams {
	var mu sync.Mutex
	graves := map[storedKey][]byte{}
	return seams{rows: func(_ *call, r *record, rows store.Rows) store.Rows {
		return changedRows{
			Rows: rows,
			remove: func(old *store.Row) error {
				mu.Lock()
				defer mu.Unlock()
				graves[r.place()] = bytes.Clone(old.Data)
				return rows.Remove(old)
			},
			put: func(old *store.Row, data []byte) error {
				mu.Lock()
				defer mu.Unlock()
				if grave := graves[r.place()]; old == nil && grave != nil && r.operation == rpc.OperationUpsert && !r.same(grave) {
					return nil
				}
				delete(graves, r.place())
				return rows.Put(old, data)
			},
		}
	}}
}

// keyViolations mix up records or objects (SEM-013, SEM-014, SEM-016, SEM-018).
func keyViolations() []violation {
	return []violation{
		breaks("SEM-013", "records are matched by the first identifier of the object whatever is active", firstKeyOnly()),
		keeps("SEM-014", "identifiers are folded to lower case when the batch holds another that differs only by case", func(*Sim) seams { return foldedKeys() }),
		breaks("SEM-016", "a record that is created in one object is created in every other object whose first identifier has the same type",
			seams{apply: createdEverywhere}),
		breaks("SEM-018", "a delete removes the key from every other object whose first identifier has the same type",
			seams{apply: deletedEverywhere}),
	}
}

// firstKeyOnly matches by the first identifier; a record that lacks it is a new
// one. The identifier that is active is an ordinary field then.
func firstKeyOnly() seams {
	return seams{
		apply: func(_ *call, r *record, next next) result {
			first := r.object.firstIdentifier()
			if first == r.active.field {
				return next(r)
			}
			if col := r.batch.plan.columns[first.APIName]; col != nil {
				if _, ok := r.raw.Field(first.APIName); ok {
					r.active = col
					return next(r)
				}
			}
			lenient := *r.object
			lenient.required = slices.DeleteFunc(slices.Clone(lenient.required), func(f *field) bool { return f == first })
			r.object = &lenient
			return next(r)
		},
		rows: func(_ *call, r *record, rows store.Rows) store.Rows {
			if active := r.batch.identifier; active.field != r.object.firstIdentifier() {
				return withoutIndex{rows, active.quoted}
			}
			return rows
		},
	}
}

// withoutIndex finds nothing by one field.
type withoutIndex struct {
	store.Rows
	field []byte
}

func (w withoutIndex) Find(field, key []byte) ([]*store.Row, error) {
	if bytes.Equal(field, w.field) {
		return nil, nil
	}
	return w.Rows.Find(field, key)
}

// foldedKeys fold what differs only by case within one batch. The results carry
// the identifiers as they were sent.
func foldedKeys() seams {
	var twins perCall[map[string]bool]
	return seams{
		batch: func(c *call, b *batch) *rpc.Error {
			if found := b.caseTwins(); len(found) > 0 {
				twins.set(c, found)
			}
			return nil
		},
		value: func(c *call, r *record, cell *cell) {
			if cell.column.field != r.active.field || cell.column.Type != rpc.TypeString {
				return
			}
			if text, err := rawjson.StringText(cell.raw); err == nil && twins.get(c)[strings.ToLower(text)] {
				cell.raw = store.Quote(strings.ToLower(text))
			}
		},
		answered: func(c *call) { twins.take(c) },
	}
}

// caseTwins gives the lower case of identifiers that differ only by case.
func (b *batch) caseTwins() map[string]bool {
	first, twins := map[string]string{}, map[string]bool{}
	for i := range b.Len() {
		raw, _ := b.Record(i).Field(b.identifier.APIName)
		if len(raw) == 0 || raw[0] != '"' {
			continue
		}
		text, err := rawjson.StringText(raw)
		if err != nil {
			continue
		}
		lower := strings.ToLower(text)
		if other, is := first[lower]; !is {
			first[lower] = text
		} else if other != text {
			twins[lower] = true
		}
	}
	return twins
}

// createdEverywhere copies the key of a new record into the other objects.
func createdEverywhere(c *call, r *record, next next) result {
	existed := r.stored()
	done := next(r)
	if !existed && done.success && !done.skipped && r.operation != rpc.OperationDelete {
		r.inOthers(c, r.createIn)
	}
	return done
}

// deletedEverywhere removes the key of a deleted record from the other objects.
func deletedEverywhere(c *call, r *record, next next) result {
	done := next(r)
	if done.success && r.operation == rpc.OperationDelete {
		r.inOthers(c, func(o *object) {
			if err := removeAll(r.batch.unit, o.table, o.firstIdentifier().quoted, r.key); err != nil {
				r.batch.failed = err
			}
		})
	}
	return done
}

// inOthers calls do with the other objects whose first identifier has the type of the
// active one.
func (r *record) inOthers(c *call, do func(o *object)) {
	for _, o := range c.sim.catalogue.Load().objects {
		if o.APIName != r.object.APIName && o.firstIdentifier().Type == r.active.Type {
			do(o)
		}
	}
}

// createIn creates a record of another object that has nothing but the key, as
// the value of its first identifier.
func (r *record) createIn(o *object) {
	first, b := o.firstIdentifier(), r.batch
	err := b.unit.With(o.table, first.quoted, r.key, func(rows store.Rows) error {
		found, err := rows.Find(first.quoted, r.key)
		if err != nil || len(found) > 0 {
			return err
		}
		return rows.Put(nil, append(store.AppendMember([]byte{'{'}, first.quoted, r.key), '}'))
	})
	if err != nil {
		b.failed = err
	}
}
