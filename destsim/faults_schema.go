package destsim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// Drift is a schema that was changed in the destination system while the
// service went on with the old one. It exists for as long as its fault fires:
// the planning calls show it and batches are treated by it, but the
// destination's own schema stays as it is.
type Drift struct {
	// Action is remove_field, add_field, retype_field, require_field,
	// remove_object or set_operations.
	Action     string   `json:"action"`
	Object     string   `json:"object,omitempty"` // object_api_name; "": all objects
	Field      string   `json:"field,omitempty"`
	Type       string   `json:"type,omitempty"`       // add_field (string when empty), retype_field
	Operations []string `json:"operations,omitempty"` // set_operations
}

func (d *Drift) check() error {
	takes := map[string][]string{
		"remove_field": {"field"}, "add_field": {"field", "type"}, "retype_field": {"field", "type"},
		"require_field": {"field"}, "remove_object": nil, "set_operations": {"operations"},
	}
	actions := []string{"remove_field", "add_field", "retype_field", "require_field", "remove_object", "set_operations"}
	if !slices.Contains(actions, d.Action) {
		return fmt.Errorf("drift.action: unknown action %q%s", clip(d.Action), didYouMean(d.Action, actions))
	}
	if err := onlyMembers(d, "drift."+d.Action, append(takes[d.Action], "action", "object")); err != nil {
		return err
	}
	switch {
	case slices.Contains(takes[d.Action], "field") && d.Field == "":
		return errors.New("drift.field: is missing")
	case d.Action == "retype_field" && d.Type == "":
		return errors.New("drift.type: is missing")
	case d.Type != "" && !slices.Contains(rpc.FieldTypes(), d.Type):
		return fmt.Errorf("drift.type: unknown type %q%s", clip(d.Type), didYouMean(d.Type, rpc.FieldTypes()))
	case d.Action == "remove_object" && d.Object == "":
		return errors.New("drift.object: is missing")
	case d.Action == "set_operations" && len(d.Operations) == 0:
		return errors.New("drift.operations: must have at least one entry")
	}
	for i, operation := range d.Operations {
		if err := checkOperation(operation); err != nil {
			return fmt.Errorf("drift.operations[%d]: %w", i, err)
		}
	}
	return nil
}

func (d *Drift) of(object string) bool { return d.Object == "" || d.Object == object }

// plan changes the answer of a planning call; the value is the call's own.
func (d *Drift) plan(c *call, value any) any {
	switch v := value.(type) {
	case objectsResult:
		if d.Action == "remove_object" {
			v.Objects = slices.DeleteFunc(v.Objects, func(o rpc.Object) bool { return o.APIName == d.Object })
		}
		return v
	case fieldsResult:
		if d.of(c.object) {
			v.Fields = d.fields(v.Fields)
		}
		return v
	case operationsResult:
		if d.of(c.object) && d.Action == "set_operations" {
			v.Operations = d.Operations
		}
		return v
	}
	return value
}

func (d *Drift) fields(fields []rpc.Field) []rpc.Field {
	switch d.Action {
	case "remove_field":
		return slices.DeleteFunc(fields, func(f rpc.Field) bool { return f.APIName == d.Field })
	case "add_field":
		return append(fields, rpc.Field{
			APIName: d.Field, Label: d.Field, Type: cmp.Or(d.Type, rpc.TypeString), Createable: true, Updateable: true,
		})
	}
	for i := range fields {
		switch {
		case fields[i].APIName != d.Field:
		case d.Action == "retype_field":
			fields[i].Type = d.Type
		case d.Action == "require_field":
			fields[i].Required = true
		}
	}
	return fields
}

// refuse returns why a planning call about an object or a whole batch fails.
func (d *Drift) refuse(object, operation string) *rpc.Error {
	switch {
	case object == "" || !d.of(object):
		return nil
	case d.Action == "remove_object":
		return &rpc.Error{Code: rpc.CodeInvalidParams, Message: fmt.Sprintf("invalid params: unknown object %q", clip(object))}
	case d.Action == "set_operations" && operation != "" && !slices.Contains(d.accepts(), operation):
		return &rpc.Error{Code: rpc.CodeInvalidParams, Message: fmt.Sprintf(
			"invalid params: object %q does not accept batches with the operation %q", clip(object), clip(operation))}
	}
	return nil
}

// accepts are the operations of batches: mirror is sent as upsert and delete.
func (d *Drift) accepts() []string {
	if slices.Contains(d.Operations, rpc.OperationMirror) {
		return append([]string{rpc.OperationUpsert, rpc.OperationDelete}, d.Operations...)
	}
	return d.Operations
}

// batch treats a batch by the changed schema: its plan is seen against copies
// of the object and the field that are changed.
func (d *Drift) batch(b *batch) {
	if d.Field == "" || !d.of(b.object.APIName) {
		return
	}
	changed := &field{
		Field:  rpc.Field{APIName: d.Field, Label: d.Field, Type: cmp.Or(d.Type, rpc.TypeString), Createable: true, Updateable: true},
		quoted: store.Quote(d.Field),
	}
	if f := b.object.byName[d.Field]; f != nil {
		*changed = *f
	}
	col := &column{field: changed}
	switch d.Action {
	case "remove_field":
		col.problem = fmt.Sprintf("field %q does not exist", clip(d.Field))
	case "retype_field":
		changed.Type = d.Type
	case "require_field":
		changed.Required = true
		object := *b.object
		object.required = append(slices.Clone(object.required), changed)
		b.object = &object
	}
	if b.plan.columns[d.Field] == nil {
		return
	}
	b.plan = b.plan.editable()
	b.plan.columns[d.Field] = col
	if b.identifier.APIName == d.Field {
		b.identifier = col
	}
}
