package openapi

import (
	"encoding/json"
	"fmt"

	"github.com/getkin/kin-openapi/openapi3"
)

// phrase describes in plain words what a value must be where kin refused it; the cases are the
// keywords that the document uses. hidden keeps the value out.
func phrase(e *openapi3.SchemaError, hidden bool) string {
	s := e.Schema
	switch e.SchemaField {
	case "nullable":
		return "must not be null"
	case "enum":
		return oneOf(words(s.Enum)) + is(e.Value, hidden)
	case "minimum":
		return fmt.Sprintf("must be at least %v", *s.Min) + is(e.Value, hidden)
	case "maximum":
		return fmt.Sprintf("must be at most %v", *s.Max) + is(e.Value, hidden)
	case "minLength":
		if s.MinLength == 1 {
			return "must not be empty"
		}
		return fmt.Sprintf("must have at least %d characters", s.MinLength)
	case "maxLength":
		return fmt.Sprintf("must have at most %d characters", *s.MaxLength)
	case "minItems":
		return fmt.Sprintf("must have at least %s", entries(s.MinItems))
	case "maxItems":
		return fmt.Sprintf("must have at most %s", entries(*s.MaxItems))
	case "minProperties":
		return "must not be empty"
	case "uniqueItems":
		return "must not have an entry twice"
	case "pattern":
		if expects, ok := s.Extensions["x-expects"].(string); ok {
			return "must be " + expects
		}
		return "must match " + s.Pattern
	case "format":
		if s.Format == "date-time" {
			return "must be a moment such as 2026-03-04T09:30:00.000Z"
		}
		return "must be an integer of at most 64 bits"
	}
	return mustBe(s) + ", is " + kindOf(e.Value)
}

// mustBe is the type of a schema.
func mustBe(s *openapi3.Schema) string {
	if s.Type.IsEmpty() {
		return "must be a value that JSON can hold"
	}
	return "must be " + article(s.Type.Slice()[0])
}

func entries(n uint64) string {
	if n == 1 {
		return "one entry"
	}
	return fmt.Sprintf("%d entries", n)
}

// words are the values of an enum. The null of an optional one is left out: who
// sent something else meant one of the others.
func words(values []any) []string {
	var out []string
	for _, v := range values {
		if v != nil {
			out = append(out, fmt.Sprint(v))
		}
	}
	return out
}

// article is a type with its article.
func article(kind string) string {
	switch kind {
	case openapi3.TypeArray, openapi3.TypeInteger, openapi3.TypeObject:
		return "an " + kind
	}
	return "a " + kind
}

// kindOf is the kind of a decoded value in words.
func kindOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case inexact:
		return "a number with a point, an exponent or too many digits"
	case float64:
		return "a number"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	default:
		return fmt.Sprintf("a %T", v)
	}
}

// schemaPermits reports whether a schema is meant for values of this kind.
func schemaPermits(s *openapi3.Schema, value any) bool {
	switch value.(type) {
	case nil:
		return s.Nullable
	case bool:
		return s.Type.Permits(openapi3.TypeBoolean)
	case string:
		return s.Type.Permits(openapi3.TypeString)
	case json.Number, inexact, float64:
		return s.Type.Permits(openapi3.TypeInteger) || s.Type.Permits(openapi3.TypeNumber)
	case []any:
		return s.Type.Permits(openapi3.TypeArray)
	}
	return s.Type.Permits(openapi3.TypeObject)
}
