// Package strictjson owns JSON as the service reads and writes it: keys that a type
// does not have are refused with the place and the key that was meant, or dropped;
// text is written without the escapes that only browsers need.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/suggest"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/problem"
)

// Encode is JSON without the escapes that only browsers need.
func Encode(v any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("encode reply: %w", err)
	}
	return buffer.Bytes(), nil
}

// Decode fills v, a pointer, from JSON. Errors say line and column, or
// the field.
func Decode(text []byte, v any) error {
	// Syntax first and apart from v: only then the offset is one in the text.
	if err := json.Unmarshal(text, new(any)); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			before := text[:min(int(syntax.Offset), len(text))]
			line := bytes.Count(before, []byte("\n")) + 1
			return problem.Refuse(http.StatusBadRequest, "the body is no JSON: line %d, column %d: %v", line, len(before)-bytes.LastIndexByte(before, '\n')-1, err)
		}
		return problem.Refuse(http.StatusBadRequest, "the body cannot be read: %v", err)
	}
	if problems := unknownKeys(text, reflect.TypeOf(v), ""); len(problems) > 0 {
		return problem.Invalid(problems)
	}
	err := json.Unmarshal(text, v)
	var mistyped *json.UnmarshalTypeError
	var f *problem.Failure
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &mistyped):
		return problem.InvalidField(mistyped.Field, "must be %s, not %s", jsonWord(mistyped.Type), mistyped.Value)
	case err != nil:
		return problem.Refuse(http.StatusBadRequest, "the body does not fit: %v", err)
	}
	return nil
}

// jsonWord is how a reader of JSON calls a Go type.
func jsonWord(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Pointer:
		return jsonWord(t.Elem())
	}
	return "an integer that fits"
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// unknownKeys finds the keys of valid JSON that a type does not have, at any
// depth.
func unknownKeys(text json.RawMessage, t reflect.Type, place string) (problems []api.Problem) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	// Such a type reads its text by itself and knows its own keys.
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return nil
	}
	switch t.Kind() {
	case reflect.Slice:
		var items []json.RawMessage
		_ = json.Unmarshal(text, &items) // what is no list is found later
		for i, item := range items {
			problems = append(problems, unknownKeys(item, t.Elem(), place+"["+strconv.Itoa(i)+"]")...)
		}
	case reflect.Struct:
		var members map[string]json.RawMessage
		_ = json.Unmarshal(text, &members)
		known := keysOf(t)
		for _, key := range SortedKeys(members) {
			field := strings.TrimPrefix(place+"."+key, ".")
			if next, ok := known[key]; ok {
				problems = append(problems, unknownKeys(members[key], next, field)...)
				continue
			}
			problems = append(problems, api.Problem{Field: foreign.Clip(field, 200), Message: "is not known" + suggest.Phrase(key, SortedKeys(known))})
		}
	}
	return problems
}

// keysOf are the JSON keys of a struct with the types of their values.
func keysOf(t reflect.Type) map[string]reflect.Type {
	keys := map[string]reflect.Type{}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			for key, kind := range keysOf(field.Type) {
				keys[key] = kind
			}
		case name != "" && name != "-":
			keys[name] = field.Type
		}
	}
	return keys
}

// SortedKeys makes messages and replies the same every time.
func SortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// ExactKeys takes out of valid JSON what a type does not have, at any depth.
// encoding/json would take "NAME" for name, and the document has not looked at
// it: it is an unknown field, which the live dialect ignores.
func ExactKeys(text json.RawMessage, t reflect.Type) json.RawMessage {
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
			items[i] = ExactKeys(item, t.Elem())
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
				members[key] = ExactKeys(value, t.Elem())
			case ok:
				members[key] = ExactKeys(value, kind)
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
	encoded, err := Encode(v)
	if err != nil {
		return text
	}
	return encoded
}
