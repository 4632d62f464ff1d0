package jsonvalue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/lists"
)

// Fits reports whether a value is of a type, in the words of the tables of the
// scenarios:
//
//	string, integer, number, boolean, object, array, null
//	timestamp              ISO 8601 in UTC (spec 2)
//	text                   a string that is not empty
//	regular expression     a string that is one
//	array of string        every element is one
//	map of string          an object, every member is one
//	object of a, b         an object with exactly these members
//	string or null         either
//	optional string        may be left out
func Fits(what string, n *wire.Node) (bool, error) {
	if rest, optional := strings.CutPrefix(what, "optional "); optional {
		if n == nil {
			return true, nil
		}
		what = rest
	}
	for one := range strings.SplitSeq(what, " or ") {
		if ok, err := fitsOne(one, n); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

var shapeKinds = map[string]wire.NodeKind{
	"string": wire.String, "number": wire.Number, "boolean": wire.Bool, "object": wire.Object, "array": wire.Array, "null": wire.Null,
}

func fitsOne(what string, n *wire.Node) (bool, error) {
	if kind, plain := shapeKinds[what]; plain {
		return n.Is(kind), nil
	}
	switch what {
	case "integer":
		return n.IsInteger(), nil
	case "timestamp":
		return IsMoment(n), nil
	case "text":
		return Text(n) != "", nil
	case "regular expression":
		return n.Is(wire.String) && isPattern(n.Text), nil
	}
	if of, ok := strings.CutPrefix(what, "array of "); ok {
		return fitsAll(of, n, wire.Array)
	}
	if of, ok := strings.CutPrefix(what, "map of "); ok {
		return fitsAll(of, n, wire.Object)
	}
	if list, ok := strings.CutPrefix(what, "object of "); ok {
		return n.Is(wire.Object) && SameNames(Names(n), strings.Split(list, ", ")), nil
	}
	return false, fmt.Errorf("no type %q", what)
}

// fitsAll looks at all elements or members.
func fitsAll(of string, n *wire.Node, kind wire.NodeKind) (bool, error) {
	if !n.Is(kind) {
		_, err := fitsOne(of, nil) // a type that does not exist is a mistake anyhow
		return false, err
	}
	values := lists.Of(n.Members, func(m wire.Member) *wire.Node { return m.Value })
	for _, one := range slices.Concat(n.Items, values) {
		if ok, err := fitsOne(of, one); !ok {
			return false, err
		}
	}
	return true, nil
}

// spec 2: timestamps are ISO 8601 in UTC.
var momentText = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+]00:?00)$`)

// IsMoment reports whether a value is a timestamp.
func IsMoment(n *wire.Node) bool { return momentText.MatchString(Text(n)) }

// lookAround is what other engines know and this one does not.
var lookAround = regexp.MustCompile(`\(\?[=!<>]|\\[AzZGhHKR1-9]|[*+?}][+]`)

// isPattern gives the benefit of the doubt to other engines.
func isPattern(s string) bool {
	if _, err := regexp.Compile(s); err == nil {
		return true
	}
	return lookAround.MatchString(s)
}

// DecodeAny is a text as a value, with numbers as they are written.
func DecodeAny(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}
