package destsim

import (
	"bytes"

	"github.com/destkit/destkit/destsim/rpc"
)

// verbatim tells whether canonical would give the value back as it is, without
// a problem. It may say no to such a value, never yes to another. raw is valid
// JSON.
func (c *column) verbatim(raw []byte) bool {
	switch {
	case raw[0] == 'n':
		return !c.Required
	case !c.Array:
		return c.field.plain(raw)
	case raw[0] != '[':
		return false
	}
	return c.field.plainArray(raw)
}

// plainArray looks at every element; they follow one another without white
// space.
func (f *field) plainArray(raw []byte) bool {
	if len(raw) == 2 {
		return true
	}
	for i := 1; ; {
		end := skipTrusted(raw, i)
		if element := raw[i:end]; element[0] != 'n' && !f.plain(element) || element[0] == 'n' && len(element) != 4 {
			return false
		}
		if raw[end] != ',' {
			return end == len(raw)-1
		}
		i = end + 1
	}
}

// plain is verbatim for one value that is not null.
func (f *field) plain(raw []byte) bool {
	inner := raw[min(1, len(raw)-1) : len(raw)-1]
	switch f.Type {
	case rpc.TypeBoolean:
		return (raw[0] == 't' || raw[0] == 'f') && raw[len(raw)-1] == 'e'
	case rpc.TypeInteger:
		return plainInteger(raw)
	case rpc.TypeFloat:
		return plainFloat(raw)
	}
	if raw[0] != '"' || raw[len(raw)-1] != '"' || bytes.IndexByte(inner, '\\') >= 0 {
		return false
	}
	switch f.Type {
	case rpc.TypeDecimal:
		return isDecimal(inner)
	case rpc.TypeDate:
		return len(inner) == 10 && isDate(inner)
	case rpc.TypeDateTime:
		return isDateTime(inner)
	}
	return f.maxLength == 0 || len(inner) <= f.maxLength
}

// plainInteger takes up to 18 digits, which always fit.
func plainInteger(raw []byte) bool {
	sign := 0
	if raw[0] == '-' {
		sign = 1
	}
	n, rest := digits(raw[sign:])
	return len(rest) == 0 && n > 0 && n <= 18 && (sign == 0 || raw[1] != '0')
}

// plainFloat takes numbers without exponent that are too short to overflow.
func plainFloat(raw []byte) bool {
	for _, c := range raw {
		if c-'0' > 9 && c != '.' && c != '-' {
			return false
		}
	}
	return len(raw) < 300
}
