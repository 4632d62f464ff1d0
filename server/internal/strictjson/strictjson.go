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

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/rawjson"
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
		if line, column, reason := rawjson.Malformed(text); reason != "" {
			return problem.Refuse(http.StatusBadRequest, "the body is no JSON: line %d, column %d: %s", line, column, reason)
		}
		return problem.Refuse(http.StatusBadRequest, "the body cannot be read: %v", err)
	}
	if problems := unknownKeys(text, reflect.TypeOf(v)); len(problems) > 0 {
		return problem.Invalid(problems)
	}
	err := json.Unmarshal(text, v)
	var mistyped *json.UnmarshalTypeError
	var f *problem.Failure
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &mistyped):
		return problem.InvalidField(mistyped.Field, "%s", rawjson.Mistyped(mistyped))
	case err != nil:
		return problem.Refuse(http.StatusBadRequest, "the body does not fit: %v", err)
	}
	return nil
}

// unknownKeys finds the keys of valid JSON that a type does not have, at any
// depth.
func unknownKeys(text json.RawMessage, t reflect.Type) (problems []api.Problem) {
	for _, u := range rawjson.UnknownKeys(text, t) {
		problems = append(problems, api.Problem{Field: foreign.Clip(u.Place, 200), Message: "is not known" + suggest.Phrase(u.Key, u.Known)})
	}
	return problems
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
	if rawjson.OwnReader(t) {
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
			known = rawjson.KeysOf(t)
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
