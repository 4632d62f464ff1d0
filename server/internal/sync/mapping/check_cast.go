package mapping

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/destkit/destkit/server/api"
)

// The seven types of the wire.
var wireTypes = []string{
	api.TypeBoolean, api.TypeDecimal, api.TypeFloat, api.TypeInteger, api.TypeDate, api.TypeDateTime, api.TypeString,
}

// casts holds the types that the values of a column can become at all. Losses
// of a single value (2.5 as an integer, a time of day as a date) are found
// record by record; only pairs that can never work are refused when a sync is
// configured. Strings and columns of an unknown kind may hold anything.
var casts = map[api.Kind][]string{
	api.KindBoolean:  {api.TypeBoolean, api.TypeInteger, api.TypeString},
	api.KindInteger:  {api.TypeInteger, api.TypeFloat, api.TypeDecimal, api.TypeBoolean, api.TypeString},
	api.KindFloat:    {api.TypeFloat, api.TypeDecimal, api.TypeInteger, api.TypeString},
	api.KindDecimal:  {api.TypeDecimal, api.TypeFloat, api.TypeInteger, api.TypeString},
	api.KindDate:     {api.TypeDate, api.TypeDateTime, api.TypeString},
	api.KindDateTime: {api.TypeDateTime, api.TypeDate, api.TypeString},
	api.KindObject:   {api.TypeString}, // as JSON text
	api.KindBinary:   {api.TypeString}, // as base64
}

// neverFits names a kind of values that can never be written into a field; ""
// when it can. An array goes into arrays only; a string into an array as JSON.
func neverFits(kind api.Kind, field *api.DestinationField) string {
	switch {
	case kind == api.KindAny || kind == api.KindString || kind == "":
		return ""
	case field.Array != (kind == api.KindArray):
		return kindName(kind)
	case kind == api.KindArray || !slices.Contains(wireTypes, field.Type):
		return ""
	case !slices.Contains(casts[kind], field.Type):
		return kindName(kind)
	}
	return ""
}

// kindName is a kind with its article, for messages.
func kindName(kind api.Kind) string {
	switch kind {
	case api.KindArray, api.KindInteger, api.KindObject:
		return "an " + string(kind)
	}
	return "a " + string(kind)
}

// fieldTypeName is the type of a field with its article, for messages.
func fieldTypeName(field *api.DestinationField) string {
	if field.Array {
		return "an array of " + field.Type
	}
	return kindName(api.Kind(field.Type))
}

// checkConstantFits casts a constant at once, since every record would fail.
func (c *checker) checkConstantFits(at string, m *api.Mapping, field *api.DestinationField) {
	// A constant that is looked up is compared with another object's field,
	// whose type may be another.
	if m.From.Type != api.FromConstant || text(m.LookupObject) != "" {
		return
	}
	var constant api.Constant
	if json.Unmarshal(m.From.Data, &constant) != nil || len(bytes.TrimSpace(constant.Value)) == 0 {
		return
	}
	kind, valid := constantKind(constant.BasicType, bytes.TrimSpace(constant.Value))
	// Both were reported already; one problem needs one message.
	if !valid || neverFits(kind, field) != "" {
		return
	}
	value, err := decodeValue(constant.Value)
	if err != nil || value == nil {
		return
	}
	if _, err := Cast(value, field.Type, field.Array); err != nil {
		c.bad(at+".from.data.value", "does not fit the field %q: %v", m.To, err)
	}
}
