package destsim

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/codec"
	"github.com/destkit/destkit/internal/rawjson"
)

// canonical checks one value against the field's type and gives the
// text that is stored: strings in their one canonical encoding, so that
// "\u00e9" and "é" are the same value; everything else as it was sent. raw is
// valid JSON. problem is "" or a sentence for the record's error_message.
func (f *field) canonical(raw []byte) (value []byte, problem string) {
	if raw[0] == 'n' { // null is legal for every type
		return store.Null, ""
	}
	if !f.Array {
		return f.scalar(raw)
	}
	if raw[0] != '[' {
		return nil, fmt.Sprintf("field %q must be an array of %s, not %s", f.APIName, f.Type, kindOf(raw))
	}
	items := itemsOf(raw)
	for i, item := range items {
		if item[0] == 'n' {
			continue
		}
		if items[i], problem = f.scalar(item); problem != "" {
			return nil, problem
		}
	}
	return arrayOf(items), ""
}

// itemsOf are the raw items of an array; arrayOf makes one of such.
func itemsOf(array []byte) (items [][]byte) {
	for i, more, _ := rawjson.FirstElement(array, 0); more; {
		end, _ := rawjson.SkipValue(array, i, 1)
		items = append(items, array[i:end:end])
		i, more, _ = rawjson.NextElement(array, end)
	}
	return items
}

func arrayOf(items [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(items, []byte{','})...), ']')
}

// scalar is canonical for one value that is not null.
func (f *field) scalar(raw []byte) ([]byte, string) {
	switch f.Type {
	case rpc.TypeBoolean:
		if raw[0] != 't' && raw[0] != 'f' {
			return nil, f.wrongType(raw, "a boolean")
		}
		return raw, ""
	case rpc.TypeInteger:
		return f.integer(raw)
	case rpc.TypeFloat:
		if !isNumber(raw) {
			return nil, f.wrongType(raw, "a number")
		}
		if v, err := strconv.ParseFloat(string(raw), 64); err != nil || math.IsInf(v, 0) {
			return nil, fmt.Sprintf("field %q is out of the range of a float", f.APIName)
		}
		return raw, ""
	}
	if raw[0] != '"' {
		want := map[string]string{
			rpc.TypeDecimal: `a decimal in a string like "12.34"`, rpc.TypeDate: `a date like "2021-03-29"`,
			rpc.TypeDateTime: `a UTC time like "2021-03-29T16:32:23Z"`,
		}[f.Type]
		return nil, f.wrongType(raw, cmp.Or(want, "a string"))
	}
	return f.text(raw)
}

// isNumber looks at the first byte, which decides in valid JSON.
func isNumber(raw []byte) bool { return raw[0] == '-' || raw[0]-'0' <= 9 }

// integer takes a JSON number without fraction and exponent within 64 bits.
func (f *field) integer(raw []byte) ([]byte, string) {
	if !isNumber(raw) || bytes.ContainsAny(raw, ".eE") {
		return nil, f.wrongType(raw, "an integer")
	}
	// Up to 18 digits always fit; the rest is compared exactly, never as a float.
	if len(raw) > 18 {
		if _, err := strconv.ParseInt(string(raw), 10, 64); err != nil {
			return nil, fmt.Sprintf("field %q is out of the range of a 64-bit integer", f.APIName)
		}
	}
	if string(raw) == "-0" {
		return []byte("0"), ""
	}
	return raw, ""
}

// textForms are what the texts of a type have to be.
var textForms = map[string]string{
	rpc.TypeDecimal: "a decimal", rpc.TypeDate: "a calendar date of the years 0001 to 9999", rpc.TypeDateTime: "a UTC time with Z at its end",
}

// text is canonical for the four types that are strings on the wire.
func (f *field) text(raw []byte) ([]byte, string) {
	if bytes.IndexByte(raw, '\\') >= 0 {
		text, err := rawjson.StringText(raw)
		if err != nil {
			return nil, fmt.Sprintf("field %q is not Unicode text: %v", f.APIName, err)
		}
		raw = store.Quote(text)
	}
	if f.Type != rpc.TypeString {
		want := codec.Want{Kind: codec.KindOf(f.Type)}
		if want.Plain(raw, 0) != len(raw) {
			return nil, f.wrongType(raw, textForms[f.Type])
		}
		return raw, ""
	}
	if f.maxLength > 0 && len(raw)-2 > f.maxLength {
		text, _ := rawjson.StringText(raw) // canonical text decodes
		if n := utf8.RuneCountInString(text); n > f.maxLength {
			return nil, fmt.Sprintf("field %q has %d characters, at most %d fit", f.APIName, n, f.maxLength)
		}
	}
	return raw, ""
}

// wrongType is the sentence for a value of the wrong kind. It shows short texts
// of typed fields, where the mistake is in the spelling, but not free text,
// which may be data of users.
func (f *field) wrongType(raw []byte, want string) string {
	if raw[0] == '"' && f.Type != rpc.TypeString && len(raw) <= 48 {
		return fmt.Sprintf("field %q must be %s, not %s", f.APIName, want, raw)
	}
	return fmt.Sprintf("field %q must be %s, not %s", f.APIName, want, kindOf(raw))
}

// kindOf names the JSON type of a value.
func kindOf(raw []byte) string {
	switch raw[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	if bytes.ContainsAny(raw, ".eE") {
		return "a number with a fraction or exponent"
	}
	return "a number"
}
