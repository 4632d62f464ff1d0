package destsim

import (
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// planningViolations are wrong catalogues and what they declare wrongly
// (OBJ-*, FLD-*, OPS-*).
func planningViolations() []violation {
	return slices.Concat(objectViolations(), fieldViolations(), operationViolations(), declaredViolations())
}

// ofLast reports whether the call asks about the object that list_objects names
// last.
func (c *call) ofLast() bool {
	objects := c.sim.catalogue.Load().objects
	return len(objects) > 0 && objects[len(objects)-1].APIName == c.object
}

// lost gives the first object when the call names one that does not exist;
// calls that are wrong in another way stay errors.
func (c *call) lost(method string) (*object, bool) {
	if c.err != nil || c.method != method {
		return nil, false
	}
	catalogue := c.sim.catalogue.Load()
	name, problem := objectName(c.params)
	if problem != "" || catalogue.byName[name] != nil || len(catalogue.objects) == 0 {
		return nil, false
	}
	return catalogue.objects[0], true
}

// objectList changes the result of list_objects; the slice is the call's own.
func objectList(change func(objects []rpc.Object) any) seams {
	return seams{plan: func(_ *call, value any) any {
		if v, ok := value.(objectsResult); ok && len(v.Objects) > 0 {
			return change(v.Objects)
		}
		return value
	}}
}

// objectViolations are wrong lists of objects (OBJ-*).
func objectViolations() []violation {
	return []violation{
		breaks("OBJ-001", `list_objects answers "objects" as one object and no array`,
			objectList(func(list []rpc.Object) any { return map[string]any{"objects": list[0]} })),
		breaks("OBJ-001.2", "list_objects gives the last object no label",
			objectList(func(list []rpc.Object) any {
				all := tree(list).([]any)
				delete(all[len(all)-1].(map[string]any), "label")
				return map[string]any{"objects": all}
			})),
		breaks("OBJ-002", "list_objects answers an empty list",
			objectList(func([]rpc.Object) any { return objectsResult{[]rpc.Object{}} })),
		breaks("OBJ-003", "list_objects lists the last object twice",
			objectList(func(list []rpc.Object) any { return objectsResult{append(list, list[len(list)-1])} })),
		keeps("OBJ-004", "list_objects adds to the name of the last object how often it was called", func(*Sim) seams {
			var calls atomic.Int64
			return objectList(func(list []rpc.Object) any {
				last := &list[len(list)-1]
				last.APIName = fmt.Sprintf("%s_%d", last.APIName, calls.Add(1))
				return objectsResult{list}
			})
		}),
		breaks("OBJ-005", "a field that is to be created on write is dropped from the record, which is acknowledged",
			seams{cells: func(_ *call, r *record) {
				r.cells = slices.DeleteFunc(r.cells, func(c cell) bool { return c.column.pending })
			}}),
		breaks("OBJ-005.3", "a field is created on write and listed, and its value is stored as null",
			seams{cells: func(_ *call, r *record) {
				for i := range r.cells {
					if r.cells[i].column.pending {
						r.cells[i].raw = []byte("null")
					}
				}
			}}),
		breaks("OBJ-005.2", "a field that was created on write is stored and never listed by list_fields",
			seams{plan: func(c *call, value any) any {
				v, ok := value.(fieldsResult)
				o := c.sim.catalogue.Load().byName[c.object]
				if !ok || o == nil {
					return value
				}
				return fieldsResult{slices.DeleteFunc(v.Fields, func(f rpc.Field) bool {
					have := o.byName[f.APIName]
					return have != nil && have.custom
				})}
			}}),
	}
}

// operationsOfLast changes what supported_operations answers for the last
// object; the slice is the call's own.
func operationsOfLast(change func(operations []string) any) seams {
	return seams{plan: func(c *call, value any) any {
		if v, ok := value.(operationsResult); ok && len(v.Operations) > 0 && c.ofLast() {
			return change(v.Operations)
		}
		return value
	}}
}

// operationViolations are wrong lists of operations (OPS-001 to OPS-003).
func operationViolations() []violation {
	return []violation{
		breaks("OPS-001", `supported_operations of the last object lists "append" beside its operations`,
			operationsOfLast(func(list []string) any { return operationsResult{append(list, "append")} })),
		breaks("OPS-001.2", "supported_operations of the last object answers its first operation as a string and no array",
			operationsOfLast(func(list []string) any { return map[string]any{"operations": list[0]} })),
		breaks("OPS-002", "supported_operations of the last object answers an empty list",
			operationsOfLast(func([]string) any { return operationsResult{[]string{}} })),
		breaks("OPS-002.2", "supported_operations of the last object lists its first operation twice",
			operationsOfLast(func(list []string) any { return operationsResult{append(list, list[0])} })),
		breaks("OPS-003", "supported_operations of an unknown object answers those of the first object",
			seams{parsed: func(c *call) {
				if first, ok := c.lost(rpc.MethodSupportedOperations); ok {
					c.answer(operationsResult{first.operations})
				}
			}}),
	}
}

// declaredViolations are batches that do not keep what planning has declared
// (FLD-011 to FLD-013, OPS-004 to OPS-006).
func declaredViolations() []violation {
	return []violation{
		breaks("FLD-011", "integers from -999 to -1 are stored as strings",
			seams{value: func(_ *call, _ *record, c *cell) { c.quoteSmall() }}),
		breaks("FLD-012", "a batch whose active identifier is not the first identifier of the object is an error",
			seams{batch: func(_ *call, b *batch) *rpc.Error {
				if first := b.object.firstIdentifier(); first == nil || first == b.identifier.field {
					return nil
				}
				return &rpc.Error{Code: rpc.CodeInvalidParams, Message: fmt.Sprintf("unknown identifier %s", b.identifier.quoted)}
			}}),
		breaks("FLD-013", "a batch by a field that is no identifier is acknowledged and nothing is written", looseIdentifier()),
		breaks("OPS-004", "update writes and answers empty record_results",
			seams{results: func(c *call, rs []result) []result {
				if c.batch.operation == rpc.OperationUpdate {
					return rs[:0]
				}
				return rs
			}}, Also{"RES-002", "the records of an update batch have no result"}),
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
}

// quoteSmall turns a small negative integer into a string. Identifiers stay as
// they are: a changed key would be another rule.
func (c *cell) quoteSmall() {
	if c.column.Type != rpc.TypeInteger || c.column.Array || c.column.Identifier {
		return
	}
	if n, err := strconv.ParseInt(string(c.raw), 10, 64); err == nil && -999 <= n && n <= -1 {
		c.raw = store.Quote(strconv.FormatInt(n, 10))
	}
}

// looseIdentifier takes a plan whose active identifier is a field that exists
// and is no identifier. Matching by it would change other rules, so nothing is
// written; a record without a value in it fails as ever.
func looseIdentifier() seams {
	return seams{
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
}

// identified reports whether the active identifier is one.
func (p *plan) identified() bool {
	return p.identifier != nil && p.identifier.Identifier && !p.identifier.pending
}

// anonymous reports whether a record has no value in its active identifier.
func (r *record) anonymous() bool { return len(r.identifier) == 0 || r.identifier[0] == 'n' }
