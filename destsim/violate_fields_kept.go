package destsim

import (
	"bytes"
	"slices"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// keptFieldViolations do not write every declared field: one of them keeps its
// value, is dropped, or takes the value of another (FLD-011, FLD-014, DAT-003).
func keptFieldViolations() []violation {
	isLast := func(of func(f *field) bool) func(o *object, f *field) bool {
		return func(o *object, f *field) bool { return f == o.lastField(of) }
	}
	optional := func(f *field) bool { return !f.Required }
	return []violation{
		breaks("FLD-011.2", "the second string field of an object that is no identifier is dropped when a record is created",
			seams{rows: dropsSecond}),
		breaks("FLD-011.3", "the second field of any type that is no identifier takes the value of the first field of that type",
			seams{cells: func(_ *call, r *record) { r.repeatFirst() }}),
		breaks("FLD-014", "the last field of an object that can be changed keeps its old value when upsert or update writes an existing record",
			keepsOld(isLast(func(f *field) bool { return f.Updateable }), nil)),
		breaks("FLD-014.2", "boolean fields keep their old values when upsert or update writes an existing record",
			keepsOld(func(_ *object, f *field) bool { return f.Type == rpc.TypeBoolean && !f.Array }, nil)),
		breaks("DAT-003.3", "null in the last optional field of an existing record leaves the old value",
			keepsOld(isLast(optional), store.Null)),
	}
}

// lastField is the last declared field of a kind that is no identifier, nil if
// there is none. A field that was created on write is not declared: it would
// take the place of another one in the middle of a sync.
func (o *object) lastField(of func(f *field) bool) *field {
	for _, f := range slices.Backward(o.fields) {
		if !f.Identifier && !f.custom && of(f) {
			return f
		}
	}
	return nil
}

// firstTwo are the first two declared fields of a type that are neither
// identifiers nor arrays; nil where there are fewer.
func (o *object) firstTwo(typ string) (first, second *field) {
	for _, f := range o.fields {
		switch {
		case f.Type != typ || f.Identifier || f.Array || f.custom:
		case first == nil:
			first = f
		default:
			return first, f
		}
	}
	return first, nil
}

// keepsOld lets the fields that are meant keep what an existing row has in
// them. With a value in only they do so when that one is to be written.
func keepsOld(meant func(o *object, f *field) bool, only []byte) seams {
	return seams{rows: func(_ *call, r *record, rows store.Rows) store.Rows {
		return changedRows{Rows: rows, put: func(old *store.Row, data []byte) error {
			if old == nil {
				return rows.Put(nil, data)
			}
			for _, f := range r.object.fields {
				value, ok := store.Member(data, f.quoted)
				if ok && meant(r.object, f) && (only == nil || bytes.Equal(value, only)) {
					was, _ := store.Member(old.Data, f.quoted)
					data = withMember(data, f.quoted, was)
				}
			}
			return rows.Put(old, data)
		}}
	}}
}

// withMember gives a row's data with another value in a field that it has; nil
// drops the field.
func withMember(data, quoted, value []byte) []byte {
	changed := append(make([]byte, 0, len(data)+len(value)), '{')
	store.EachMember(data, func(name, have []byte) bool {
		if bytes.Equal(name, quoted) {
			have = value
		}
		if have != nil {
			changed = store.AppendMember(changed, name, have)
		}
		return true
	})
	return append(changed, '}')
}

// dropsSecond is FLD-011.2.
func dropsSecond(_ *call, r *record, rows store.Rows) store.Rows {
	return changedRows{Rows: rows, put: func(old *store.Row, data []byte) error {
		if _, second := r.object.firstTwo(rpc.TypeString); old == nil && second != nil {
			data = withMember(data, second.quoted, nil)
		}
		return rows.Put(old, data)
	}}
}

// repeatFirst is FLD-011.3. Only values that both fields can have are copied.
func (r *record) repeatFirst() {
	for _, typ := range rpc.FieldTypes() {
		first, second := r.object.firstTwo(typ)
		if second == nil || second.unique {
			continue
		}
		from, to := r.cell(first), r.cell(second)
		if from != nil && to != nil && (!second.Required || !bytes.Equal(from.raw, store.Null)) {
			to.raw = from.raw
		}
	}
}

// cell is the value of a field, nil when the record has none.
func (r *record) cell(f *field) *cell {
	for i := range r.cells {
		if r.cells[i].column.field == f {
			return &r.cells[i]
		}
	}
	return nil
}
