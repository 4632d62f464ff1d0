package destsim

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// sequenceViolations show only when a record is sent again, with other values, in another
// number, or with two identifiers.
var sequenceViolations = []violation{
	breaks("DUP-001.2", "update of a record that is stored with the same values is reported as not present",
		finds(ofOperation(rpc.OperationUpdate), func(r *record, field []byte, found []*store.Row) []*store.Row {
			if len(found) > 0 && bytes.Equal(field, r.active.quoted) && r.same(found[0].Data) {
				return nil
			}
			return found
		})),
	breaks("SEM-007.2", "upsert of one existing record, alone in its batch, is acknowledged and not written",
		unwritten(func(r *record, old *store.Row) bool {
			return old != nil && r.operation == rpc.OperationUpsert && r.batch.Len() == 1
		})),
	keeps("SEM-012.2", "upsert of a deleted record gives the fields that it leaves out their values of before the delete", revives(rpc.OperationUpsert)),
	keeps("SEM-019.3", "insert of a deleted record gives the fields that it leaves out their values of before the delete", revives(rpc.OperationInsert)),
	breaks("SEM-013.2", "update and upsert of a record with two identifiers change every record that has one of them", eitherKey),
	breaks("FLD-014.3", "a string that is shorter than the one before it keeps the end of that",
		overOld(func(c *cell, have, was []byte) []byte {
			text, err := rawjson.StringText(have)
			old, errOld := rawjson.StringText(was)
			if !c.single(rpc.TypeString) || err != nil || errOld != nil || len(text) >= len(old) {
				return have
			}
			return store.Quote(text + old[len(text):])
		})),
	breaks("DAT-016", "an array that is shorter than the one before it keeps the further items of that",
		overOld(func(c *cell, have, was []byte) []byte {
			items, old := itemsOf(have), itemsOf(was)
			if !c.column.Array || len(items) == 0 || len(items) >= len(old) {
				return have
			}
			return arrayOf(append(items, old[len(items):]...))
		})),
	breaks("DAT-016.2", "an empty array leaves the one before it",
		overOld(func(c *cell, have, was []byte) []byte {
			if c.column.Array && string(have) == "[]" {
				return was
			}
			return have
		})),
	breaks("SPD-006.3", "a batch of more than 999 values is an error", refused(rpc.CodeServerError, "too many SQL variables",
		func(b *batch) bool { return b.Len()*len(b.plan.columns) > 999 })),
	breaks("SPD-006.4", "in batches of more than half of maximum_batch_size null in a string field is stored as an empty text",
		seams{value: func(c *call, r *record, cell *cell) {
			if cell.single(rpc.TypeString) && cell.raw[0] == 'n' && int64(r.batch.Len()) > c.sim.speed.Load().MaximumBatchSize/2 {
				cell.raw = []byte(`""`)
			}
		}}),
	breaks("SPD-006.5", "in batches of more than half of maximum_batch_size upsert of an existing record is acknowledged and not written",
		unwritten(func(r *record, old *store.Row) bool {
			return old != nil && r.operation == rpc.OperationUpsert && int64(r.batch.Len()) > r.batch.call.sim.speed.Load().MaximumBatchSize/2
		})),
	breaks("RES-014.2", "update and upsert of an existing record put another time into the last date_time field where the plan does not map it",
		puts(func(r *record, old *store.Row, data []byte) []byte {
			last := r.object.lastField(func(f *field) bool { return f.Type == rpc.TypeDateTime && !f.Array })
			if old == nil || last == nil || r.batch.plan.maps(last.quoted) {
				return data
			}
			return mapMembers(data, func(name, have []byte) []byte {
				if bytes.Equal(name, last.quoted) {
					return []byte(`"2024-05-06T07:08:09Z"`) // of whatever change it is
				}
				return have
			})
		})),
	breaks("RES-013.2", "upsert of identifiers alone is answered by the page of a gateway with status 502",
		paged(http.StatusBadGateway, "text/html", "<html><body><h1>502 Bad Gateway</h1></body></html>", func(b *batch) bool {
			return b.operation == rpc.OperationUpsert && len(b.plan.columns) == 1 && b.Len() > 0
		})),
}

func ofOperation(operation string) func(r *record) bool {
	return func(r *record) bool { return r.operation == operation }
}

// overOld changes the values that a record has put over other ones, none of them null.
func overOld(change func(c *cell, have, was []byte) []byte) seams {
	return puts(func(r *record, old *store.Row, data []byte) []byte {
		if old == nil {
			return data
		}
		return mapMembers(data, func(name, have []byte) []byte {
			was, ok := store.Member(old.Data, name)
			for i := range r.cells {
				if ok && was[0] != 'n' && have[0] != 'n' && bytes.Equal(r.cells[i].column.quoted, name) {
					return change(&r.cells[i], have, was)
				}
			}
			return have
		})
	})
}

// revives keeps what a delete removes, and puts it below what an operation creates.
func revives(operation string) func() seams {
	return func() seams {
		return buried(func(r *record, rows changedRows, graves *shared[storedKey, []byte]) changedRows {
			rows.put = func(old *store.Row, data []byte) error {
				if grave := graves.take(r.place()); old == nil && grave != nil && r.operation == operation {
					data = mergeCells(grave, r.cells)
				}
				return rows.Rows.Put(old, data)
			}
			return rows
		})
	}
}

// eitherKey finds a record by each identifier that it carries.
var eitherKey = rowsOf(func(r *record) bool { return r.operation == rpc.OperationUpdate || r.operation == rpc.OperationUpsert },
	func(r *record, rows store.Rows) store.Rows {
		return changedRows{Rows: rows, find: func(field, key []byte) ([]*store.Row, error) {
			found, err := rows.Find(field, key)
			if err != nil || !bytes.Equal(field, r.active.quoted) {
				return found, err
			}
			known := map[int64]bool{}
			for _, row := range found {
				known[int64(row.ID)] = true
			}
			for i := range r.cells {
				c := r.cells[i]
				if !c.column.Identifier || c.column.field == r.active.field {
					continue
				}
				others, err := rows.Find(c.column.quoted, c.raw)
				if err != nil {
					return nil, err
				}
				for _, row := range others {
					if !known[int64(row.ID)] {
						found = append(found, row)
					}
				}
			}
			return found, nil
		}}
	})

// ledgerViolations change acknowledged, refused or deleted records after a check has seen it
// as it must be (DUR-006 to DUR-008). Those that are in force only in a sync run which has
// sent U+0000 reach no other rule.
var ledgerViolations = []violation{
	breaks("DUR-006", "a new record with U+0000 in a value is acknowledged and not written", unwritten(func(r *record, old *store.Row) bool {
		return old == nil && r.hasZero()
	})),
	keeps("DUR-006.2", "in a sync run that has sent U+0000, records that a batch has changed are as they were before when the next batch of the run comes", undone,
		Also{"SPD-006", "its full batches carry U+0000, and the next one finds the old values"}),
	keeps("DUR-006.3", "a batch of a sync run that has sent U+0000 changes the first record of the object that is there, and that another run has written", reachesFirst),
	keeps("DUR-007", "a record that fails validation is written, with its identifier alone, when the next batch comes", writtenLater,
		Also{"SEM-013", "the identifier alone of a refused change is written over the record that is there"}),
	breaks("DUR-007.2", "the other values of a change are written where one is not allowed in its field", writtenInPart),
	keeps("DUR-008", "update of a deleted record writes the record again that was deleted, and changes it", undeleted),
}

func (r *record) hasZero() bool {
	return slices.ContainsFunc(r.cells, func(c cell) bool { return holds("\x00")(c.raw) })
}

// before is a row as it was.
type before struct {
	object     *object
	field, key []byte
	data       []byte
}

func (r *record) before(data []byte) before {
	return before{r.object, r.active.quoted, bytes.Clone(r.key), bytes.Clone(data)}
}

// restore writes the row again. A simulator that is closed writes nothing.
func (b before) restore(s *Sim) {
	_ = s.write(func(u store.Unit) error { return putRow(u, b.object.table, b.field, b.key, b.data) })
}

func undone() seams {
	var zero byRun[bool]
	var changed byRun[[]before]
	return seams{
		batch: func(c *call, b *batch) {
			for _, was := range changed.take(b.Plan.SyncRunID) {
				was.restore(c.sim)
			}
		},
		rows: func(_ *call, r *record, rows store.Rows) store.Rows {
			run := r.batch.Plan.SyncRunID
			if r.hasZero() {
				zero.set(run, true)
			}
			return changedRows{Rows: rows, put: func(old *store.Row, data []byte) error {
				if old != nil && zero.get(run) {
					changed.change(run, func(had []before) []before { return append(had, r.before(old.Data)) })
				}
				return rows.Put(old, data)
			}}
		},
	}
}

// reachesFirst keeps the first row of each object that runs without U+0000 have written.
func reachesFirst() seams {
	var zero byRun[bool]
	var first shared[*object, *before]
	return seams{
		batch: func(c *call, b *batch) {
			was := first.get(b.object)
			if was == nil || !zero.get(b.Plan.SyncRunID) {
				return
			}
			for _, f := range b.object.fields {
				value, ok := store.Member(was.data, f.quoted)
				if ok && f.Type == rpc.TypeString && !f.Array && !f.Identifier && value[0] == '"' {
					now := *was
					now.data = withMember(was.data, f.quoted, []byte(`"of another batch"`))
					now.restore(c.sim)
					return
				}
			}
		},
		rows: func(_ *call, r *record, rows store.Rows) store.Rows {
			run := r.batch.Plan.SyncRunID
			if r.hasZero() {
				zero.set(run, true)
			}
			keep := func(data []byte) {
				first.change(r.object, func(had *before) *before {
					switch is := had != nil && bytes.Equal(had.key, r.key); {
					case is && data == nil:
						return nil
					case is || had == nil && data != nil && !zero.get(run):
						now := r.before(data)
						return &now
					}
					return had
				})
			}
			return changedRows{
				Rows:   rows,
				put:    func(old *store.Row, data []byte) error { keep(data); return rows.Put(old, data) },
				remove: func(old *store.Row) error { keep(nil); return rows.Remove(old) },
			}
		},
	}
}

// writtenInPart writes a change value by value, and takes nothing back.
var writtenInPart = seams{apply: func(_ *call, r *record, next next) result {
	stored, done := r.stored(), next(r)
	key := r.batch.key(r.index)
	if !stored || !done.invalid() || strings.HasSuffix(done.message, takenValue) || r.operation == rpc.OperationInsert {
		return done
	}
	r.must(eachRow(r.batch.unit, r.object.table, r.active.quoted, key, func(rows store.Rows, row *store.Row) error {
		data := row.Data
		for j := range r.raw.Len() {
			name, raw := r.raw.At(j)
			if col := r.batch.plan.columns[string(name)]; col != nil && !col.Identifier {
				if value, problem := col.canonical(raw); problem == "" {
					data = withMember(data, col.quoted, value)
				}
			}
		}
		return rows.Put(row, data)
	}))
	return done
}}

// writtenLater keeps the keys of records that fail validation for the next batch.
func writtenLater() seams {
	var refused shared[*object, [][]byte]
	return seams{
		batch: func(c *call, b *batch) {
			for _, key := range refused.take(b.object) {
				row := store.AppendMember([]byte{'{'}, b.identifier.quoted, key)
				_ = c.sim.write(func(u store.Unit) error { // a simulator that is closed writes nothing
					return putRow(u, b.object.table, b.identifier.quoted, key, append(row, '}'))
				})
			}
		},
		apply: func(_ *call, r *record, next next) result {
			done := next(r)
			if key := r.batch.key(r.index); done.invalid() && key != nil {
				refused.change(r.object, func(had [][]byte) [][]byte { return append(had, bytes.Clone(key)) })
			}
			return done
		},
	}
}

// undeleted remembers deleted records, and lets update bring them back.
func undeleted() seams {
	return buried(func(r *record, rows changedRows, graves *shared[storedKey, []byte]) changedRows {
		rows.find = func(field, key []byte) ([]*store.Row, error) {
			if r.operation == rpc.OperationUpdate {
				if grave := graves.take(r.place()); grave != nil {
					if err := rows.Rows.Put(nil, grave); err != nil {
						return nil, err
					}
				}
			}
			return rows.Rows.Find(field, key)
		}
		return rows
	})
}
