package destsim

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/codec"
	"github.com/destkit/destkit/internal/rawjson"
)

// batchViolations fail a batch as a whole, or do something else with a record than its
// result reports (RES-009, RES-011 to RES-016, RES-018, RES-019).
var batchViolations = []violation{
	breaks("RES-011", "sync_batch without records is an error",
		refused(rpc.CodeInternalError, "index out of range [0] with length 0", func(b *batch) bool { return b.Len() == 0 })),
	breaks("RES-011.2", `sync_batch without records answers "record_results":null`,
		answered(func(c *call) bool {
			return gives(c, rpc.MethodSyncBatch) && string(c.result) == `{"record_results":[]}`
		},
			func(c *call) { c.result = []byte(`{"record_results":null}`) })),
	breaks("RES-012", "update with exactly one record is an error",
		refused(rpc.CodeInternalError, "the bulk interface needs two rows", func(b *batch) bool { return b.operation == rpc.OperationUpdate && b.Len() == 1 })),
	// A delete maps nothing but its key and has no columns to set.
	breaks("RES-013", "a plan that maps only the identifier is an error unless it deletes",
		refused(rpc.CodeInternalError, "syntax error near WHERE", func(b *batch) bool {
			return len(b.plan.columns) == 1 && b.Len() > 0 && b.operation != rpc.OperationDelete
		})),
	breaks("RES-015", "upsert with the same identifier twice in a batch is an error",
		refused(rpc.CodeInternalError, "cannot affect row a second time", func(b *batch) bool { return b.operation == rpc.OperationUpsert && b.repeats() })),
	breaks("RES-018", "a batch of several records of which one fails validation is an error and nothing of it is stored", batched(func(c *call, b *batch) {
		if b.Len() < 2 {
			return
		}
		if message := b.rehearse(); message != "" {
			c.fail(rpc.CodeServerError, message)
		}
	})),

	breaks("RES-009", "a record of which a required field other than the identifier is null is answered with success and not stored",
		pretended(func(r *record) bool { return r.operation != rpc.OperationDelete && !r.anonymous() && r.lacksRequired() })),
	breaks("RES-014", "upsert of a record that is present sets the fields that the plan does not map to null",
		puts(func(r *record, old *store.Row, data []byte) []byte {
			if old == nil || r.operation != rpc.OperationUpsert {
				return data
			}
			return mapMembers(data, func(name, have []byte) []byte {
				if r.batch.plan.maps(name) {
					return have
				}
				return nil
			})
		})),
	keeps("RES-016", "where the first record has another order of members than the schema, strings other than the identifier are assigned by position",
		outOfOrder(func(order func(c *call) map[string]int) seams {
			return seams{cells: func(c *call, r *record) {
				if places := order(c); places != nil {
					r.byPosition(places)
				}
			}}
		})),
	keeps("RES-016.2", "where the first record has another order of members than the schema, the identifier of a result is the first member of its record",
		outOfOrder(func(order func(c *call) map[string]int) seams {
			return seams{apply: func(c *call, r *record, next next) result {
				done := next(r)
				if order(c) != nil {
					_, done.identifier = r.raw.At(0)
				}
				return done
			}}
		})),
	keeps("RES-016.3", "where the first record has another order of members than the schema, changes are refused",
		outOfOrder(func(order func(c *call) map[string]int) seams {
			return seams{apply: func(c *call, r *record, next next) result {
				if order(c) != nil && r.stored() {
					return r.fail("the columns do not match")
				}
				return next(r)
			}}
		})),
	// Nothing is written: there is no key to write to.
	breaks("RES-019", "a record without identifier is answered with success", pretended((*record).anonymous)),
}

// pretended answers the records that are meant with success and does nothing with them.
func pretended(meant func(r *record) bool) seams {
	return seams{apply: func(_ *call, r *record, next next) result {
		if meant(r) {
			return r.ok()
		}
		return next(r)
	}}
}

// key is the canonical identifier of a record, nil where none could be stored.
func (b *batch) key(i int) []byte {
	raw, _ := b.Record(i).Field(b.identifier.APIName)
	if len(raw) == 0 {
		return nil
	}
	if key, problem := b.identifier.canonical(raw); problem == "" && key[0] != 'n' {
		return key
	}
	return nil
}

// repeats reports whether two records have the same identifier.
func (b *batch) repeats() bool {
	seen := make(map[string]bool, b.Len())
	for i := range b.Len() {
		key := string(b.key(i))
		if seen[key] {
			return true
		}
		seen[key] = key != ""
	}
	return false
}

// rehearse applies the records without storing anything and gives the message
// of the first that fails validation.
func (b *batch) rehearse() string {
	s := b.call.sim
	unit, err := s.store.Begin()
	if err != nil || s.broken.Load() {
		return ""
	}
	defer unit.Rollback()
	b.unit = unit
	effect := func(rows store.Rows) error {
		r := &b.record
		// A field that is not there yet would be created for good.
		r.cells = slices.DeleteFunc(r.cells, func(c cell) bool { return c.column.pending })
		var err error
		b.outcome, err = r.effect(frozen(rows))
		return err
	}
	for i := b.from; i < b.to; i++ {
		b.record.reset(b, i, effect)
		r := b.record.apply()
		if b.failed != nil {
			b.failed = nil // the batch itself will meet it again
			return ""
		}
		if r.invalid() {
			return fmt.Sprintf("record %d: %s", i, r.message)
		}
	}
	return ""
}

// frozen are rows that stay as they are.
func frozen(rows store.Rows) store.Rows {
	return changedRows{
		Rows:   rows,
		put:    func(*store.Row, []byte) error { return nil },
		remove: func(*store.Row) error { return nil },
	}
}

// lacksRequired reports whether a required field other than the active
// identifier is null.
func (r *record) lacksRequired() bool {
	for j := range r.raw.Len() {
		name, raw := r.raw.At(j)
		col := r.batch.plan.columns[string(name)]
		if col != nil && col.Required && col.field != r.active.field && raw[0] == 'n' {
			return true
		}
	}
	return false
}

// maps reports whether the plan maps the field of that quoted name.
func (p *plan) maps(quoted []byte) bool {
	for _, col := range p.columns {
		if bytes.Equal(col.quoted, quoted) {
			return true
		}
	}
	return false
}

// outOfOrder hands the places of the fields in the schema to the seams of a batch whose
// first record has its members in another order, and nil to those of any other.
func outOfOrder(s func(order func(c *call) map[string]int) seams) func() seams {
	return func() seams {
		var orders perCall[map[string]int]
		armed := s(orders.get)
		armed.batch = func(c *call, b *batch) {
			if order := places(b.RawPlan); b.Len() > 0 && !follows(b.Record(0), order) {
				orders.set(c, order)
			}
		}
		armed.answered = orders.forget
		return armed
	}
}

// places gives the place of every field in the schema of a plan, which a decoded plan has lost.
func places(rawPlan []byte) map[string]int {
	order := map[string]int{}
	walk, ok := rawjson.WalkObject(membersOf(rawPlan)["schema"])
	for ok {
		var name []byte
		if name, _, ok = walk.Next(); ok {
			order[string(name)] = len(order)
		}
	}
	return order
}

// follows reports whether the members of a record are in that order.
func follows(r codec.RawRecord, order map[string]int) bool {
	before := -1
	for j := range r.Len() {
		name, _ := r.At(j)
		if at, known := order[string(name)]; known {
			if at < before {
				return false
			}
			before = at
		}
	}
	return true
}

// byPosition gives the first string of the record to the string field that
// comes first in the schema, and so on.
func (r *record) byPosition(order map[string]int) {
	var at []int
	var values [][]byte
	for i := range r.cells {
		col := r.cells[i].column
		if col.Type == rpc.TypeString && !col.Array && col.field != r.active.field && r.cells[i].raw[0] == '"' {
			at = append(at, i)
			values = append(values, r.cells[i].raw)
		}
	}
	slices.SortStableFunc(at, func(a, b int) int {
		return order[r.cells[a].column.APIName] - order[r.cells[b].column.APIName]
	})
	for i, value := range values {
		r.cells[at[i]].raw = value
	}
}
