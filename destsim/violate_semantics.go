package destsim

import (
	"slices"
	"sync"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// semanticsViolations are operations with the wrong effect (SEM-*).
func semanticsViolations() []violation {
	return slices.Concat(insertViolations(), updateViolations(), upsertViolations(), deleteViolations(), neighbourViolations(), keyViolations())
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
	return keeps(id, operation+" batches of three or more "+which+" records report success in every second such batch of a sync run", func(*Sim) seams {
		var batches byRun[int]
		return seams{results: func(c *call, rs []result) []result {
			if c.batch.operation != operation || len(rs) < severalResults ||
				slices.ContainsFunc(rs, func(r result) bool { return !r.skipped }) {
				return rs
			}
			if batches.change(c.batch.Plan.SyncRunID, func(n int) int { return n + 1 })%2 == 0 {
				for i := range rs {
					rs[i].success = true
				}
			}
			return rs
		}}
	})
}

// insertViolations are SEM-001 to SEM-003, SEM-015.2 and SEM-019.
func insertViolations() []violation {
	const insert = rpc.OperationInsert
	return []violation{
		breaks("SEM-001", "insert of an absent record is acknowledged and not written",
			unwritten(func(r *record, _ *store.Row) bool { return r.operation == insert })),
		breaks("SEM-002", "insert of an existing record overwrites it and reports success", turned(insert, rpc.OperationUpsert)),
		breaks("SEM-002.2", "insert of an existing record overwrites it and reports the skip", writtenThough(insert)),
		breaks("SEM-003", "insert of an existing record makes a second copy",
			seams{rows: func(_ *call, r *record, rows store.Rows) store.Rows {
				if r.operation == insert {
					return blindRows{rows, r}
				}
				return rows
			}}),
		breaks("SEM-003.2", "an insert batch with existing and new records is an error and writes nothing",
			refused(rpc.CodeServerError, "duplicate key", func(b *batch) bool {
				if b.operation != insert {
					return false
				}
				stored := count(b.standings(), standing.isStored)
				return stored > 0 && stored < b.Len()
			})),
		bySuccess("SEM-015.2", insert, "existing"),
		keeps("SEM-019", "insert of a deleted record that an insert created before is refused as already present", func(*Sim) seams {
			return knownKeys(func(r *record, _ result) result { return r.skip(alreadyPresent) })
		}),
		keeps("SEM-019.2", "insert of a deleted record that an insert created before is acknowledged and not written", func(*Sim) seams { return knownKeys(func(_ *record, done result) result { return done }) }),
	}
}

func (s standing) isStored() bool { return s.stored }
func (s standing) isSame() bool   { return s.same }

func count(all []standing, of func(standing) bool) (n int) {
	for _, s := range all {
		if of(s) {
			n++
		}
	}
	return n
}

// updateViolations are SEM-004, SEM-005 and SEM-015.
func updateViolations() []violation {
	const update = rpc.OperationUpdate
	return []violation{
		breaks("SEM-004", "update of an existing record is acknowledged and not written",
			unwritten(func(r *record, _ *store.Row) bool { return r.operation == update })),
		breaks("SEM-005", "update of an absent record creates it and reports success", turned(update, rpc.OperationUpsert)),
		breaks("SEM-005.2", "update of an absent record creates it and reports the skip", writtenThough(update),
			Also{"SEM-015", "the second update finds the record that the first has created, and succeeds"}),
		bySuccess("SEM-015", update, "absent"),
	}
}

// upsertViolations are SEM-006 to SEM-008 and SEM-012.
func upsertViolations() []violation {
	const upsert = rpc.OperationUpsert
	return []violation{
		breaks("SEM-006", "upsert of an absent record is acknowledged and not written",
			unwritten(func(r *record, old *store.Row) bool { return r.operation == upsert && old == nil })),
		breaks("SEM-007", "upsert of an existing record is acknowledged and not written",
			unwritten(func(r *record, old *store.Row) bool { return r.operation == upsert && old != nil })),
		breaks("SEM-008", "upsert of an existing record with changed values adds a second copy",
			doubled(func(r *record, old *store.Row) bool { return !r.same(old.Data) })),
		keeps("SEM-008.2", "upsert of a record that another sync upserted last adds a second copy", func(*Sim) seams { return copiedBySync() }),
		keeps("SEM-012", "upsert of a deleted record with other values than before is acknowledged and not written", func(*Sim) seams { return softDelete() }),
	}
}

// copiedBySync looks for a record only among those that its own sync upserted last.
func copiedBySync() seams {
	var mu sync.Mutex
	owners := map[storedKey]int64{}
	return seams{rows: func(_ *call, r *record, rows store.Rows) store.Rows {
		if r.operation != rpc.OperationUpsert {
			return rows
		}
		mu.Lock()
		defer mu.Unlock()
		owner, known := owners[r.place()]
		owners[r.place()] = r.batch.Plan.SyncID
		if known && owner != r.batch.Plan.SyncID {
			return blindRows{rows, r}
		}
		return rows
	}}
}

// knownKeys remembers what inserts have created; a delete empties nothing of it. What
// is known is not created again, whether it is there or not, and answered as told.
func knownKeys(answer func(r *record, done result) result) seams {
	var mu sync.Mutex
	known := map[storedKey]bool{}
	isKnown := func(r *record) bool {
		mu.Lock()
		defer mu.Unlock()
		return r.operation == rpc.OperationInsert && known[r.place()]
	}
	return seams{
		apply: func(_ *call, r *record, next next) result {
			done := next(r)
			switch {
			case r.operation != rpc.OperationInsert || !done.success || done.skipped:
				return done
			case isKnown(r):
				return answer(r, done)
			}
			mu.Lock()
			defer mu.Unlock()
			known[r.place()] = true
			return done
		},
		rows: func(_ *call, r *record, rows store.Rows) store.Rows {
			return changedRows{Rows: rows, put: func(old *store.Row, data []byte) error {
				if isKnown(r) {
					return nil
				}
				return rows.Put(old, data)
			}}
		},
	}
}
