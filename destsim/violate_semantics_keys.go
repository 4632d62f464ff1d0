package destsim

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// prefixLength is how much of an identifier SEM-010.2 looks at.
const prefixLength = 8

// samePrefix compares two canonical keys; integers by their digits.
func samePrefix(deleted, other string) bool {
	start := []rune(plainText([]byte(deleted)))
	return strings.HasPrefix(plainText([]byte(other)), string(start[:min(prefixLength, len(start))]))
}

// ofTexts compares canonical keys by their texts; integers are never alike.
func ofTexts(alike func(named, other string) bool) func(named, other string) bool {
	return func(named, other string) bool {
		a, err := rawjson.StringText([]byte(named))
		b, otherErr := rawjson.StringText([]byte(other))
		return err == nil && otherErr == nil && alike(a, b)
	}
}

// syncKeys remembers which records every sync has written.
type syncKeys struct{ written byRun[map[storedKey]bool] }

// add remembers a record, unless so many of its sync are known.
func (k *syncKeys) add(id int64, place storedKey, most int) {
	k.written.change(id, func(known map[storedKey]bool) map[storedKey]bool {
		if known == nil {
			known = map[storedKey]bool{}
		}
		if len(known) < most {
			known[place] = true
		}
		return known
	})
}

// near gives the records of a sync other than the named one that are meant, and may
// forget them together with that one.
func (k *syncKeys) near(id int64, named storedKey, meant func(named, other string) bool, forget bool) (keys []string) {
	k.written.change(id, func(known map[storedKey]bool) map[storedKey]bool {
		for place := range known {
			if place.object != named.object || place.field != named.field || !meant(named.key, place.key) {
				continue
			}
			if place != named {
				keys = append(keys, place.key)
			}
			if forget {
				delete(known, place)
			}
		}
		return known
	})
	return keys
}

// deletesMore removes further records that the same sync has written.
func deletesMore(id, changes string, meant func(deleted, other string) bool) violation {
	return keeps(id, changes, func() seams {
		var known syncKeys
		return seams{apply: func(_ *call, r *record, next next) result {
			done, b := next(r), r.batch
			switch {
			case !done.success || done.skipped:
			case r.operation != rpc.OperationDelete:
				known.add(b.Plan.SyncID, r.place(), math.MaxInt)
			default:
				for _, key := range known.near(b.Plan.SyncID, r.place(), meant, true) {
					r.must(removeAll(b.unit, r.object.table, r.active.quoted, []byte(key)))
				}
			}
			return done
		}}
	})
}

// rememberedKeys is how many records of a sync SEM-017 knows: a sync that
// writes many of them is not slowed down by looking through all.
const rememberedKeys = 200

// writesMore changes further records that the same sync has written.
func writesMore(id, changes string, meant func(named, other string) bool) violation {
	return keeps(id, changes, func() seams {
		var known syncKeys
		return seams{apply: func(_ *call, r *record, next next) result {
			if r.operation == rpc.OperationDelete {
				return next(r)
			}
			existed := r.stored()
			done, b := next(r), r.batch
			if !done.success || done.skipped {
				return done
			}
			known.add(b.Plan.SyncID, r.place(), rememberedKeys)
			if existed && r.operation != rpc.OperationInsert {
				for _, key := range known.near(b.Plan.SyncID, r.place(), meant, false) {
					r.must(r.copyTo([]byte(key)))
				}
			}
			return done
		}}
	})
}

// must lets the batch fail when its store has.
func (r *record) must(err error) {
	if err != nil {
		r.batch.failed = err
	}
}

// copyTo sets the values of the record that need not be unique in the rows of
// another key.
func (r *record) copyTo(key []byte) error {
	plain := slices.DeleteFunc(slices.Clone(r.cells), func(c cell) bool { return c.column.Identifier || c.column.unique })
	return eachRow(r.batch.unit, r.object.table, r.active.quoted, key, func(rows store.Rows, old *store.Row) error {
		return rows.Put(old, mergeCells(old.Data, plain))
	})
}

// eachRow does something with every row of a key.
func eachRow(u store.Unit, t *store.Table, field, key []byte, do func(rows store.Rows, old *store.Row) error) error {
	return u.With(t, field, key, func(rows store.Rows) error {
		found, err := rows.Find(field, key)
		for _, old := range found {
			if err = do(rows, old); err != nil {
				return err
			}
		}
		return err
	})
}

func removeAll(u store.Unit, t *store.Table, field, key []byte) error {
	return eachRow(u, t, field, key, store.Rows.Remove)
}

// firstKeyOnly matches by the first identifier; a record that lacks it is a new
// one. The identifier that is active is an ordinary field then.
var firstKeyOnly = seams{
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
	rows: finds(func(r *record) bool { return r.batch.identifier.field != r.object.firstIdentifier() },
		func(r *record, field []byte, found []*store.Row) []*store.Row {
			if bytes.Equal(field, r.batch.identifier.quoted) {
				return nil
			}
			return found
		}).rows,
}

// byAnother reports whether another identifier than the first one is active.
func (r *record) byAnother() bool { return r.active.field != r.object.firstIdentifier() }

// foldedKeys fold what differs only by case within one batch. The results carry
// the identifiers as they were sent.
func foldedKeys() seams {
	var twins perCall[map[string]bool]
	folded := altersKeys(func(c *call, text string) string {
		if lower := strings.ToLower(text); twins.get(c)[lower] {
			return lower
		}
		return text
	})
	folded.batch = func(c *call, b *batch) { twins.set(c, b.caseTwins()) }
	folded.answered = twins.forget
	return folded
}

// altersKeys stores another text in the active identifier where it is a string.
func altersKeys(change func(c *call, text string) string) seams {
	return seams{value: func(c *call, r *record, cell *cell) {
		if cell.column.field != r.active.field || cell.column.Type != rpc.TypeString {
			return
		}
		if text, err := rawjson.StringText(cell.raw); err == nil {
			cell.raw = store.Quote(change(c, text))
		}
	}}
}

// abortedInsert: the first record that exists decides about those behind it.
func abortedInsert() seams {
	var aborted perCall[bool]
	return seams{
		apply: func(c *call, r *record, next next) result {
			done := next(r)
			switch {
			case r.operation != rpc.OperationInsert:
			case done.skipped:
				aborted.set(c, true)
			case aborted.get(c):
				return r.skip(alreadyPresent)
			}
			return done
		},
		answered: aborted.forget,
	}
}

// besideStored: a record that exists takes back the new ones of its batch, which are acknowledged.
func besideStored() seams {
	var beside perCall[bool]
	s := unwritten(func(r *record, _ *store.Row) bool { return beside.get(r.batch.call) })
	s.batch = func(c *call, b *batch) {
		stored, _ := b.standings()
		beside.set(c, b.operation == rpc.OperationInsert && stored > 0)
	}
	s.answered = beside.forget
	return s
}

// caseTwins gives the lower case of identifiers that differ only by case.
func (b *batch) caseTwins() map[string]bool {
	first, twins := map[string]string{}, map[string]bool{}
	for i := range b.Len() {
		raw, _ := b.Record(i).Field(b.identifier.APIName)
		text, err := rawjson.StringText(raw)
		if err != nil {
			continue
		}
		lower := strings.ToLower(text)
		if other, is := first[lower]; is && other != text {
			twins[lower] = true
		}
		first[lower] = text
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
			r.must(removeAll(r.batch.unit, o.table, o.firstIdentifier().quoted, r.key))
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
	first := o.firstIdentifier()
	r.must(r.batch.unit.With(o.table, first.quoted, r.key, func(rows store.Rows) error {
		found, err := rows.Find(first.quoted, r.key)
		if err != nil || len(found) > 0 {
			return err
		}
		return rows.Put(nil, append(store.AppendMember([]byte{'{'}, first.quoted, r.key), '}'))
	}))
}
