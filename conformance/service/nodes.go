package service

import (
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// placed is a value of a request with its place, such as "params.records.0".
type placed struct {
	place string
	node  *wire.Node
}

// valuesAt gives the values at a path of member names; "*" stands for every member
// of an object and every item of an array. An absent value comes as a nil node.
// "the request" is the whole.
func valuesAt(root *wire.Node, path string) []placed {
	found := []placed{{"", root}}
	if path == wholeRequest {
		return found
	}
	for name := range strings.SplitSeq(path, ".") {
		var next []placed
		for _, at := range found {
			if name != "*" {
				next = append(next, placed{join(at.place, name), at.node.Get(name)})
				continue
			}
			next = append(next, children(at)...)
		}
		found = next
	}
	return found
}

const wholeRequest = "the request"

func children(at placed) []placed {
	if at.node == nil {
		return []placed{{join(at.place, "*"), nil}}
	}
	var out []placed
	for _, m := range at.node.Members {
		out = append(out, placed{join(at.place, m.Name), m.Value})
	}
	for i, item := range at.node.Items {
		out = append(out, placed{join(at.place, strconv.Itoa(i)), item})
	}
	return out
}

func join(place, name string) string {
	if place == "" {
		return name
	}
	return place + "." + name
}

// members are those of an object, none of anything else.
func members(n *wire.Node) []wire.Member {
	if n == nil {
		return nil
	}
	return n.Members
}

// names are the member names of an object in their order.
func names(n *wire.Node) []string {
	out := []string{}
	for _, m := range members(n) {
		out = append(out, m.Name)
	}
	return out
}

// words are the parts of a list such as "jsonrpc, method"; "" has none.
func words(list string) []string {
	if list == "" {
		return []string{}
	}
	return strings.Split(list, ", ")
}

// sameNames compares without order.
func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// sameValue compares two values as JSON: members in any order, numbers and
// strings by what they say.
func sameValue(a, b *wire.Node) bool {
	if a.Type() != b.Type() || a == nil {
		return a == nil && b == nil
	}
	switch a.Kind {
	case wire.String:
		return a.Text == b.Text
	case wire.Array:
		return slices.EqualFunc(a.Items, b.Items, sameValue)
	case wire.Object:
		return sameNames(names(a), names(b)) && !slices.ContainsFunc(a.Members, func(m wire.Member) bool {
			return !sameValue(m.Value, b.Get(m.Name))
		})
	}
	return string(a.Raw) == string(b.Raw)
}
