package destsim

import (
	"strings"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// neighbourViolations reach records whose keys only look like the one that is
// named (SEM-010, SEM-017). Like the other ways of SEM-010 they stay within
// what one sync has written.
func neighbourViolations() []violation {
	deletes := func(id, changes string, alike func(named, other string) bool) violation {
		return keeps(id, "delete removes every record of the same sync whose key "+changes+" a deleted one", func(*Sim) seams { return deletesMore(ofTexts(alike)) })
	}
	writes := func(id, changes string, alike func(named, other string) bool) violation {
		return keeps(id, "upsert and update of an existing record set the same values in the first records of the same sync whose key "+changes+" its key", func(*Sim) seams { return writesMore(ofTexts(alike)) })
	}
	return []violation{
		deletes("SEM-010.3", "differs only by letter case from that of", strings.EqualFold),
		deletes("SEM-010.4", "is, without the white space around it, that of", func(named, other string) bool {
			return strings.TrimSpace(named) == strings.TrimSpace(other)
		}),
		deletes("SEM-010.5", "ends with that of", func(named, other string) bool { return strings.HasSuffix(other, named) }),
		writes("SEM-017", "begins with", func(named, other string) bool { return strings.HasPrefix(other, named) }),
		writes("SEM-017.2", "differs only by letter case from", strings.EqualFold),
	}
}

// ofTexts compares canonical keys by their texts; integers are never alike.
func ofTexts(alike func(named, other string) bool) func(named, other string) bool {
	return func(named, other string) bool {
		a, err := rawjson.StringText([]byte(named))
		b, otherErr := rawjson.StringText([]byte(other))
		return err == nil && otherErr == nil && alike(a, b)
	}
}

// rememberedKeys is how many records of a sync SEM-017 knows: a sync that
// writes many of them is not slowed down by looking through all.
const rememberedKeys = 200

// addFew is add until so many records are known.
func (k *syncKeys) addFew(id int64, place storedKey) {
	k.mu.Lock()
	full := len(k.written[id]) >= rememberedKeys
	k.mu.Unlock()
	if !full {
		k.add(id, place)
	}
}

// find gives the records of a sync other than the named one that are meant.
func (k *syncKeys) find(id int64, named storedKey, meant func(named, other string) bool) (keys []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for place := range k.written[id] {
		if place != named && place.object == named.object && place.field == named.field && meant(named.key, place.key) {
			keys = append(keys, place.key)
		}
	}
	return keys
}

// writesMore changes further records that the same sync has written.
func writesMore(meant func(named, other string) bool) seams {
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
		known.addFew(b.Plan.SyncID, r.place())
		if !existed || r.operation == rpc.OperationInsert {
			return done
		}
		for _, key := range known.find(b.Plan.SyncID, r.place(), meant) {
			if err := r.copyTo([]byte(key)); err != nil {
				b.failed = err
			}
		}
		return done
	}}
}

// copyTo sets the values of the record that need not be unique in the rows of
// another key.
func (r *record) copyTo(key []byte) error {
	var plain []cell
	for _, c := range r.cells {
		if !c.column.Identifier && !c.column.unique {
			plain = append(plain, c)
		}
	}
	return r.batch.unit.With(r.object.table, r.active.quoted, key, func(rows store.Rows) error {
		found, err := rows.Find(r.active.quoted, key)
		for _, old := range found {
			if err = rows.Put(old, mergeCells(old.Data, plain)); err != nil {
				return err
			}
		}
		return err
	})
}
