package records

import (
	"slices"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// Object is a destination object with what a plan needs of it.
type Object struct {
	rpc.Object
	Fields     []rpc.Field
	Operations []string
	Identifier rpc.Field
	Mapped     []rpc.Field // the identifier first
}

// ForOperation chooses what an operation maps: the identifier first, then the
// fields that it may write.
func (o Object) ForOperation(operation, identifier string, only []string) (Object, error) {
	if o.Identifier = chooseIdentifier(o.Fields, identifier); o.Identifier.APIName == "" {
		if identifier != "" {
			return o, wire.Usagef("the object %q has no field %q that may be an identifier", o.APIName, identifier)
		}
		return o, wire.Usagef("the object %q has no field of type string or integer that may be an identifier: nothing can be written into it", o.APIName)
	}
	o.Mapped = []rpc.Field{o.Identifier}
	for _, name := range only {
		if !slices.ContainsFunc(o.Fields, func(f rpc.Field) bool { return f.APIName == name }) {
			return o, wire.Usagef("the object %q has no field %q", o.APIName, name)
		}
	}
	for _, f := range o.Fields {
		writable := map[string]bool{
			rpc.OperationUpsert: f.Createable && f.Updateable, rpc.OperationInsert: f.Createable,
			rpc.OperationUpdate: f.Updateable, rpc.OperationDelete: false,
		}[operation]
		wanted := len(only) == 0 || slices.Contains(only, f.APIName)
		// A required field must be there when records are created.
		needed := f.Required && operation != rpc.OperationDelete
		if f.APIName != o.Identifier.APIName && (needed || writable && wanted) {
			o.Mapped = append(o.Mapped, f)
		}
	}
	return o, nil
}

func chooseIdentifier(fields []rpc.Field, name string) rpc.Field {
	var found rpc.Field
	for _, f := range fields {
		usable := f.Identifier && !f.Array && (f.Type == rpc.TypeString || f.Type == rpc.TypeInteger)
		if !usable || name != "" && f.APIName != name {
			continue
		}
		if f.Required {
			return f
		}
		if found.APIName == "" {
			found = f
		}
	}
	return found
}

// Supports reports whether an object takes batches of an operation; deletes come
// with mirror.
func (o Object) Supports(operation string) bool {
	if operation == rpc.OperationDelete {
		return slices.Contains(o.Operations, rpc.OperationMirror) || slices.Contains(o.Operations, rpc.OperationDelete)
	}
	if operation == rpc.OperationUpsert && slices.Contains(o.Operations, rpc.OperationMirror) {
		return true
	}
	return slices.Contains(o.Operations, operation)
}
