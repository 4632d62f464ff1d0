package destsim

import (
	"fmt"
	"slices"
	"sync/atomic"

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
