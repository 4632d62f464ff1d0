package destsim

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
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
