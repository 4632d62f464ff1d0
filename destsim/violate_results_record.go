package destsim

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/codec"
)

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
