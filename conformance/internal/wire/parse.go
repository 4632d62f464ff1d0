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
	p.at = rawjson.SkipSpace(p.b, p.at+1)
	if p.at < len(p.b) && p.b[p.at] == '}' {
		p.at++
		return
	}
	n.Members = make([]Member, 0, 2) // as memberCost counts
	var seen map[string]bool
	for more := true; more; {
		from := p.at + 1
		end, value, fault := rawjson.SkipKey(p.b, p.at)
		p.reached(value, fault)
		name := p.text(p.b[from:end])
		p.spend(memberCost)
		outer := len(p.path)
		p.path = append(append(p.path, '.'), foreign.Clip(name, quoted)...)
		seen = p.duplicate(n, name, seen)
		n.Members = append(n.Members, Member{name, p.value(depth)})
		p.path = p.path[:outer]
		p.at, more, fault = rawjson.NextMember(p.b, p.at)
		p.reached(p.at, fault)
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
