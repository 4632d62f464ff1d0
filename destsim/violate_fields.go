package destsim

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// fieldViolations are wrong lists of fields, and declared fields that are not written:
// they keep their value, are dropped, or take the value of another (FLD-*, DAT-003.3).
var fieldViolations = []violation{
	breaks("FLD-001", `list_fields gives the first field of the last object "identifier":"true"`, fieldsOf((*call).ofLast, func(fields []rpc.Field) any {
		return map[string]any{"fields": edited(fields, func(first, _ map[string]any) { first["identifier"] = "true" })}
	})),
	breaks("FLD-001.2", `list_fields leaves "createable" out of the last field of the last object`, fieldsOf((*call).ofLast, func(fields []rpc.Field) any {
		return map[string]any{"fields": edited(fields, func(_, last map[string]any) { delete(last, "createable") })}
	})),
	breaks("FLD-002", "list_fields lists the last field of the last object twice", fieldsOf((*call).ofLast, func(fields []rpc.Field) any {
		return fieldsResult{append(fields, fields[len(fields)-1])}
	})),
	breaks("FLD-003", `list_fields gives the last field of the last object the type "unknown"`,
		edits((*call).ofLast, isLast, func(f *rpc.Field) { f.Type = "unknown" })),
	breaks("FLD-004", "list_fields marks no field of the last object as an identifier",
		edits((*call).ofLast, isIdentifier, func(f *rpc.Field) { f.Identifier = false })),
	breaks("FLD-005", "list_fields says that the identifiers of the last object are not required",
		edits((*call).ofLast, isIdentifier, func(f *rpc.Field) { f.Required = false })),
	breaks("FLD-006", "list_fields marks the first date field of the first object as an identifier as well",
		edits((*call).ofFirst, isFirst(func(f rpc.Field) bool { return f.Type == rpc.TypeDate && !f.Array }), func(f *rpc.Field) { f.Identifier = true })),
	breaks("FLD-007", "list_fields says that the first required field of the first object that is no identifier is not createable",
		edits((*call).ofFirst, isFirst(func(f rpc.Field) bool { return f.Required && !f.Identifier }), func(f *rpc.Field) { f.Createable = false })),
	breaks("FLD-008", "list_fields says that the last field of the last object is neither createable nor updateable",
		edits((*call).ofLast, isLast, func(f *rpc.Field) { f.Createable, f.Updateable = false, false })),
	breaks("FLD-009", "list_fields of an unknown object answers the fields of the first object",
		forUnknown(rpc.MethodListFields, func(first *object) any { return fieldsResult{first.list()} })),
	breaks("FLD-009.2", "list_fields of an unknown object answers an empty list",
		forUnknown(rpc.MethodListFields, func(*object) any { return fieldsResult{[]rpc.Field{}} })),
	breaks("FLD-010", "list_fields of an object that holds no record answers an empty list",
		fieldsOf((*call).ofEmpty, func([]rpc.Field) any { return fieldsResult{[]rpc.Field{}} })),
	breaks("FLD-015", "list_fields answers for the object that has the label of the call, whatever name the call gives",
		mislabelled(func(c *call, o *object) { c.answer(fieldsResult{o.list()}) })),
	breaks("FLD-015.2", "list_fields does not know an object under the label of another object",
		mislabelled(func(c *call, _ *object) { c.fail(rpc.CodeInvalidParams, "unknown object: name and label do not match") })),

	breaks("FLD-011.2", "the second string field of an object that is no identifier is dropped when a record is created",
		puts(func(r *record, old *store.Row, data []byte) []byte {
			if _, second := r.object.firstTwo(rpc.TypeString); old == nil && second != nil {
				return withMember(data, second.quoted, nil)
			}
			return data
		})),
	breaks("FLD-011.3", "the second field of any type that is no identifier takes the value of the first field of that type",
		seams{cells: func(_ *call, r *record) { r.repeatFirst() }}),
	breaks("FLD-011.4", "a record that maps the last optional field of an object is refused, whatever its value",
		refuses("the statement cannot be prepared", func(r *record) bool {
			last := r.object.lastField(func(f *field) bool { return !f.Required && !f.Identifier })
			return last != nil && r.operation != rpc.OperationDelete && r.maps(last.APIName)
		})),
	breaks("FLD-014", "the last field of an object that can be changed keeps its old value when upsert or update writes an existing record",
		keepsOld(func(o *object, f *field) bool { return f == o.lastField(func(f *field) bool { return f.Updateable }) }, nil)),
	breaks("FLD-014.2", "boolean fields keep their old values when upsert or update writes an existing record",
		keepsOld(func(_ *object, f *field) bool { return f.Type == rpc.TypeBoolean && !f.Array }, nil)),
	breaks("DAT-003.3", "null in the last optional field of an existing record leaves the old value",
		keepsOld(func(o *object, f *field) bool { return f == o.lastField(func(f *field) bool { return !f.Required }) }, store.Null)),
}

// fieldsOf changes what list_fields gives for the objects that are meant.
func fieldsOf(meant func(c *call) bool, change func(fields []rpc.Field) any) seams {
	return planned(func(c *call, v fieldsResult) any {
		if len(v.Fields) == 0 || !meant(c) {
			return v
		}
		return change(v.Fields)
	})
}

// edits changes the fields that are picked of the objects that are meant.
func edits(meant func(c *call) bool, picked func(fields []rpc.Field, i int) bool, edit func(f *rpc.Field)) seams {
	return fieldsOf(meant, func(fields []rpc.Field) any {
		for i := range fields {
			if picked(fields, i) {
				edit(&fields[i])
			}
		}
		return fieldsResult{fields}
	})
}

func isLast(fields []rpc.Field, i int) bool       { return i == len(fields)-1 }
func isIdentifier(fields []rpc.Field, i int) bool { return fields[i].Identifier }

// isFirst picks the first field of a kind.
func isFirst(of func(f rpc.Field) bool) func(fields []rpc.Field, i int) bool {
	return func(fields []rpc.Field, i int) bool { return i == slices.IndexFunc(fields, of) }
}

// ofFirst reports whether the call is about the object that list_objects names
// first.
func (c *call) ofFirst() bool {
	objects := c.sim.catalogue.Load().objects
	return len(objects) > 0 && objects[0].APIName == c.object
}

// mislabelled treats a call of list_fields whose label is that of another object.
func mislabelled(do func(c *call, o *object)) seams {
	return called(giving(rpc.MethodListFields), func(c *call) {
		var p struct{ Object rpc.Object }
		if json.Unmarshal(c.params, &p) != nil {
			return
		}
		for _, o := range c.sim.catalogue.Load().objects {
			if o.Label == p.Object.Label && o.APIName != p.Object.APIName {
				do(c, o)
				return
			}
		}
	})
}

// list returns the fields in their wire form.
func (o *object) list() []rpc.Field {
	fields := make([]rpc.Field, len(o.fields))
	for i, f := range o.fields {
		fields[i] = f.Field
	}
	return fields
}

// ofEmpty reports whether the object of the call holds no record.
func (c *call) ofEmpty() bool {
	o := c.sim.catalogue.Load().byName[c.object]
	if o == nil {
		return false
	}
	_, count, err := c.sim.store.Scan(o.table.Name, 0, 0)
	return err == nil && count == 0
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
	return puts(func(r *record, old *store.Row, data []byte) []byte {
		if old == nil {
			return data
		}
		for _, f := range r.object.fields {
			value, ok := store.Member(data, f.quoted)
			if ok && meant(r.object, f) && (only == nil || bytes.Equal(value, only)) {
				was, _ := store.Member(old.Data, f.quoted)
				data = withMember(data, f.quoted, was)
			}
		}
		return data
	})
}

// withMember gives a row's data with another value in a field that it has; nil
// drops the field.
func withMember(data, quoted, value []byte) []byte {
	return mapMembers(data, func(name, have []byte) []byte {
		if bytes.Equal(name, quoted) {
			return value
		}
		return have
	})
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
