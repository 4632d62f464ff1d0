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
	Known []string // what the type has there
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
		_ = json.Unmarshal(text, &items) // what is no list is found later
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

// Mistyped says what a value of the wrong type must be, without the name of its field.
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

// listWord says of what a list is, where one word does.
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
