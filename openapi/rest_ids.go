package openapi

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/destkit/destkit/internal/rawjson"
)

// NumberIDs gives the body with every id that is a text of decimal digits as
// the number that it means. Clients keep ids as texts and send them so; only a body
// with a Loose problem need come here. A body that is no
// JSON, and one without such ids, comes back as it is.
func (o *Operation) NumberIDs(body []byte) []byte {
	value, repeated, err := decodeJSON(body, true)
	if err != nil || len(repeated) > 0 || o.body == nil {
		return body // refused in any case, for its content
	}
	f := finder{body: value}
	f.visit(o.body, value, nil)
	changed := false
	for _, found := range f.found {
		if found.problem.Loose {
			changed = found.place.number(value) || changed
		}
	}
	if !changed {
		return body
	}
	text, err := rawjson.Encode(plain(value))
	if err != nil {
		return body
	}
	return text
}

// isIDText reports whether an integer is expected where a text of digits is, and
// the place is that of an id. Places without a name, and numbers such as hours,
// stay strict: their texts are no habit of any client.
func isIDText(e *openapi3.SchemaError, at place) bool {
	if e.SchemaField != "type" || !e.Schema.Type.Is(openapi3.TypeInteger) || len(at) == 0 {
		return false
	}
	name := at[len(at)-1].name
	text, ok := e.Value.(string)
	_, fits := idNumber(text)
	return ok && fits && (name == "id" || strings.HasSuffix(name, "_id"))
}

// idNumber reads decimal digits; a sign, a space or more than 64 bits is no id.
func idNumber(text string) (json.Number, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return "", false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return json.Number(strconv.FormatInt(n, 10)), err == nil
}

// number replaces the text at the place by its number, and reports whether it
// was there.
func (p place) number(value any) bool {
	for i, s := range p {
		switch in := value.(type) {
		case []any:
			if !s.isIndex || s.index >= len(in) {
				return false
			}
			value = in[s.index]
		case map[string]any:
			if i == len(p)-1 {
				text, _ := in[s.name].(string)
				n, ok := idNumber(text)
				if ok {
					in[s.name] = n
				}
				return ok
			}
			value = in[s.name]
		default:
			return false
		}
	}
	return false
}

// plain gives numbers that no int64 holds back their text, as encoding/json
// writes it.
func plain(value any) any {
	switch v := value.(type) {
	case inexact:
		return json.Number(v)
	case map[string]any:
		for key, inner := range v {
			v[key] = plain(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = plain(inner)
		}
	}
	return value
}
