package destsim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/codec"
)

// refused turns the batches that are meant down as a whole.
func refused(code int64, message string, meant func(b *batch) bool) seams {
	return seams{batch: func(_ *call, b *batch) *rpc.Error {
		if meant(b) {
			return &rpc.Error{Code: code, Message: message}
		}
		return nil
	}}
}

// batchViolations fail a batch as a whole (RES-011 to RES-013, RES-015,
// RES-018).
func batchViolations() []violation {
	return []violation{
		breaks("RES-011", "sync_batch without records is an error",
			refused(rpc.CodeInternalError, "index out of range [0] with length 0", func(b *batch) bool { return b.Len() == 0 })),
		breaks("RES-011.2", `sync_batch without records answers "record_results":null`,
			seams{result: func(c *call, raw []byte) []byte {
				if c.method == rpc.MethodSyncBatch && string(raw) == `{"record_results":[]}` {
					return []byte(`{"record_results":null}`)
				}
				return raw
			}}),
		breaks("RES-012", "update with exactly one record is an error",
			refused(rpc.CodeInternalError, "the bulk interface needs two rows", func(b *batch) bool { return b.operation == rpc.OperationUpdate && b.Len() == 1 })),
		// A delete maps nothing but its key and has no columns to set.
		breaks("RES-013", "a plan that maps only the identifier is an error unless it deletes",
			refused(rpc.CodeInternalError, "syntax error near WHERE", func(b *batch) bool {
				return len(b.plan.columns) == 1 && b.Len() > 0 && b.operation != rpc.OperationDelete
			})),
		breaks("RES-015", "upsert with the same identifier twice in a batch is an error",
			refused(rpc.CodeInternalError, "cannot affect row a second time", func(b *batch) bool { return b.operation == rpc.OperationUpsert && b.repeats() })),
		breaks("RES-018", "a batch of several records of which one fails validation is an error and nothing of it is stored",
			seams{batch: func(_ *call, b *batch) *rpc.Error {
				if b.Len() < 2 {
					return nil
				}
				if message := b.rehearse(); message != "" {
					return &rpc.Error{Code: rpc.CodeServerError, Message: message}
				}
				return nil
			}}),
	}
}

// repeats reports whether two records have the same identifier.
func (b *batch) repeats() bool {
	seen := make(map[string]bool, b.Len())
	for i := range b.Len() {
		raw, ok := b.Record(i).Field(b.identifier.APIName)
		if !ok {
			continue
		}
		key, problem := b.identifier.canonical(raw)
		if problem != "" || key[0] == 'n' {
			continue
		}
		if seen[string(key)] {
			return true
		}
		seen[string(key)] = true
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
		b.outcome, err = r.effect(frozen{rows})
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
type frozen struct{ store.Rows }

func (frozen) Put(*store.Row, []byte) error { return nil }
func (frozen) Remove(*store.Row) error      { return nil }

// recordViolations do something else with a record than its result says
// (RES-009, RES-014, RES-016, RES-019).
func recordViolations() []violation {
	return []violation{
		breaks("RES-009", "a record of which a required field other than the identifier is null is answered with success and not stored",
			seams{apply: func(_ *call, r *record, next next) result {
				if r.operation != rpc.OperationDelete && !r.anonymous() && r.lacksRequired() {
					return r.ok()
				}
				return next(r)
			}}),
		breaks("RES-014", "upsert of a record that is present sets the fields that the plan does not map to null",
			seams{rows: func(_ *call, r *record, rows store.Rows) store.Rows {
				if r.operation == rpc.OperationUpsert {
					return forgetting{rows, r.batch.plan}
				}
				return rows
			}}),
		keeps("RES-016", "where the first record has another order of members than the schema, strings other than the identifier are assigned by position", func(*Sim) seams {
			var memo schemaOrder
			return seams{cells: func(c *call, r *record) {
				if order := memo.of(c.batch.RawPlan); !follows(c.batch.Record(0), order) {
					r.byPosition(order)
				}
			}}
		}),
		keeps("RES-016.2", "where the first record has another order of members than the schema, the identifier of a result is the first member of its record", func(*Sim) seams {
			var memo schemaOrder
			return seams{apply: func(c *call, r *record, next next) result {
				done := next(r)
				if order := memo.of(c.batch.RawPlan); !follows(c.batch.Record(0), order) {
					_, done.identifier = r.raw.At(0)
				}
				return done
			}}
		}),
		breaks("RES-019", "a record without identifier is answered with success",
			seams{apply: func(_ *call, r *record, next next) result {
				if r.anonymous() {
					return r.ok() // nothing is written: there is no key to write to
				}
				return next(r)
			}}),
	}
}

// lacksRequired reports whether a required field beside the active identifier is
// null.
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

// forgetting are rows of which a change keeps only what the plan maps.
type forgetting struct {
	store.Rows
	plan *plan
}

func (f forgetting) Put(old *store.Row, data []byte) error {
	if old == nil {
		return f.Rows.Put(nil, data)
	}
	kept := make([]byte, 0, len(data)+16)
	kept = append(kept, '{')
	store.EachMember(data, func(name, value []byte) bool {
		if !f.plan.maps(name) {
			value = store.Null
		}
		kept = store.AppendMember(kept, name, value)
		return true
	})
	return f.Rows.Put(old, append(kept, '}'))
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

// schemaOrder remembers the order of the members of the last schema, which a
// decoded plan has lost.
type schemaOrder struct {
	mu   sync.Mutex
	raw  []byte
	last map[string]int
}

// of gives the place of every field in the schema of a plan; what it gives is
// not changed any more.
func (o *schemaOrder) of(rawPlan []byte) map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil || !bytes.Equal(o.raw, rawPlan) {
		o.raw, o.last = bytes.Clone(rawPlan), places(rawPlan)
	}
	return o.last
}

func places(rawPlan []byte) map[string]int {
	order := map[string]int{}
	var members map[string]json.RawMessage
	if json.Unmarshal(rawPlan, &members) != nil {
		return order
	}
	dec := json.NewDecoder(bytes.NewReader(members["schema"]))
	if _, err := dec.Token(); err != nil { // the brace
		return order
	}
	for dec.More() {
		name, err := dec.Token()
		var mapped json.RawMessage
		if err != nil || dec.Decode(&mapped) != nil {
			break
		}
		if text, ok := name.(string); ok {
			order[text] = len(order)
		}
	}
	return order
}

// follows reports whether the members of a record stand in that order.
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
