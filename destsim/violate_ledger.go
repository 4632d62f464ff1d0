package destsim

import (
	"bytes"
	"slices"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// ledgerViolations break what was acknowledged, refused or deleted after a check has seen
// it as it must be (DUR-006 to DUR-008). Those that are in force only in a sync run which has
// sent U+0000 reach no other rule.
var ledgerViolations = []violation{
	breaks("DUR-006", "a new record with U+0000 in a value is acknowledged and not written", unwritten(func(r *record, old *store.Row) bool {
		return old == nil && r.hasZero()
	})),
	keeps("DUR-006.2", "in a sync run that has sent U+0000, records that a batch has changed are as they were before when the next batch of the run comes", undone),
	keeps("DUR-006.3", "a batch of a sync run that has sent U+0000 changes the first record of the object that is there, and that another run has written", reachesFirst),
	keeps("DUR-007", "a record that fails validation is written, with its identifier alone, when the next batch comes", writtenLater),
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

// undeleted remembers what was deleted, and lets update bring it back.
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
