// Package jsonvalue looks at values of JSON: a value at a path, its type, its equality. It knows nothing of the judge.
package jsonvalue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// Placed is a value of a request with its place, such as "params.records.0".
type Placed struct {
	Place string
	Node  *wire.Node
}

// ValuesAt gives the values at a path of member names; "*" matches every member of an object and
// every item of an array. An absent value comes as a nil node. "the request" is the whole.
func ValuesAt(root *wire.Node, path string) []Placed {
	found := []Placed{{"", root}}
	if path == "the request" {
		return found
	}
	for name := range strings.SplitSeq(path, ".") {
		var next []Placed
		for _, at := range found {
			add := func(name string, n *wire.Node) {
				next = append(next, Placed{strings.TrimPrefix(at.Place+"."+name, "."), n})
			}
			if name != "*" || at.Node == nil {
				add(name, at.Node.Get(name))
				continue
			}
			for _, m := range at.Node.Members {
				add(m.Name, m.Value)
			}
			for i, item := range at.Node.Items {
				add(strconv.Itoa(i), item)
			}
		}
		found = next
	}
	return found
}

// Members are those of an object, none of anything else.
func Members(n *wire.Node) []wire.Member {
	if n == nil {
		return nil
	}
	return n.Members
}

// Items are those of an array, none of anything else.
func Items(n *wire.Node) []*wire.Node {
	if n == nil {
		return nil
	}
	return n.Items
}

// Names are the member names of an object in their order.
func Names(n *wire.Node) []string {
	return lists.Of(Members(n), func(m wire.Member) string { return m.Name })
}

// Words are the parts of a list such as "jsonrpc, method"; "" has none.
func Words(list string) []string {
	if list == "" {
		return []string{}
	}
	return strings.Split(list, ", ")
}

// SameNames compares without order.
func SameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// SameValue compares two values as JSON: members in any order, numbers and strings by their value.
func SameValue(a, b *wire.Node) bool {
	if a.Type() != b.Type() || a == nil {
		return a == nil && b == nil
	}
	switch a.Kind {
	case wire.String:
		return a.Text == b.Text
	case wire.Array:
		return slices.EqualFunc(a.Items, b.Items, SameValue)
	case wire.Object:
		return SameNames(Names(a), Names(b)) && !slices.ContainsFunc(a.Members, func(m wire.Member) bool {
			return !SameValue(m.Value, b.Get(m.Name))
		})
	}
	return string(a.Raw) == string(b.Raw)
}

// Text is a string, "" of any other value.
func Text(n *wire.Node) string {
	if n.Is(wire.String) {
		return n.Text
	}
	return ""
}

// Plain is a string as it reads, and any other value as its JSON; "" of null and of an absent one.
func Plain(n *wire.Node) string {
	if n == nil || n.Kind == wire.Null || n.Kind == wire.String {
		return Text(n)
	}
	return string(n.Raw)
}

// Raw is the text of a value, "nothing" of an absent one.
func Raw(n *wire.Node) string {
	if n == nil {
		return "nothing"
	}
	return string(n.Raw)
}

// Encode is a value as JSON; it cannot fail for what the judge makes.
func Encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// Missing returns where a value lacks something wanted, "" when it has all: objects may have more members, lists another
// order, and numbers count by their value.
func Missing(wanted, got any, at string) string {
	switch w := wanted.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %s, not an object", at, Brief(got))
		}
		for name, value := range w {
			if why := Missing(value, g[name], at+"."+name); why != "" {
				return why
			}
		}
		return ""
	case []any:
		left, ok := got.([]any)
		if !ok {
			return fmt.Sprintf("%s is %s, not a list", at, Brief(got))
		}
		if len(w) != len(left) {
			return fmt.Sprintf("%s has %s, not %d: %s", at, quantity.Count(len(left), "element"), len(w), Brief(got))
		}
		left = slices.Clone(left)
		for _, one := range w {
			i := slices.IndexFunc(left, func(g any) bool { return Missing(one, g, at) == "" })
			if i < 0 {
				return fmt.Sprintf("%s has no %s: %s", at, Brief(one), Brief(got))
			}
			left = slices.Delete(left, i, i+1)
		}
		return ""
	}
	if !reflect.DeepEqual(wanted, got) {
		return fmt.Sprintf("%s is %s, not %s", at, Brief(got), Brief(wanted))
	}
	return ""
}

// Brief is a value as JSON, cut where it is long.
func Brief(v any) string { return foreign.Clip(Encode(v), 200) }

// Decode is a node as encoding/json sees it; nil of an absent one.
func Decode(n *wire.Node) any {
	var v any
	if n == nil || json.Unmarshal(n.Raw, &v) != nil {
		return nil
	}
	return v
}

// DecodeAny is a text as a value, with numbers as they are written.
func DecodeAny(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// Down goes into a value by a path with dots, such as "mode.triggers.schedule".
func Down(n *wire.Node, path string) *wire.Node { return n.Get(strings.Split(path, ".")...) }

// Put sets a value of a body by a path with dots; missing objects on the way are made.
func Put(body map[string]any, path string, value any) {
	first, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		body[first] = value
		return
	}
	copied := map[string]any{}
	if inner, ok := body[first].(map[string]any); ok {
		maps.Copy(copied, inner)
	}
	Put(copied, rest, value)
	body[first] = copied
}

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
		return moment.MatchString(Text(n)), nil
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
var moment = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+]00:?00)$`)

// lookAround is what other engines know and this one does not.
var lookAround = regexp.MustCompile(`\(\?[=!<>]|\\[AzZGhHKR1-9]|[*+?}][+]`)

// isPattern gives the benefit of the doubt to other engines.
func isPattern(s string) bool {
	_, err := regexp.Compile(s)
	return err == nil || lookAround.MatchString(s)
}
