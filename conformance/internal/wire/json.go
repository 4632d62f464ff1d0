package wire

import (
	"bytes"
	"slices"
	"strconv"
)

// NodeKind is the JSON type of a node.
type NodeKind uint8

// The JSON types.
const (
	Null NodeKind = iota + 1
	Bool
	Number
	String
	Array
	Object
)

// String gives the type's name as JSON writes it: "null", "boolean", "number",
// "string", "array", "object"; "absent" for the zero value.
func (k NodeKind) String() string {
	return [...]string{"absent", "null", "boolean", "number", "string", "array", "object"}[k]
}

// Node is one JSON value. Its methods work on a nil node, which is an absent value.
type Node struct {
	Kind NodeKind
	// Raw is the text of the value as received, without space around it.
	Raw []byte
	// Text is the decoded string, "" for other types. Half a surrogate pair is in it as the three
	// bytes that UTF-8 would give it (WTF-8).
	Text string
	// Members of an object, in the order received, duplicates included.
	Members []Member
	// Items of an array.
	Items []*Node
	// Duplicates, on the root only, are the paths of members whose name came
	// before in the same object, such as "result.fields[2].label"; 100 at most.
	Duplicates []string
}

// Member is one member of an object.
type Member struct {
	Name  string // decoded
	Value *Node
}

// Is reports whether the node exists and has the kind.
func (n *Node) Is(kind NodeKind) bool { return n != nil && n.Kind == kind }

// Type gives the kind, the zero kind of an absent node.
func (n *Node) Type() NodeKind {
	if n == nil {
		return 0
	}
	return n.Kind
}

// Get goes down by member names, and by decimal indices in arrays. It gives nil when there is no
// such value. Of duplicate members the last counts, as in nearly every parser.
func (n *Node) Get(path ...string) *Node {
	for _, name := range path {
		n = n.child(name)
	}
	return n
}

func (n *Node) child(name string) *Node {
	switch {
	case n.Is(Object):
		for _, m := range slices.Backward(n.Members) {
			if m.Name == name {
				return m.Value
			}
		}
	case n.Is(Array):
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(n.Items) {
			return n.Items[i]
		}
	}
	return nil
}

// Bool gives the value of a boolean; ok is false for any other type.
func (n *Node) Bool() (value, ok bool) { return n.Is(Bool) && n.Raw[0] == 't', n.Is(Bool) }

// Int gives the value of a number that is written as an integer (1.0 is not) and fits in 64 bits.
func (n *Node) Int() (int64, bool) {
	if !n.Is(Number) {
		return 0, false
	}
	v, err := strconv.ParseInt(string(n.Raw), 10, 64)
	return v, err == nil
}

// IsInteger reports whether a number is written as an integer, of any size.
func (n *Node) IsInteger() bool { return n.Is(Number) && !bytes.ContainsAny(n.Raw, ".eE") }
