package server

import (
	"encoding/json"
	"reflect"
)

// exactKeys takes out of valid JSON what a type does not have, at any depth.
// encoding/json would take "NAME" for name, and the document has not looked at
// it: it is an unknown field, which the live dialect ignores.
func exactKeys(text json.RawMessage, t reflect.Type) json.RawMessage {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return text
	}
	switch t.Kind() {
	case reflect.Slice:
		var items []json.RawMessage
		if json.Unmarshal(text, &items) != nil || items == nil {
			return text
		}
		for i, item := range items {
			items[i] = exactKeys(item, t.Elem())
		}
		return written(items, text)
	case reflect.Map, reflect.Struct:
		var members map[string]json.RawMessage
		if json.Unmarshal(text, &members) != nil || members == nil {
			return text
		}
		known := map[string]reflect.Type{}
		if t.Kind() == reflect.Struct {
			known = keysOf(t)
		}
		for key, value := range members {
			kind, ok := known[key]
			switch {
			case t.Kind() == reflect.Map:
				members[key] = exactKeys(value, t.Elem())
			case ok:
				members[key] = exactKeys(value, kind)
			default:
				delete(members, key)
			}
		}
		return written(members, text)
	}
	return text
}

// written is v as JSON, or the text that it came from.
func written(v any, text json.RawMessage) json.RawMessage {
	encoded, err := encode(v)
	if err != nil {
		return text
	}
	return encoded
}
