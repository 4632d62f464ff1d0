package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/internal/suggest"
	"github.com/getkin/kin-openapi/openapi3"
)

// finding is a problem with the way to it.
type finding struct {
	place   place
	problem RESTProblem
}

// finder collects what kin finds in a body. Kin names the keyword of the schema
// that failed and the place; the words for people are made here, since its own
// quote the schema and the value, which may be a secret.
type finder struct {
	body  any
	found []finding
	seen  map[string]bool // places of unknown fields: kin reports the object only
}

// visit validates one value with kin; base is the way to it.
func (f *finder) visit(schema *openapi3.Schema, value any, base place) {
	err := schema.VisitJSON(value, openapi3.MultiErrors(), openapi3.DisableSchemaErrorDetails())
	for _, e := range flatten(err, nil) {
		f.explain(e, f.resolve(base, value, e.JSONPointer()))
	}
}

// flatten lists the errors about one place each.
func flatten(err error, into []*openapi3.SchemaError) []*openapi3.SchemaError {
	switch e := err.(type) {
	case nil:
	case openapi3.MultiError:
		for _, inner := range e {
			into = flatten(inner, into)
		}
	case *openapi3.SchemaError:
		into = append(into, e)
	default:
		// Not about a place: such as a number that is none. Nothing of it is lost.
		into = append(into, &openapi3.SchemaError{SchemaField: "type", Schema: &openapi3.Schema{}})
	}
	return into
}

// resolve turns kin's pointer into a place: only the value distinguishes an
// index from a name.
func (f *finder) resolve(base place, value any, pointer []string) place {
	at := slices.Clone(base)
	for _, key := range pointer {
		switch in := value.(type) {
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(in) {
				return at
			}
			at, value = append(at, step{index: i, isIndex: true}), in[i]
		case map[string]any:
			at, value = append(at, step{name: key}), in[key]
		default:
			at = append(at, step{name: key})
		}
	}
	return at
}

func (f *finder) add(at place, p RESTProblem) {
	p.Place, p.Field = placeBody, at.String()
	f.found = append(f.found, finding{at, p})
}

// explain adds the problem that one error of kin means.
func (f *finder) explain(e *openapi3.SchemaError, at place) {
	switch e.SchemaField {
	case "oneOf", "anyOf":
		f.choose(e, at)
	case "discriminator":
		f.discriminate(e, at)
	case "properties":
		f.unknown(e, at)
	case "required":
		f.add(at, RESTProblem{Message: "is required", Missing: true})
	default:
		if _, number := e.Value.(inexact); number && e.Schema.Type.Permits(openapi3.TypeNumber) {
			return // kin does not know our type, and the schema takes any number
		}
		f.add(at, RESTProblem{Message: phrase(e, secret(at)), Loose: isIDText(e, at)})
	}
}

// choose goes on with the one alternative that the value means, so that the
// problem is named where it is and not as "fits none of six".
func (f *finder) choose(e *openapi3.SchemaError, at place) {
	alternatives := slices.Concat(e.Schema.OneOf, e.Schema.AnyOf)
	if d := e.Schema.Discriminator; d != nil {
		if object, ok := e.Value.(map[string]any); ok {
			word, _ := object[d.PropertyName].(string)
			for _, alternative := range alternatives {
				if alternative.Ref == d.Mapping[word].Ref {
					f.visit(alternative.Value, e.Value, at)
					return
				}
			}
		}
	}
	var kinds []string
	for _, alternative := range alternatives {
		if schemaPermits(alternative.Value, e.Value) {
			f.visit(alternative.Value, e.Value, at)
			return
		}
		for _, kind := range alternative.Value.Type.Slice() {
			if !slices.Contains(kinds, article(kind)) {
				kinds = append(kinds, article(kind))
			}
		}
	}
	f.add(at, RESTProblem{Message: fmt.Sprintf("must be %s, is %s", strings.Join(kinds, " or "), kindOf(e.Value))})
}

// discriminate names the field that distinguishes the alternatives.
func (f *finder) discriminate(e *openapi3.SchemaError, at place) {
	d := e.Schema.Discriminator
	at = append(slices.Clone(at), step{name: d.PropertyName})
	values := slices.Sorted(maps.Keys(d.Mapping))
	switch v := e.Value.(type) {
	case nil:
		f.add(at, RESTProblem{Message: "is required, " + oneOf(values), Missing: true})
	case string:
		f.add(at, RESTProblem{Message: oneOf(values) + is(v, secret(at))})
	default:
		f.add(at, RESTProblem{Message: "must be a string, is " + kindOf(v)})
	}
}

// requireInSpec names what the spec dialect requires and the live one does not.
// The schema admits both, so it cannot require it (x-differences).
func (f *finder) requireInSpec(schema *openapi3.Schema) {
	names, _ := schema.Extensions["x-required-in-spec"].([]any)
	object, isObject := f.body.(map[string]any)
	for _, name := range names {
		word, _ := name.(string)
		if _, sent := object[word]; isObject && !sent {
			f.add(place{{name: word}}, RESTProblem{Message: "is required", Missing: true})
		}
	}
}

// unknown names every field of an object that the document does not have.
func (f *finder) unknown(e *openapi3.SchemaError, at place) {
	object, _ := e.Value.(map[string]any)
	key := at.String()
	if f.seen[key] {
		return // kin reports each of them with the same object
	}
	if f.seen == nil {
		f.seen = map[string]bool{}
	}
	f.seen[key] = true
	known := slices.Sorted(maps.Keys(e.Schema.Properties))
	for name := range object {
		if e.Schema.Properties[name] != nil {
			continue
		}
		message := "is unknown"
		if near := suggest.Word(name, known); near != "" {
			message += fmt.Sprintf("; did you mean %s?", near)
		}
		f.add(append(slices.Clone(at), step{name: name}), RESTProblem{Message: message, Unknown: true})
	}
}

// secret reports whether a value must not be shown: everything below credentials
// and secrets elsewhere (spec 5.2).
func secret(at place) bool {
	return slices.ContainsFunc(at, func(s step) bool {
		switch s.name {
		case "credentials", "webhook_url", "auth_token", "custom_headers", "api_key", "secret", "password", "endpoint":
			return true
		}
		return false
	})
}

// is shows a value where that is allowed.
func is(value any, hidden bool) string {
	switch v := value.(type) {
	case string:
		if !hidden {
			return ", is " + quoted(v)
		}
	case json.Number, inexact, float64:
		if !hidden {
			return fmt.Sprintf(", is %v", v)
		}
	}
	return ", is " + kindOf(value)
}
