package rawjson

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// UnknownKey is a key of a body that the type it is meant for does not have.
type UnknownKey struct {
	Place string   // such as fields[0].sort
	Key   string   // the last part of it
	Known []string // the keys of the type there
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// OwnReader reports whether values of a type read their JSON by themselves: such a type
// knows its own keys.
func OwnReader(t reflect.Type) bool { return reflect.PointerTo(t).Implements(unmarshaler) }

// UnknownKeys finds the keys of valid JSON that a type does not have, at any depth. Keys
// are exact: encoding/json would take "NAME" for name.
func UnknownKeys(text json.RawMessage, t reflect.Type) []UnknownKey { return unknownKeys(text, t, "") }

func unknownKeys(text json.RawMessage, t reflect.Type, place string) (unknown []UnknownKey) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if OwnReader(t) {
		return nil
	}
	switch t.Kind() {
	case reflect.Slice:
		var items []json.RawMessage
		_ = json.Unmarshal(text, &items) // a later step reports other values
		for i, item := range items {
			unknown = append(unknown, unknownKeys(item, t.Elem(), place+"["+strconv.Itoa(i)+"]")...)
		}
	case reflect.Struct:
		var members map[string]json.RawMessage
		_ = json.Unmarshal(text, &members)
		known := KeysOf(t)
		for _, key := range slices.Sorted(maps.Keys(members)) {
			field := strings.TrimPrefix(place+"."+key, ".")
			if next, ok := known[key]; ok {
				unknown = append(unknown, unknownKeys(members[key], next, field)...)
				continue
			}
			unknown = append(unknown, UnknownKey{field, key, slices.Sorted(maps.Keys(known))})
		}
	}
	return unknown
}

// KeysOf are the JSON keys of a struct with the types of their values.
func KeysOf(t reflect.Type) map[string]reflect.Type {
	keys := map[string]reflect.Type{}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			maps.Copy(keys, KeysOf(field.Type))
		case name != "" && name != "-":
			keys[name] = field.Type
		}
	}
	return keys
}

// Mistyped describes what a value of the wrong type must be, without the name of its field.
func Mistyped(err *json.UnmarshalTypeError) string {
	return "must be " + typeWord(err.Type) + ", not " + valueWord(err.Value)
}

// typeWord is how a reader of JSON calls a Go type.
func typeWord(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list" + listWord(t.Elem())
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Pointer:
		return typeWord(t.Elem())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number of 0 or more"
	}
	return "a whole number"
}

// listWord describes the elements of a list, where one word does.
func listWord(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return " of strings"
	case reflect.Struct, reflect.Map:
		return " of objects"
	}
	return ""
}

// valueWord is how a reader of JSON calls what encoding/json has found.
func valueWord(value string) string {
	switch value {
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "bool":
		return "a boolean"
	}
	if number, found := strings.CutPrefix(value, "number "); found {
		return number
	}
	return "a " + value
}

// Walk walks the members of one object that the caller has validated, also by
// encoding/json where it is UTF-8: no fault can occur, and none is looked for.
type Walk struct {
	b    []byte
	i    int
	more bool
}

// WalkObject starts a walk over the validated object in raw (white space
// before it is skipped); ok is false when raw is another kind of value.
func WalkObject(raw []byte) (m Walk, ok bool) {
	i := SkipSpace(raw, 0)
	if i == len(raw) || raw[i] != '{' {
		return m, false
	}
	m.b = raw
	m.i, m.more, _ = FirstMember(raw, i)
	return m, true
}

// anyDepth is below all depths: encoding/json validates text that is nested deeper.
const anyDepth = -1 << 30

// Next gives the next member: the text of its key and its raw value.
func (m *Walk) Next() (key, raw []byte, ok bool) {
	if !m.more {
		return nil, nil, false
	}
	end, v, f := SkipKey(m.b, m.i)
	if f != FaultNone {
		return nil, nil, false
	}
	key = PlainKey(m.b[m.i+1 : end])
	after, f := SkipValue(m.b, v, anyDepth)
	if f != FaultNone {
		return nil, nil, false
	}
	raw = m.b[v:after:after]
	m.i, m.more, _ = NextMember(m.b, after)
	return key, raw, true
}

// Pick puts the raw values of the named members of a validated object into
// dst, nil where one is absent; the last of a repeated member counts.
func Pick(raw []byte, dst [][]byte, names ...string) bool {
	m, ok := WalkObject(raw)
	if !ok {
		return false
	}
	for key, val, ok := m.Next(); ok; key, val, ok = m.Next() {
		for k, name := range names {
			if string(key) == name {
				dst[k] = val
			}
		}
	}
	return true
}

// ScanObject is Pick for a whole text that is not validated yet: it validates
// and picks in one pass. object is false when the text is another kind of value.
func ScanObject(b []byte, dst [][]byte, names ...string) (object bool, at int, f Fault) {
	i := SkipSpace(b, 0)
	if i == len(b) || b[i] != '{' {
		at, f = SkipText(b)
		return false, at, f
	}
	i, more, f := FirstMember(b, i)
	for more {
		end, v, f := SkipKey(b, i)
		if f != FaultNone {
			return true, v, f
		}
		key := PlainKey(b[i+1 : end])
		if i, f = SkipValue(b, v, 1); f != FaultNone {
			return true, i, f
		}
		for k, name := range names {
			if string(key) == name {
				dst[k] = b[v:i:i]
			}
		}
		if i, more, f = NextMember(b, i); f != FaultNone {
			return true, i, f
		}
	}
	if i = SkipSpace(b, i); f == FaultNone && i != len(b) {
		f = FaultTrailing
	}
	return true, i, f
}
