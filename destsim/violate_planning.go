package destsim

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// planningViolations are wrong lists of objects and operations, and batches that do not
// keep what planning has declared (OBJ-*, FLD-011 to FLD-013, OPS-001 to OPS-006).
var planningViolations = []violation{
	breaks("OBJ-001", `list_objects answers "objects" as one object and no array`,
		objectList(func(list []rpc.Object) any { return map[string]any{"objects": list[0]} })),
	breaks("OBJ-001.2", "list_objects gives the last object no label", objectList(func(list []rpc.Object) any {
		return map[string]any{"objects": edited(list, func(_, last map[string]any) { delete(last, "label") })}
	})),
	breaks("OBJ-002", "list_objects answers an empty list", objectList(func([]rpc.Object) any { return objectsResult{[]rpc.Object{}} })),
	breaks("OBJ-003", "list_objects lists the last object twice",
		objectList(func(list []rpc.Object) any { return objectsResult{append(list, list[len(list)-1])} })),
	counts("OBJ-004", "list_objects adds to the name of the last object how often it was called", func(next func() int64) seams {
		return objectList(func(list []rpc.Object) any {
			last := &list[len(list)-1]
			last.APIName = fmt.Sprintf("%s_%d", last.APIName, next())
			return objectsResult{list}
		})
	}),
	breaks("OBJ-005", "a field that is to be created on write is dropped from the record, which is acknowledged", pendingAs(nil)),
	breaks("OBJ-005.3", "a field is created on write and listed, and its value is stored as null", pendingAs(store.Null)),
	breaks("OBJ-005.2", "a field that was created on write is stored and never listed by list_fields", planned(func(c *call, v fieldsResult) any {
		o := c.sim.catalogue.Load().byName[c.object]
		return fieldsResult{slices.DeleteFunc(v.Fields, func(f rpc.Field) bool {
			return o != nil && o.byName[f.APIName] != nil && o.byName[f.APIName].custom
		})}
	})),

	breaks("OPS-001", `supported_operations of the last object lists "append" beside its operations`,
		operationsOfLast(func(list []string) any { return operationsResult{append(list, "append")} })),
	breaks("OPS-001.2", "supported_operations of the last object answers its first operation as a string and no array",
		operationsOfLast(func(list []string) any { return map[string]any{"operations": list[0]} })),
	breaks("OPS-002", "supported_operations of the last object answers an empty list",
		operationsOfLast(func([]string) any { return operationsResult{[]string{}} })),
	breaks("OPS-002.2", "supported_operations of the last object lists its first operation twice",
		operationsOfLast(func(list []string) any { return operationsResult{append(list, list[0])} })),
	breaks("OPS-003", "supported_operations of an unknown object answers those of the first object",
		forUnknown(rpc.MethodSupportedOperations, func(first *object) any { return operationsResult{first.operations} })),

	breaks("FLD-011", "integers from -999 to -1 are stored as strings", alters(rpc.TypeInteger, func(raw []byte) []byte {
		if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil && -999 <= n && n <= -1 {
			return store.Quote(string(raw))
		}
		return nil
	})),
	breaks("FLD-012", "a batch whose active identifier is not the first identifier of the object is an error", batched(func(c *call, b *batch) {
		if first := b.object.firstIdentifier(); first != nil && first != b.identifier.field {
			c.fail(rpc.CodeInvalidParams, fmt.Sprintf("unknown identifier %s", b.identifier.quoted))
		}
	})),
	breaks("FLD-013", "a batch by a field that is no identifier is acknowledged and nothing is written", looseIdentifier),
	breaks("OPS-004", "update writes and answers empty record_results",
		resultsOf(rpc.OperationUpdate, func(rs []result) []result { return rs[:0] }),
		Also{"RES-002", "the records of an update batch have no result"}),
	breaks("OPS-005", "a batch with an operation that is not advertised is processed as upsert",
		seams{accept: func(_ *call, p *plan, err *rpc.Error) *rpc.Error {
			// "mirror" is advertised and refused all the same (spec 4.2).
			if err == nil || p.object == nil || p.operation == "" || !p.identified() ||
				p.object.accepts(p.operation) || slices.Contains(p.object.operations, p.operation) {
				return err
			}
			p.operation = rpc.OperationUpsert
			return nil
		}}),
	breaks("OPS-006", "a delete batch is answered by an error",
		refused(rpc.CodeInvalidParams, "unknown operation delete", func(b *batch) bool { return b.operation == rpc.OperationDelete })),
}

// ofLast reports whether the call is about the object that list_objects names
// last.
func (c *call) ofLast() bool {
	objects := c.sim.catalogue.Load().objects
	return len(objects) > 0 && objects[len(objects)-1].APIName == c.object
}

// forUnknown answers a call that names an object that does not exist, from the first
// object; calls that are wrong in another way stay errors.
func forUnknown(method string, answer func(first *object) any) seams {
	return called(giving(method), func(c *call) {
		catalogue := c.sim.catalogue.Load()
		name, problem := objectName(c.params)
		if problem == "" && catalogue.byName[name] == nil && len(catalogue.objects) > 0 {
			c.answer(answer(catalogue.objects[0]))
		}
	})
}

// objectList changes the result of list_objects.
func objectList(change func(objects []rpc.Object) any) seams {
	return planned(func(_ *call, v objectsResult) any {
		if len(v.Objects) == 0 {
			return v
		}
		return change(v.Objects)
	})
}

// edited gives a list whose first and last entries may have any members.
func edited(list any, edit func(first, last map[string]any)) []any {
	all := tree(list).([]any)
	edit(all[0].(map[string]any), all[len(all)-1].(map[string]any))
	return all
}

// pendingAs gives the fields that are to be created on write another value; nil drops them.
func pendingAs(value []byte) seams {
	return seams{value: func(_ *call, _ *record, cell *cell) {
		if cell.column.pending {
			cell.raw = value
		}
	}}
}

// operationsOfLast changes what supported_operations answers for the last object.
func operationsOfLast(change func(operations []string) any) seams {
	return planned(func(c *call, v operationsResult) any {
		if len(v.Operations) == 0 || !c.ofLast() {
			return v
		}
		return change(v.Operations)
	})
}

// looseIdentifier takes a plan whose active identifier is a field that exists
// and is no identifier. Matching by it would change other rules, so nothing is
// written; a record without a value in it fails as ever.
var looseIdentifier = seams{
	accept: func(_ *call, p *plan, err *rpc.Error) *rpc.Error {
		if err == nil || p.object == nil || !p.object.accepts(p.operation) || p.identifier == nil ||
			p.identifier.pending || p.identifier.Identifier {
			return err
		}
		return nil
	},
	apply: func(_ *call, r *record, next next) result {
		if r.active.Identifier || r.anonymous() {
			return next(r)
		}
		return r.ok()
	},
}

// identified reports whether the active identifier is one.
func (p *plan) identified() bool {
	return p.identifier != nil && p.identifier.Identifier && !p.identifier.pending
}

// anonymous reports whether a record has no value in its active identifier.
func (r *record) anonymous() bool { return len(r.identifier) == 0 || r.identifier[0] == 'n' }

const foreignMessage = "the character set of the table has no room for the text"

// acceptanceViolations refuse records that are good, each with a message and
// without a write (OPS-007, RES-020, DAT-014).
var acceptanceViolations = []violation{
	// An operation is advertised and takes no record.
	breaks("OPS-007", "update refuses every existing record", refuses("the record is locked", by(rpc.OperationUpdate, (*record).stored))),
	breaks("OPS-007.2", "insert refuses every new record", refuses("the record cannot be created", by(rpc.OperationInsert, (*record).absent))),
	breaks("OPS-007.3", "upsert refuses every existing record", refuses("duplicate key", by(rpc.OperationUpsert, (*record).stored))),
	breaks("OPS-007.4", "upsert refuses every new record", refuses("no row to change", by(rpc.OperationUpsert, (*record).absent))),
	breaks("OPS-007.5", "delete refuses every record",
		refuses("deleting is not permitted", by(rpc.OperationDelete, func(*record) bool { return true }))),

	// A value that is taken in one place is refused in another.
	breaks("RES-020", "insert refuses a new record with text outside ASCII in a string field that is no identifier, upsert takes it",
		refuses(foreignMessage, by(rpc.OperationInsert, writing(isForeign)))),
	breaks("RES-020.2", "upsert refuses a record with text outside ASCII in a string field that is no identifier unless it is the first of its batch",
		refuses(foreignMessage, by(rpc.OperationUpsert, func(r *record) bool { return r.index > 0 && r.hasValue(isForeign) }))),

	// Values that the declared type permits are refused in every operation that writes them.
	breaks("DAT-014", "records with text outside ASCII in a string field that is no identifier are refused", refuses(foreignMessage, writing(isForeign))),
	breaks("DAT-014.2", "records with null in an optional field are refused", refuses("a value is missing", writing(isOptionalNull))),
	breaks("DAT-014.3", "records with a negative integer or decimal are refused", refuses("a number is out of range", writing(isNegative))),
	breaks("DAT-014.4", "records with an empty text in a string field are refused",
		refuses("a text is empty", writing(textOf(func(text string) bool { return text == "" })))),
	breaks("DAT-014.5", "records with a text of more than 255 characters in a string field are refused",
		refuses("a text is too long", writing(textOf(func(text string) bool { return utf8.RuneCountInString(text) > columnLength })))),
}

// refuses fails the records that are meant and writes nothing of them.
func refuses(message string, meant func(r *record) bool) seams {
	return seams{apply: func(_ *call, r *record, next next) result {
		if !r.anonymous() && meant(r) {
			return r.fail("%s", message)
		}
		return next(r)
	}}
}

// by means the records of one operation among others that are meant.
func by(operation string, meant func(r *record) bool) func(r *record) bool {
	return func(r *record) bool { return r.operation == operation && meant(r) }
}

// stored reports whether the record is there before it is applied.
func (r *record) stored() bool { return r.batch.standing(r.batch.unit, r.index).stored }
func (r *record) absent() bool { return !r.stored() }

// writing means the records with such a value that go into the store when they are good:
// a delete has none, and a skip stays the skip that it is.
func writing(value func(c *column, value []byte) bool) func(r *record) bool {
	return func(r *record) bool {
		if !r.hasValue(value) {
			return false
		}
		switch r.operation {
		case rpc.OperationInsert:
			return r.absent()
		case rpc.OperationUpdate:
			return r.stored()
		}
		return r.operation == rpc.OperationUpsert
	}
}

// hasValue reports whether an ordinary field of the record has a value that is
// meant: identifiers and arrays are left alone, and so are bad values.
func (r *record) hasValue(meant func(c *column, value []byte) bool) bool {
	for j := range r.raw.Len() {
		name, raw := r.raw.At(j)
		col := r.batch.plan.columns[string(name)]
		if col == nil || col.Identifier || col.Array || col.problem != "" {
			continue
		}
		if value, problem := col.canonical(raw); problem == "" && meant(col, value) {
			return true
		}
	}
	return false
}

// maps reports whether the record has a field, be it null.
func (r *record) maps(name string) bool {
	for j := range r.raw.Len() {
		if is, _ := r.raw.At(j); string(is) == name {
			return true
		}
	}
	return false
}

// textOf means the texts of string fields; null is none.
func textOf(meant func(text string) bool) func(c *column, value []byte) bool {
	return func(c *column, value []byte) bool {
		text, err := rawjson.StringText(value)
		return c.Type == rpc.TypeString && err == nil && meant(text)
	}
}

var isForeign = textOf(func(text string) bool {
	return slices.ContainsFunc([]byte(text), func(b byte) bool { return b >= utf8.RuneSelf })
})

func isOptionalNull(c *column, value []byte) bool { return value[0] == 'n' && !c.Required }

// isNegative looks at the first digits of integers and decimals; a decimal is a
// string.
func isNegative(c *column, value []byte) bool {
	switch c.Type {
	case rpc.TypeInteger:
		return value[0] == '-'
	case rpc.TypeDecimal:
		return value[0] == '"' && value[1] == '-'
	}
	return false
}
