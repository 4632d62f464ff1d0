package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/internal/suggest"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/problem"
)

// maxControlBody bounds the bodies of control calls but those of snapshots.
const maxControlBody = 64 << 20

// text reads the body up to a limit in bytes.
func (c *controlCall) text(limit int64) ([]byte, error) {
	text, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, limit))
	return text, unreadable(err)
}

// unreadable is what is wrong with a body that did not come to its end.
func unreadable(err error) error {
	var large *http.MaxBytesError
	if err == nil || errors.As(err, &large) {
		return err
	}
	return problem.Refuse(http.StatusBadRequest, "the body ended before its announced length")
}

// body decodes the body into v, a pointer to a struct. Unknown keys are
// refused, all of them together, with the key that was probably meant: a typing
// error in a test must not pass for something that was done. An empty body
// leaves v as it is.
func (c *controlCall) body(v any) error {
	text, err := c.text(maxControlBody)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	return decodeStrictly(text, v)
}

// decodeStrictly fills v, a pointer, from JSON. Errors say line and column, or
// the field.
func decodeStrictly(text []byte, v any) error {
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
		for _, key := range sortedKeys(members) {
			field := strings.TrimPrefix(place+"."+key, ".")
			if next, ok := known[key]; ok {
				problems = append(problems, unknownKeys(members[key], next, field)...)
				continue
			}
			problems = append(problems, api.Problem{Field: clip(field, 200), Message: "is not known" + meant(key, sortedKeys(known))})
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

// sortedKeys makes messages and replies the same every time.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// meant says which word was probably meant, or which there are.
func meant(word string, known []string) string {
	if near := suggest.Word(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	if len(known) > 0 && len(known) <= 20 {
		return "; known are " + strings.Join(known, ", ")
	}
	return ""
}

// query gives the parameters and refuses unknown ones: a filter with a typing
// error would let everything through.
func (c *controlCall) query(known ...string) (url.Values, error) {
	values, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return nil, problem.Refuse(http.StatusBadRequest, "the query cannot be read: %v", err)
	}
	var problems []api.Problem
	for _, name := range sortedKeys(values) {
		if !slices.Contains(known, name) {
			problems = append(problems, api.Problem{Field: clip(name, 60), Message: "is not known" + meant(name, known)})
		}
	}
	if len(problems) > 0 {
		return nil, problem.Invalid(problems)
	}
	return values, nil
}

// integer reads an optional parameter within bounds.
func integer(values url.Values, name string, missing, least, most int64) (int64, error) {
	text := values.Get(name)
	if text == "" {
		return missing, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, problem.InvalidField(name, "must be an integer from %d to %d", least, most)
	}
	return n, nil
}

// takesBody are the routes of the control API that read a body. All others refuse
// one: what is sent there was meant for something else.
var takesBody = map[string]bool{
	"POST /audit": true, "POST /clock": true, "POST /connectors": true, "POST /faults": true, "POST /fork": true,
	"POST /invitations/{id}/claim": true, "POST /journal": true, "POST /organizations": true, "POST /restore": true,
	"POST /seed": true, "POST /sources/{id}/execute": true, "POST /syncs/{id}/plan": true, "POST /topics/{id}/messages": true,
	"PATCH /topics/{id}": true, "POST /triggers/dbt_cloud": true, "POST /triggers/fivetran": true, "POST /trust": true,
	"PATCH /users/{id}": true, "POST /workspace_invitations/{id}/claim": true,
}

// withoutBody refuses a call that has a body before anything is done.
func withoutBody(handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var n int
		var err error
		if r.Body != nil && r.Body != http.NoBody {
			patiently(w, r, func() { n, err = io.ReadFull(r.Body, make([]byte, 1)) })
		}
		switch {
		case n > 0:
			writeControl(w, 0, nil, problem.Refuse(http.StatusBadRequest, "%s %s takes no body; leave it out", r.Method, r.URL.Path))
		case err != nil && !errors.Is(err, io.EOF):
			writeControl(w, 0, nil, unreadable(err))
		default:
			handle(w, r)
		}
	}
}
