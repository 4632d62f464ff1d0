package wire

import (
	"bytes"
	"fmt"
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
	names := [...]string{"absent", "null", "boolean", "number", "string", "array", "object"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// Node is one JSON value. Its methods work on a nil node, which stands for an
// absent value.
type Node struct {
	Kind NodeKind
	// Raw is the text of the value as received, without space around it.
	Raw []byte
	// Text is the decoded string, "" for other types. Half a surrogate pair stands in it as
	// the three bytes that UTF-8 would give it (WTF-8).
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

// Get goes down by member names, and by decimal indices in arrays. It gives nil
// when there is no such value. Of duplicate members the last counts, as in
// nearly every parser.
func (n *Node) Get(path ...string) *Node {
	for _, name := range path {
		n = n.child(name)
	}
	return n
}

func (n *Node) child(name string) *Node {
	switch {
	case n.Is(Object):
		for i := len(n.Members) - 1; i >= 0; i-- {
			if n.Members[i].Name == name {
				return n.Members[i].Value
			}
		}
	case n.Is(Array):
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(n.Items) {
			return n.Items[i]
		}
	}
	return nil
}

// Has reports whether an object has the member, even as null.
func (n *Node) Has(name string) bool { return n.Is(Object) && n.child(name) != nil }

// Bool gives the value of a boolean; ok is false for any other type.
func (n *Node) Bool() (value, ok bool) {
	if !n.Is(Bool) {
		return false, false
	}
	return n.Raw[0] == 't', true
}

// Int gives the value of a number that is written as an integer and fits in
// 64 bits; 1.0 and 1e3 are not.
func (n *Node) Int() (int64, bool) {
	if !n.Is(Number) {
		return 0, false
	}
	v, err := strconv.ParseInt(string(n.Raw), 10, 64)
	return v, err == nil
}

// IsInteger reports whether a number is written as an integer, of any size.
func (n *Node) IsInteger() bool { return n.Is(Number) && !bytes.ContainsAny(n.Raw, ".eE") }

// SyntaxKind says in which way a text is not one JSON value.
type SyntaxKind string

// The ways.
const (
	SyntaxEmpty    SyntaxKind = "empty"    // nothing but space
	SyntaxBOM      SyntaxKind = "bom"      // begins with a byte order mark
	SyntaxUTF8     SyntaxKind = "utf8"     // a string that is not UTF-8
	SyntaxTrailing SyntaxKind = "trailing" // bytes after a complete value
	SyntaxDepth    SyntaxKind = "depth"    // nested deeper than MaxDepth
	SyntaxTooLarge SyntaxKind = "toolarge" // more values than memory allows
	SyntaxInvalid  SyntaxKind = "invalid"  // anything else
)

// SyntaxError says why and at which byte a text is not one JSON value.
type SyntaxError struct {
	Kind   SyntaxKind
	Offset int // from 0
	Reason string
}

// Error gives the reason with its place.
func (e *SyntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.Reason, e.Offset) }
