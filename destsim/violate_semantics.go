package destsim

import (
	"bytes"
	"slices"
	"strings"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// Variants of SEM-010 and SEM-017.
const (
	removesNear = "delete removes every record of the same sync whose key "
	writesNear  = "upsert and update of an existing record set the same values in the first records of the same sync whose key "
)

// semanticsViolations are operations with the wrong effect, and records or objects that
// are mixed up (SEM-*).
var semanticsViolations = []violation{
	breaks("SEM-001", "insert of an absent record is acknowledged and not written",
		unwritten(func(r *record, _ *store.Row) bool { return r.operation == rpc.OperationInsert })),
	breaks("SEM-002", "insert of an existing record overwrites it and reports success", turned(rpc.OperationInsert, rpc.OperationUpsert)),
	breaks("SEM-002.2", "insert of an existing record overwrites it and reports the skip", writtenThough(rpc.OperationInsert)),
	breaks("SEM-003", "insert of an existing record makes a second copy",
		blind(func(r *record) bool { return r.operation == rpc.OperationInsert })),
	breaks("SEM-003.2", "an insert batch with existing and new records is an error and writes nothing",
		refused(rpc.CodeServerError, "duplicate key", func(b *batch) bool {
			stored, _ := b.standings()
			return b.operation == rpc.OperationInsert && stored > 0 && stored < b.Len()
		})),
	keeps("SEM-003.3", "the new records of an insert batch are written and reported as present where an existing one stands before them", abortedInsert,
		Also{"DUR-007", "the records that are reported as present are stored"}),
	keeps("SEM-003.4", "the new records of an insert batch are acknowledged and not written where an existing one stands beside them", besideStored),
	bySuccess("SEM-015.2", rpc.OperationInsert, "existing"),
	keeps("SEM-019", "insert of a deleted record that an insert created before is refused as already present", func() seams {
		return knownKeys(func(r *record, _ result) result { return r.skip(alreadyPresent) })
	}),
	keeps("SEM-019.2", "insert of a deleted record that an insert created before is acknowledged and not written", func() seams {
		return knownKeys(func(_ *record, done result) result { return done })
	}),

	breaks("SEM-004", "update of an existing record is acknowledged and not written",
		unwritten(func(r *record, _ *store.Row) bool { return r.operation == rpc.OperationUpdate })),
	breaks("SEM-005", "update of an absent record creates it and reports success", turned(rpc.OperationUpdate, rpc.OperationUpsert)),
	breaks("SEM-005.2", "update of an absent record creates it and reports the skip", writtenThough(rpc.OperationUpdate)),
	bySuccess("SEM-015", rpc.OperationUpdate, "absent"),

	breaks("SEM-006", "upsert of an absent record is acknowledged and not written",
		unwritten(func(r *record, old *store.Row) bool { return r.operation == rpc.OperationUpsert && old == nil })),
	breaks("SEM-007", "upsert of an existing record is acknowledged and not written",
		unwritten(func(r *record, old *store.Row) bool { return r.operation == rpc.OperationUpsert && old != nil })),
	breaks("SEM-008", "upsert of an existing record with changed values adds a second copy",
		doubled(func(r *record, old *store.Row) bool { return !r.same(old.Data) })),
	keeps("SEM-008.2", "upsert of a record that another sync upserted last adds a second copy", copiedBySync),
	keeps("SEM-012", "upsert of a deleted record with other values than before is acknowledged and not written", softDelete),

	breaks("SEM-009", "delete is acknowledged and removes nothing", seams{rows: func(_ *call, _ *record, rows store.Rows) store.Rows {
		return changedRows{Rows: rows, remove: func(*store.Row) error { return nil }}
	}}),
	breaks("SEM-009.2", "delete writes the record like upsert", turned(rpc.OperationDelete, rpc.OperationUpsert)),
	deletesMore("SEM-010", "delete removes every record that the same sync has written", func(_, _ string) bool { return true }),
	deletesMore("SEM-010.2", "delete removes every record of the same sync whose identifier begins with the first 8 characters of a deleted one", samePrefix),
	deletesMore("SEM-010.3", removesNear+"differs only by letter case from that of a deleted one", ofTexts(strings.EqualFold)),
	deletesMore("SEM-010.4", removesNear+"is, without the white space around it, that of a deleted one",
		ofTexts(func(named, other string) bool { return strings.TrimSpace(named) == strings.TrimSpace(other) })),
	deletesMore("SEM-010.5", removesNear+"ends with that of a deleted one",
		ofTexts(func(named, other string) bool { return strings.HasSuffix(other, named) })),
	writesMore("SEM-017", writesNear+"begins with its key", ofTexts(func(named, other string) bool { return strings.HasPrefix(other, named) })),
	writesMore("SEM-017.2", writesNear+"differs only by letter case from its key", ofTexts(strings.EqualFold)),
	breaks("SEM-011", "a delete batch of which no record exists is an error",
		refused(rpc.CodeServerError, "record not found", func(b *batch) bool {
			stored, _ := b.standings()
			return b.operation == rpc.OperationDelete && b.Len() > 0 && stored == 0
		})),

	breaks("SEM-013", "records are matched by the first identifier of the object whatever is active", firstKeyOnly,
		Also{"SEM-009", "a delete by the second identifier does not find its record"}),
	breaks("SEM-013.3", "upsert of an existing record by another than the first identifier is refused as a duplicate",
		refuses("duplicate key value violates unique constraint", by(rpc.OperationUpsert, func(r *record) bool {
			return r.byAnother() && r.stored()
		}))),
	breaks("SEM-013.4", "upsert of an existing record by another than the first identifier adds a second copy",
		doubled(func(r *record, _ *store.Row) bool { return r.byAnother() })),
	keeps("SEM-014", "identifiers are folded to lower case when the batch holds another that differs only by case", foldedKeys),
	breaks("SEM-014.2", "identifiers of more than 64 characters are cut",
		altersKeys(func(_ *call, text string) string { return text[:min(len(text), 64)] })),
	breaks("SEM-016", "a record that is created in one object is created in every other object whose first identifier has the same type",
		seams{apply: createdEverywhere}),
	breaks("SEM-018", "a delete removes the key from every other object whose first identifier has the same type",
		seams{apply: deletedEverywhere}),
}

// turned carries an operation out as another one.
func turned(from, into string) seams {
	return seams{apply: func(_ *call, r *record, next next) result {
		if r.operation == from {
			r.operation = into
		}
		return next(r)
	}}
}

// writtenThough reports a skip and writes the record all the same.
func writtenThough(operation string) seams {
	return seams{apply: func(_ *call, r *record, next next) result {
		reported := next(r)
		if r.operation == operation && reported.skipped {
			r.operation = rpc.OperationUpsert
			next(r)
		}
		return reported
	}}
}

// bySuccess reports every second batch of a sync run in which all records are
// skipped as a success. A batch of one or two is not counted.
func bySuccess(id, operation, which string) violation {
	return keeps(id, operation+" batches of three or more "+which+" records report success in every second such batch of a sync run", func() seams {
		var batches byRun[int]
		return seams{results: func(c *call, rs []result) []result {
			if c.batch.operation != operation || len(rs) < severalResults ||
				slices.ContainsFunc(rs, func(r result) bool { return !r.skipped }) {
				return rs
			}
			if batches.change(c.batch.Plan.SyncRunID, oneMore)%2 == 0 {
				for i := range rs {
					rs[i].success = true
				}
			}
			return rs
		}}
	})
}

// copiedBySync looks for a record only among those that its own sync upserted last.
func copiedBySync() seams {
	var owners shared[storedKey, *int64]
	return blind(func(r *record) bool {
		if r.operation != rpc.OperationUpsert {
			return false
		}
		own := r.batch.Plan.SyncID
		before := own
		owners.change(r.place(), func(owner *int64) *int64 {
			if owner != nil {
				before = *owner
			}
			return &own
		})
		return before != own
	})
}

// knownKeys remembers records that inserts have created; a delete removes nothing from it. A
// known record is not created again, even if it is gone, and gets the given answer.
func knownKeys(answer func(r *record, done result) result) seams {
	var known shared[storedKey, bool]
	again := func(r *record) bool { return r.operation == rpc.OperationInsert && known.get(r.place()) }
	remembering := puts(func(r *record, _ *store.Row, data []byte) []byte {
		if again(r) {
			return nil
		}
		return data
	})
	remembering.apply = func(_ *call, r *record, next next) result {
		done := next(r)
		switch {
		case r.operation != rpc.OperationInsert || !done.success || done.skipped:
			return done
		case again(r):
			return answer(r, done)
		}
		known.set(r.place(), true)
		return done
	}
	return remembering
}

// softDelete remembers deleted records, and lets upsert bring back only the
// values of then.
func softDelete() seams {
	return buried(func(r *record, rows changedRows, graves *shared[storedKey, []byte]) changedRows {
		rows.put = func(old *store.Row, data []byte) error {
			if grave := graves.get(r.place()); old == nil && grave != nil && r.operation == rpc.OperationUpsert && !r.same(grave) {
				return nil
			}
			graves.take(r.place())
			return rows.Rows.Put(old, data)
		}
		return rows
	})
}

// buried keeps what deletes remove for other calls.
func buried(change func(r *record, rows changedRows, graves *shared[storedKey, []byte]) changedRows) seams {
	var graves shared[storedKey, []byte]
	return seams{rows: func(_ *call, r *record, rows store.Rows) store.Rows {
		return change(r, changedRows{Rows: rows, remove: func(old *store.Row) error {
			graves.set(r.place(), bytes.Clone(old.Data))
			return rows.Remove(old)
		}}, &graves)
	}}
}
