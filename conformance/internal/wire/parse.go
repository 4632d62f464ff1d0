package wire

import (
	"bytes"
	"fmt"
	"strconv"
	"unsafe"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// MaxDepth is how deep values may be nested.
const MaxDepth = 512

// maxTree bounds the memory of one tree in bytes, about 200,000 values.
const maxTree = 48 << 20

// What a value costs beside the text that it shares with the body.
const (
	nodeCost   = int(unsafe.Sizeof(Node{})) + 2*int(unsafe.Sizeof(&Node{}))
	memberCost = 2 * int(unsafe.Sizeof(Member{}))
)

const maxDuplicates = 100

// Parse reads exactly one JSON value (RFC 8259) in UTF-8, without a byte order
// mark and without anything but space around it. Raw texts share the memory of
// b. Its errors are of type *SyntaxError.
func Parse(b []byte) (*Node, error) {
	root, _, err := parse(b, nil)
	return root, err
}

// parse counts the tree against a budget too, when there is one. cost is about what the
// tree takes, in bytes, beside the text that it shares.
func parse(b []byte, memory *budget) (root *Node, cost int, err error) {
	p := &parser{b: b, budget: memory}
	root, err = p.document()
	if memory != nil {
		if err == nil && p.taken > 0 {
			for range p.taken / treeStep {
				follow(memory, root, treeStep)
			}
		} else {
			for range p.taken / treeStep {
				memory.give(treeStep)
			}
		}
	}
	if err != nil {
		return nil, p.cost, err
	}
	root.Duplicates = p.duplicates
	return root, p.cost, nil
}

// treeStep is the portion in bytes in which a tree asks for memory.
const treeStep = 2 * freeBytes

type parser struct {
	b          []byte
	at         int
	depth      int
	cost       int
	taken      int
	budget     *budget
	path       []step
	duplicates []string
	nodes      []Node // not used yet, of so many made at once
	made       int
}

// mostNodes are made at once: about 8 KiB.
const mostNodes = 64

// step is one element of the path to the current value.
type step struct {
	name  string
	index int // -1 for a member
}

func (p *parser) fail(kind SyntaxKind, at int, format string, args ...any) error {
	return &SyntaxError{Kind: kind, Offset: at, Reason: fmt.Sprintf(format, args...)}
}

// spend counts memory before it is used.
func (p *parser) spend(n int) error {
	p.cost += n
	for p.cost-freeBytes > p.taken {
		if p.cost > maxTree {
			return p.fail(SyntaxTooLarge, p.at, "too many values to hold in memory")
		}
		if p.budget != nil && len(p.b) >= heavy && !p.budget.take(treeStep) {
			return p.fail(SyntaxTooLarge, p.at, "too many values to hold in memory")
		}
		if p.budget != nil && len(p.b) < heavy && !p.budget.await(treeStep) {
			return unread("the replies that are being looked at have together too many values to hold in memory")
		}
		p.taken += treeStep
	}
	return nil
}

func (p *parser) document() (*Node, error) {
	if bytes.HasPrefix(p.b, []byte("\xef\xbb\xbf")) {
		return nil, p.fail(SyntaxBOM, 0, "a byte order mark stands before the value")
	}
	p.space()
	if p.at == len(p.b) {
		return nil, p.fail(SyntaxEmpty, p.at, "there is no value")
	}
	root, err := p.value()
	if err != nil {
		return nil, err
	}
	if p.space(); p.at < len(p.b) {
		return nil, p.fail(SyntaxTrailing, p.at, "%s %s the value", quantity.Count(len(p.b)-p.at, "byte"), quantity.Verb(len(p.b)-p.at, "follows", "follow"))
	}
	return root, nil
}

func (p *parser) space() {
	for p.at < len(p.b) {
		switch p.b[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// peek gives the next byte, 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.b) {
		return p.b[p.at]
	}
	return 0
}

func (p *parser) unexpected(wanted string) error {
	if p.at >= len(p.b) {
		return p.fail(SyntaxInvalid, p.at, "the text ends where %s should stand", wanted)
	}
	return p.fail(SyntaxInvalid, p.at, "%q stands where %s should", p.b[p.at], wanted)
}

func (p *parser) value() (*Node, error) {
	if err := p.spend(nodeCost); err != nil {
		return nil, err
	}
	n := p.node()
	from := p.at
	var err error
	switch c := p.peek(); {
	case c == '{':
		err = p.nested(n, Object, p.object)
	case c == '[':
		err = p.nested(n, Array, p.array)
	case c == '"':
		n.Kind = String
		n.Text, err = p.text()
	case c == '-' || c >= '0' && c <= '9':
		n.Kind = Number
		err = p.number()
	case c == 't':
		n.Kind = Bool
		err = p.word("true")
	case c == 'f':
		n.Kind = Bool
		err = p.word("false")
	case c == 'n':
		n.Kind = Null
		err = p.word("null")
	default:
		err = p.unexpected("a value")
	}
	if err != nil {
		return nil, err
	}
	n.Raw = p.b[from:p.at:p.at]
	return n, nil
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

// nested bounds the recursion.
func (p *parser) nested(n *Node, kind NodeKind, read func(*Node) error) error {
	if p.depth++; p.depth > MaxDepth {
		return p.fail(SyntaxDepth, p.at, "values are nested deeper than %d", MaxDepth)
	}
	n.Kind = kind
	p.at++
	p.space()
	err := read(n)
	p.depth--
	return err
}

func (p *parser) object(n *Node) error {
	var seen map[string]bool
	if p.peek() == '}' {
		p.at++
		return nil
	}
	for {
		if p.peek() != '"' {
			return p.unexpected("the name of a member")
		}
		name, err := p.text()
		if err != nil {
			return err
		}
		if err := p.spend(memberCost); err != nil {
			return err
		}
		p.path = append(p.path, step{name, -1})
		if seen, err = p.duplicate(n, name, seen); err != nil {
			return err
		}
		if p.space(); p.peek() != ':' {
			return p.unexpected(`":"`)
		}
		p.at++
		p.space()
		value, err := p.value()
		if err != nil {
			return err
		}
		p.path = p.path[:len(p.path)-1]
		if n.Members == nil {
			n.Members = make([]Member, 0, 2) // as memberCost counts
		}
		n.Members = append(n.Members, Member{name, value})
		if more, err := p.more('}', `"," or "}"`); !more {
			return err
		}
	}
}

// duplicate notes a name that came before. Small objects need no index.
func (p *parser) duplicate(n *Node, name string, seen map[string]bool) (map[string]bool, error) {
	found := false
	if seen == nil && len(n.Members) < 16 {
		for i := range n.Members {
			found = found || n.Members[i].Name == name
		}
	} else {
		if seen == nil {
			seen = make(map[string]bool)
			for i := range n.Members {
				seen[n.Members[i].Name] = true
			}
		}
		found = seen[name]
		seen[name] = true
		if err := p.spend(memberCost); err != nil {
			return nil, err
		}
	}
	if found && len(p.duplicates) < maxDuplicates {
		p.duplicates = append(p.duplicates, p.where())
	}
	return seen, nil
}

// where writes the path to the current value.
func (p *parser) where() string {
	var b []byte
	for _, s := range p.path {
		if s.index >= 0 {
			b = append(strconv.AppendInt(append(b, '['), int64(s.index), 10), ']')
			continue
		}
		if len(b) > 0 {
			b = append(b, '.')
		}
		b = append(b, foreign.Clip(s.name, quoted)...)
	}
	return string(b)
}

func (p *parser) array(n *Node) error {
	if p.peek() == ']' {
		p.at++
		return nil
	}
	for {
		p.path = append(p.path, step{"", len(n.Items)})
		item, err := p.value()
		if err != nil {
			return err
		}
		p.path = p.path[:len(p.path)-1]
		n.Items = append(n.Items, item)
		if more, err := p.more(']', `"," or "]"`); !more {
			return err
		}
	}
}

// more reads what stands between two elements.
func (p *parser) more(end byte, wanted string) (bool, error) {
	p.space()
	switch p.peek() {
	case end:
		p.at++
		return false, nil
	case ',':
		p.at++
		p.space()
		return true, nil
	}
	return false, p.unexpected(wanted)
}
