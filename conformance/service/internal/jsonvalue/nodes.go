// Package jsonvalue looks at values of JSON: what is at a path, of which type a
// value is, and whether two values are the same. It knows nothing of the judge.
package jsonvalue

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/lists"
)

// Placed is a value of a request with its place, such as "params.records.0".
type Placed struct {
	Place string
	Node  *wire.Node
}

// ValuesAt gives the values at a path of member names; "*" stands for every member
// of an object and every item of an array. An absent value comes as a nil node.
// "the request" is the whole.
func ValuesAt(root *wire.Node, path string) []Placed {
	found := []Placed{{"", root}}
	if path == wholeRequest {
		return found
	}
	for name := range strings.SplitSeq(path, ".") {
		var next []Placed
		for _, at := range found {
			if name != "*" {
				next = append(next, Placed{join(at.Place, name), at.Node.Get(name)})
				continue
			}
			next = append(next, children(at)...)
		}
		found = next
	}
	return found
}

const wholeRequest = "the request"

func children(at Placed) []Placed {
	if at.Node == nil {
		return []Placed{{join(at.Place, "*"), nil}}
	}
	var out []Placed
	for _, m := range at.Node.Members {
		out = append(out, Placed{join(at.Place, m.Name), m.Value})
	}
	for i, item := range at.Node.Items {
		out = append(out, Placed{join(at.Place, strconv.Itoa(i)), item})
	}
	return out
}

func join(place, name string) string {
	if place == "" {
		return name
	}
	return place + "." + name
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

// SameValue compares two values as JSON: members in any order, numbers and
// strings by what they say.
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
