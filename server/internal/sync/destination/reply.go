package destination

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/api"
)

const (
	maxObjects = 2000
	maxFields  = 5000 // per object
	// maxDescribed bounds the bytes that all fields of all objects take, roughly.
	maxDescribed = 16 << 20
	fieldSize    = 160 // besides its texts
	// maxMembers bounds the members of one object of a planning reply.
	maxMembers = 1000
)

// described is the result of two concurrent calls about one object.
type described struct{ fields, operations wireObject }

// describe takes over the results of the calls about the object.
func (o *wireObject) describe(d *described) {
	o.fields, o.operations = d.fields.fields, d.operations.operations
	o.deviations = append(append(o.deviations, d.fields.deviations...), d.operations.deviations...)
}

// The decoders below take replies of planning calls apart member by member, so
// that a missing key is noticed and names keep their case. problem is "" or
// what is wrong; it quotes names, which the caller cleans.

// decodeObjects reads the result of list_objects. Without the right keys the
// call has failed as a whole (spec 7.2.1).
func decodeObjects(result json.RawMessage) (objects []wireObject, problem string) {
	list, problem := member(result, "objects", maxObjects)
	if problem != "" {
		return nil, problem
	}
	switch {
	case len(list) == 0:
		return nil, "result.objects is empty; at least one object is needed"
	case len(list) > maxObjects:
		return nil, fmt.Sprintf("result.objects holds more than %d objects; at most so many are read", maxObjects)
	}
	seen := map[string]int{}
	for i, raw := range list {
		place := fmt.Sprintf("result.objects[%d]", i)
		o, problem := decodeObject(raw)
		if problem != "" {
			return nil, place + problem
		}
		if first, twice := seen[o.APIName]; twice {
			objects[first].deviate("list_objects names the object twice")
			continue
		}
		seen[o.APIName] = len(objects)
		objects = append(objects, o)
	}
	return objects, ""
}

// wireObject is one object as the planning calls describe it.
type wireObject struct {
	rpc.Object
	fields     []rpc.Field
	operations []string
	deviations []string // why the object cannot be written to
}

// maxDeviations are noted of one object; a reply may have one in every field.
const maxDeviations = 20

// deviate notes why the object cannot be written to.
func (o *wireObject) deviate(format string, args ...any) {
	if len(o.deviations) == maxDeviations {
		return
	}
	o.deviations = append(o.deviations, fmt.Sprintf(format, args...))
}

// why returns why the object cannot be written to; nil when nothing is wrong.
func (o *wireObject) why() *string {
	if len(o.deviations) == 0 {
		return nil
	}
	return api.Ptr("This object cannot be written to: " + strings.Join(o.deviations, "; "))
}

// decodeObject reads one entry of list_objects. Without a name there is nothing
// to show, so that fails the call; the rest spoils the object alone.
func decodeObject(raw json.RawMessage) (o wireObject, problem string) {
	members, ok := rawObject(raw)
	if !ok {
		return o, " is not an object"
	}
	if o.APIName, ok = text(members["object_api_name"]); !ok || o.APIName == "" {
		return o, ".object_api_name is missing, empty or not a string"
	}
	if o.Label, ok = text(members["label"]); !ok {
		return o, ".label is missing or not a string"
	}
	// null, "" and false are seen for "no"; on_write is the only published yes.
	create := members["can_create_fields"]
	if word, isText := text(create); isText && word == rpc.CanCreateOnWrite {
		o.CanCreateFields = word
	} else if !rawjson.IsNull(create) && word != "" || !isText && !rawjson.IsNull(create) && string(create) != "false" {
		o.deviate("can_create_fields is neither %q nor absent", rpc.CanCreateOnWrite)
	}
	return o, ""
}

// member gives the elements of the array that a result holds under a key, one more
// than most at the most: an element may be two bytes long, and takes many times that.
func member(result json.RawMessage, key string, most int) (list []json.RawMessage, problem string) {
	members, ok := rawObject(result)
	if !ok {
		return nil, "result is not an object"
	}
	elements := json.NewDecoder(bytes.NewReader(members[key]))
	if start, err := elements.Token(); err != nil || start != json.Delim('[') {
		return nil, fmt.Sprintf("result.%s is missing or not an array", key)
	}
	for list = []json.RawMessage{}; elements.More() && len(list) <= most; {
		var element json.RawMessage
		if err := elements.Decode(&element); err != nil {
			return nil, fmt.Sprintf("result.%s is missing or not an array", key)
		}
		list = append(list, element)
	}
	return list, ""
}

// readFields reads the result of list_fields into the object. A field that
// deviates is left out, and the object cannot be written to.
func (o *wireObject) readFields(result json.RawMessage, room *atomic.Int64) {
	list, problem := member(result, "fields", maxFields)
	switch {
	case problem != "":
		o.deviate("list_fields: %s", problem)
		return
	case len(list) > maxFields:
		o.deviate("list_fields: result.fields holds more than %d fields, which is the most that is read", maxFields)
		list = list[:maxFields]
	}
	seen := map[string]bool{}
	for i, raw := range list {
		f, problem := decodeField(raw)
		switch {
		case problem != "":
			o.deviate("list_fields: result.fields[%d]%s", i, problem)
		case seen[f.APIName]:
			o.deviate("list_fields names the field %q twice", foreign.Clip(f.APIName, 64))
		default:
			if room.Add(-int64(fieldSize+len(f.APIName)+len(f.Label))) < 0 {
				o.deviate("list_fields: the fields of all objects take more than %d bytes, which is the most that is kept", maxDescribed)
				return
			}
			seen[f.APIName] = true
			o.fields = append(o.fields, f)
		}
	}
}

// decodeField reads one field; all eight keys are required.
func decodeField(raw json.RawMessage) (f rpc.Field, problem string) {
	members, ok := rawObject(raw)
	if !ok {
		return f, " is not an object"
	}
	for _, part := range []struct {
		key string
		dst *string
	}{{"field_api_name", &f.APIName}, {"label", &f.Label}, {"type", &f.Type}} {
		if *part.dst, ok = text(members[part.key]); !ok {
			return f, "." + part.key + " is missing or not a string"
		}
	}
	for _, part := range []struct {
		key string
		dst *bool
	}{
		{"identifier", &f.Identifier}, {"required", &f.Required}, {"createable", &f.Createable},
		{"updateable", &f.Updateable}, {"array", &f.Array},
	} {
		if *part.dst, ok = boolean(members[part.key]); !ok {
			return f, "." + part.key + " is missing or not a boolean"
		}
	}
	if f.APIName == "" {
		return f, ".field_api_name is empty"
	}
	if !slices.Contains(rpc.FieldTypes(), f.Type) {
		return f, fmt.Sprintf(".type is %q, which is none of the seven types", foreign.Clip(f.Type, 64))
	}
	return f, ""
}

// boolean reads true and false and nothing that merely looks like them.
func boolean(raw json.RawMessage) (value, ok bool) {
	switch string(raw) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}

// readOperations reads the result of supported_operations. delete is left out
// without reproach: mirror implies it, and some endpoints name it.
func (o *wireObject) readOperations(result json.RawMessage) {
	list, problem := member(result, "operations", maxMembers)
	if problem != "" {
		o.deviate("supported_operations: %s", problem)
		return
	}
	known := []string{rpc.OperationUpsert, rpc.OperationInsert, rpc.OperationUpdate, rpc.OperationMirror}
	for i, raw := range list {
		name, ok := text(raw)
		switch {
		case !ok:
			o.deviate("supported_operations: result.operations[%d] is not a string", i)
		case name == rpc.OperationDelete, slices.Contains(o.operations, name):
		case slices.Contains(known, name):
			o.operations = append(o.operations, name)
		default:
			o.deviate("supported_operations names %q, which is no operation", foreign.Clip(name, 64))
		}
	}
}
