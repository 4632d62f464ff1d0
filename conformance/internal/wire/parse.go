package wire

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"unsafe"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/rawjson"
)

// maxTree bounds the memory of one tree in bytes, about 200,000 values.
const maxTree = 48 << 20

// The cost of a value, without the text that it shares with the body.
const (
	nodeCost   = int(unsafe.Sizeof(Node{})) + 2*int(unsafe.Sizeof(&Node{}))
	memberCost = 2 * int(unsafe.Sizeof(Member{}))
)

const (
	maxDepth      = 512
	maxDuplicates = 100
	fewMembers    = 16            // of an object need no index
	mostNodes     = 64            // are made at once: about 8 KiB
	treeStep      = 2 * freeBytes // in which a tree takes memory
)

// SyntaxError holds why and at which byte, from 0, a text is not one JSON value.
type SyntaxError = rawjson.SyntaxError

// Parse reads exactly one JSON value (RFC 8259) in UTF-8, at most 512 deep, without a byte
// order mark and without anything but space around it. Raw texts share the memory of b. Its
// errors are of type *SyntaxError, and one of KindTooLarge for more values than memory allows.
func Parse(b []byte) (*Node, error) {
	root, _, err := parse(b, nil)
	return root, err
}

// parse counts the tree against a budget too, when there is one. cost is about what the tree takes,
// in bytes, without the text that it shares.
func parse(b []byte, memory *budget) (root *Node, cost int, err error) {
	p := &parser{b: b, budget: memory}
	err = attempt(func() { root = p.document() })
	for range p.taken / treeStep {
		switch {
		case memory == nil:
		case err == nil:
			follow(memory, root, treeStep)
		default:
			memory.give(treeStep)
		}
	}
	return root, p.cost, err
}

// parser builds a tree from the scans of package rawjson. It fails at a fault, for attempt.
type parser struct {
	b          []byte
	at         int
	cost       int
	taken      int
	budget     *budget
	path       []byte // of the current value, such as .fields[2].label
	duplicates []string
	nodes      []Node // not used yet, of so many made at once
	made       int
}

// reached goes on where a scan has ended, or ends with its fault.
func (p *parser) reached(at int, fault rawjson.Fault) {
	if p.at = at; fault != rawjson.FaultNone {
		fail(rawjson.ErrorAt(at, fault))
	}
}

// spend counts memory before it is used.
func (p *parser) spend(n int) {
	p.cost += n
	for p.cost-freeBytes > p.taken {
		if p.cost > maxTree || p.budget != nil && len(p.b) >= heavy && !p.budget.take(treeStep) {
			fail(tooLarge("too many values to hold in memory"))
		}
		if p.budget != nil && len(p.b) < heavy && !p.budget.await(treeStep) {
			fail(unread("the replies that are being looked at have together too many values to hold in memory"))
		}
		p.taken += treeStep
	}
}

func (p *parser) document() *Node {
	if bytes.HasPrefix(p.b, []byte("\xef\xbb\xbf")) {
		fail(&SyntaxError{Reason: "a byte order mark precedes the value"})
	}
	if p.at = rawjson.SkipSpace(p.b, 0); p.at == len(p.b) {
		p.reached(p.at, rawjson.FaultEnd)
	}
	root := p.value(0)
	if p.at = rawjson.SkipSpace(p.b, p.at); p.at < len(p.b) {
		p.reached(p.at, rawjson.FaultTrailing)
	}
	root.Duplicates = p.duplicates
	return root
}

// kindOf is the kind of a value by its first byte; that of a number is not in it.
var kindOf = [256]NodeKind{'{': Object, '[': Array, '"': String, 't': Bool, 'f': Bool, 'n': Null}

func (p *parser) value(depth int) *Node {
	p.spend(nodeCost)
	n, from := p.node(), p.at
	n.Kind = cmp.Or(kindOf[p.b[from]], Number)
	switch n.Kind {
	case Object, Array:
		if depth == maxDepth {
			fail(&SyntaxError{Offset: from, Reason: "nested deeper than 512"})
		}
		if n.Kind == Object {
			p.object(n, depth+1)
		} else {
			p.array(n, depth+1)
		}
	case String:
		end, fault := rawjson.SkipString(p.b, from+1)
		if fault == rawjson.FaultEnd {
			fail(&SyntaxError{Offset: from, Reason: "the string does not end"})
		}
		p.reached(end, fault)
		n.Text = p.text(p.b[from+1 : end-1])
	default:
		p.reached(rawjson.SkipValue(p.b, from, depth))
	}
	n.Raw = p.b[from:p.at:p.at]
	return n
}

// node gives a new node; they are made many at once.
func (p *parser) node() *Node {
	if len(p.nodes) == 0 {
		p.made = min(max(1, 2*p.made), mostNodes)
		p.nodes = make([]Node, p.made)
	}
	n := &p.nodes[0]
	p.nodes = p.nodes[1:]
	return n
}

func (p *parser) object(n *Node, depth int) {
	at, more, fault := rawjson.FirstMember(p.b, p.at)
	if more {
		n.Members = make([]Member, 0, 2) // as memberCost counts
	}
	var seen map[string]bool
	for p.reached(at, fault); more; p.reached(at, fault) {
		from := p.at + 1
		end, value, wrong := rawjson.SkipKey(p.b, p.at)
		p.reached(value, wrong)
		name := p.text(p.b[from:end])
		p.spend(memberCost)
		outer := len(p.path)
		p.path = append(append(p.path, '.'), foreign.Clip(name, quoted)...)
		seen = p.duplicate(n, name, seen)
		n.Members = append(n.Members, Member{name, p.value(depth)})
		p.path = p.path[:outer]
		at, more, fault = rawjson.NextMember(p.b, p.at)
	}
}

// duplicate notes a name that came before in n. seen is the index of its names, nil of a few.
func (p *parser) duplicate(n *Node, name string, seen map[string]bool) map[string]bool {
	if len(n.Members) == fewMembers {
		seen = make(map[string]bool)
		for _, m := range n.Members {
			seen[m.Name] = true
		}
	}
	found := seen[name] || seen == nil && slices.ContainsFunc(n.Members, func(m Member) bool { return m.Name == name })
	if seen != nil {
		seen[name] = true
		p.spend(memberCost)
	}
	if found && len(p.duplicates) < maxDuplicates {
		p.duplicates = append(p.duplicates, string(bytes.TrimPrefix(p.path, []byte("."))))
	}
	return seen
}

func (p *parser) array(n *Node, depth int) {
	at, more, fault := rawjson.FirstElement(p.b, p.at)
	for p.reached(at, fault); more; p.reached(at, fault) {
		outer := len(p.path)
		p.path = append(strconv.AppendInt(append(p.path, '['), int64(len(n.Items)), 10), ']')
		n.Items = append(n.Items, p.value(depth))
		p.path = p.path[:outer]
		at, more, fault = rawjson.NextElement(p.b, p.at)
	}
}

// text decodes the inside of a string that was scanned.
func (p *parser) text(inner []byte) string {
	p.spend(len(inner))
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	decoded, _ := rawjson.Unescape(make([]byte, 0, len(inner)), inner)
	return string(decoded)
}

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
