package destsim

import (
	"bytes"

	"github.com/destkit/destkit/destsim/rpc"
)

// valueCheck is what a value of a column must be, in a form that is quick to
// look at.
type valueCheck struct {
	kind            valueKind
	array, required bool
	longest         int  // of a text in bytes, 0: any
	anyText         bool // one text, and of any length
}

type valueKind uint8

const (
	kindText valueKind = iota
	kindBoolean
	kindInteger
	kindFloat
	kindDecimal
	kindDate
	kindDateTime
)

var kinds = map[string]valueKind{
	rpc.TypeBoolean: kindBoolean, rpc.TypeInteger: kindInteger, rpc.TypeFloat: kindFloat,
	rpc.TypeDecimal: kindDecimal, rpc.TypeDate: kindDate, rpc.TypeDateTime: kindDateTime,
}

func (c *column) check() valueCheck {
	kind := kinds[c.Type]
	return valueCheck{
		kind: kind, array: c.Array, required: c.Required, longest: c.maxLength,
		anyText: kind == kindText && !c.Array && c.maxLength == 0,
	}
}

// verbatim tells whether canonical would give the value back as it is, without
// a problem. It may say no to such a value, never yes to another. raw is valid
// JSON.
func (c *valueCheck) verbatim(raw []byte) bool {
	switch {
	case raw[0] == 'n':
		return !c.required
	case !c.array:
		return c.plain(raw)
	case raw[0] != '[':
		return false
	}
	return c.plainArray(raw)
}

// plainArray looks at every element; they follow one another without white
// space.
func (c *valueCheck) plainArray(raw []byte) bool {
	if len(raw) == 2 {
		return true
	}
	for i := 1; ; {
		end := skipTrusted(raw, i)
		element := raw[i:end]
		switch {
		case element[0] == 'n':
			if len(element) != len(jsonNull) {
				return false // white space follows
			}
		case !c.plain(element):
			return false
		}
		if raw[end] != ',' {
			return end == len(raw)-1
		}
		i = end + 1
	}
}

// plain is verbatim for one value that is not null.
func (c *valueCheck) plain(raw []byte) bool {
	switch c.kind {
	case kindBoolean:
		return (raw[0] == 't' || raw[0] == 'f') && raw[len(raw)-1] == 'e'
	case kindInteger:
		return plainInteger(raw)
	case kindFloat:
		return plainFloat(raw)
	}
	if raw[0] != '"' || raw[len(raw)-1] != '"' {
		return false
	}
	switch inner := raw[1 : len(raw)-1]; c.kind {
	case kindDecimal: // escapes are no digits
		return isDecimal(inner)
	case kindDate:
		return len(inner) == 10 && isDate(inner)
	case kindDateTime:
		return isDateTime(inner)
	default:
		return bytes.IndexByte(inner, '\\') < 0 && (c.longest == 0 || len(inner) <= c.longest)
	}
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
