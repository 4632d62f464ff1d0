package causes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/foreign"
)

// What stands in a reply in the place of a member says why it is wrong: another name,
// another type, null, or nothing.

// Member is the cause of a member that an object of a reply must have, as the kind that
// the protocol gives it; false when the reply does not show one. known are the other
// members that belong there.
func Member(parent *wire.Node, name string, kind wire.NodeKind, known ...string) (Cause, bool) {
	if !parent.Is(wire.Object) {
		return Cause{}, false
	}
	n := parent.Get(name)
	quoted := strconv.Quote(name)
	switch {
	case n == nil:
		return absent(parent, name, kind, known), true
	case n.Kind == kind:
		return ofValue(n, name)
	case n.Kind == wire.Null:
		return Cause{"null member", quoted + " is null: a value or a list that was never filled (None, a nil slice) is written as it is.",
			fmt.Sprintf("give %s a value of its type from the beginning, an empty list where there is nothing.", name), ""}, true
	case n.Kind == wire.String && strings.Trim(n.Text, " ") == "":
		return Cause{"empty text", quoted + " is an empty text: the value was not set.", "set it, as a JSON " + kind.String() + ".", ""}, true
	case n.Kind == wire.String:
		return Cause{"member as text", fmt.Sprintf("%s is the text %s: what was printed, joined or read from the environment as text is passed on.", quoted, shown(n)),
			"convert it before it is written: a JSON " + kind.String() + ", without quotes around the whole.", ""}, true
	case n.Kind == wire.Number && kind == wire.Bool:
		return Cause{"count for a boolean", fmt.Sprintf("%s is the number %s: a count of rows or a code of the destination is passed on.", quoted, shown(n)),
			"compare it, and write true or false.", ""}, true
	case n.Kind == wire.Object && kind == wire.Array:
		return Cause{"map for a list", quoted + " is an object: what is kept by name or by identifier (a map) is written as it is.", "write its values as an array.", ""}, true
	}
	return Cause{"member of another type", fmt.Sprintf("%s is %s: a value of the code or of the destination is passed on as it is.", quoted, article(n.Kind)),
		"write a JSON " + kind.String() + ".", ""}, true
}

// absent looks for the value under another name.
func absent(parent *wire.Node, name string, kind wire.NodeKind, known []string) Cause {
	for _, m := range parent.Members {
		if m.Value.Kind == kind && m.Name != name && !slices.Contains(known, m.Name) {
			return Cause{"member under another name", fmt.Sprintf("the value stands under another name, %q: the member must be called %q.", foreign.Clip(m.Name, 40), name),
				fmt.Sprintf("call the member %q.", name), ""}
		}
	}
	return Cause{"member left out", fmt.Sprintf("%q is left out: it is never set, is optional in the code, or what writes the JSON leaves out what is false, zero or empty (omitempty).", name),
		fmt.Sprintf("write %q always, also when it is false, zero or empty.", name), ""}
}

// ofValue reads a member of the right type with a wrong value.
func ofValue(n *wire.Node, name string) (Cause, bool) {
	if n.Kind != wire.Number {
		return Cause{}, false
	}
	if v, is := n.Int(); is && v < 1 {
		return Cause{"no limit", fmt.Sprintf("%q is %d: the number stands for \"no limit\", or was never set.", name, v),
			"give a number that the endpoint can keep; the service takes every number as it is.", ""}, true
	}
	if !n.IsInteger() {
		return Cause{"number with fraction", fmt.Sprintf("%q is %s: the number was calculated, or went through floating point.", name, shown(n)), "round it down to an integer.", ""}, true
	}
	return Cause{}, false
}

func shown(n *wire.Node) string { return foreign.Clip(string(n.Raw), 60) }

func article(k wire.NodeKind) string {
	if k == wire.Array || k == wire.Object {
		return "an " + k.String()
	}
	return "a " + k.String()
}
