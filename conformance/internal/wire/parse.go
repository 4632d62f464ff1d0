package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"unsafe"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/internal/rawjson"
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
	for range p.taken / treeStep {
		switch {
		case memory == nil:
		case err == nil:
			follow(memory, root, treeStep)
		default:
			memory.give(treeStep)
		}
	}
	if err == nil {
		root.Duplicates = p.duplicates
	}
	return root, p.cost, err
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

// fail ends the parsing; document returns the error.
func (p *parser) fail(kind SyntaxKind, at int, format string, args ...any) {
	panic(&SyntaxError{Kind: kind, Offset: at, Reason: fmt.Sprintf(format, args...)})
}

// spend counts memory before it is used.
func (p *parser) spend(n int) {
	p.cost += n
	for p.cost-freeBytes > p.taken {
		if p.cost > maxTree || p.budget != nil && len(p.b) >= heavy && !p.budget.take(treeStep) {
			p.fail(SyntaxTooLarge, p.at, "too many values to hold in memory")
		}
		if p.budget != nil && len(p.b) < heavy && !p.budget.await(treeStep) {
			panic(unread("the replies that are being looked at have together too many values to hold in memory"))
		}
		p.taken += treeStep
	}
}

func (p *parser) document() (root *Node, err error) {
	defer func() {
		switch failure := recover().(type) {
		case nil:
		case *SyntaxError:
			root, err = nil, failure
		case *Error:
			root, err = nil, failure
		default:
			panic(failure)
		}
	}()
	if bytes.HasPrefix(p.b, []byte("\xef\xbb\xbf")) {
		p.fail(SyntaxBOM, 0, "a byte order mark stands before the value")
	}
	p.space()
	if p.at == len(p.b) {
		p.fail(SyntaxEmpty, p.at, "there is no value")
	}
	root = p.value()
	if p.space(); p.at < len(p.b) {
		p.fail(SyntaxTrailing, p.at, "%s %s the value", quantity.Count(len(p.b)-p.at, "byte"), quantity.Verb(len(p.b)-p.at, "follows", "follow"))
	}
	return root, nil
}

func (p *parser) space() { p.at = rawjson.SkipSpace(p.b, p.at) }

// peek gives the next byte, 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.b) {
		return p.b[p.at]
	}
	return 0
}

func (p *parser) unexpected(wanted string) {
	if p.at >= len(p.b) {
		p.fail(SyntaxInvalid, p.at, "the text ends where %s should stand", wanted)
	}
	p.fail(SyntaxInvalid, p.at, "%q stands where %s should", p.b[p.at], wanted)
}

func (p *parser) value() *Node {
	p.spend(nodeCost)
	n := p.node()
	from := p.at
	switch c := p.peek(); {
	case c == '{':
		p.nested(n, Object, p.object)
	case c == '[':
		p.nested(n, Array, p.array)
	case c == '"':
		n.Kind, n.Text = String, p.text()
	case c == '-' || c >= '0' && c <= '9':
		n.Kind = Number
		p.number()
	case c == 't':
		n.Kind = Bool
		p.word("true")
	case c == 'f':
		n.Kind = Bool
		p.word("false")
	case c == 'n':
		n.Kind = Null
		p.word("null")
	default:
		p.unexpected("a value")
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

// nested bounds the recursion.
func (p *parser) nested(n *Node, kind NodeKind, read func(*Node)) {
	if p.depth++; p.depth > MaxDepth {
		p.fail(SyntaxDepth, p.at, "values are nested deeper than %d", MaxDepth)
	}
	n.Kind = kind
	p.at++
	p.space()
	read(n)
	p.depth--
}

func (p *parser) object(n *Node) {
	var seen map[string]bool
	for more := p.begins('}'); more; more = p.goesOn('}') {
		if p.peek() != '"' {
			p.unexpected("the name of a member")
		}
		name := p.text()
		p.spend(memberCost)
		p.path = append(p.path, step{name, -1})
		seen = p.duplicate(n, name, seen)
		if p.space(); p.peek() != ':' {
			p.unexpected(`":"`)
		}
		p.at++
		p.space()
		value := p.value()
		p.path = p.path[:len(p.path)-1]
		if n.Members == nil {
			n.Members = make([]Member, 0, 2) // as memberCost counts
		}
		n.Members = append(n.Members, Member{name, value})
	}
}

// duplicate notes a name that came before. Small objects need no index.
func (p *parser) duplicate(n *Node, name string, seen map[string]bool) map[string]bool {
	found := false
	if seen == nil && len(n.Members) < 16 {
		found = slices.ContainsFunc(n.Members, func(m Member) bool { return m.Name == name })
	} else {
		if seen == nil {
			seen = make(map[string]bool)
			for _, m := range n.Members {
				seen[m.Name] = true
			}
		}
		found = seen[name]
		seen[name] = true
		p.spend(memberCost)
	}
	if found && len(p.duplicates) < maxDuplicates {
		p.duplicates = append(p.duplicates, p.where())
	}
	return seen
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

func (p *parser) array(n *Node) {
	for more := p.begins(']'); more; more = p.goesOn(']') {
		p.path = append(p.path, step{"", len(n.Items)})
		n.Items = append(n.Items, p.value())
		p.path = p.path[:len(p.path)-1]
	}
}

// begins reports whether an object or an array has something in it, and reads the end of
// one that has not.
func (p *parser) begins(end byte) bool {
	if p.peek() != end {
		return true
	}
	p.at++
	return false
}

// goesOn reads what stands between two elements, or behind the last.
func (p *parser) goesOn(end byte) bool {
	p.space()
	c := p.peek()
	if c != end && c != ',' {
		p.unexpected(`"," or "` + string(end) + `"`)
	}
	if p.at++; c == end {
		return false
	}
	p.space()
	return true
}

func (p *parser) word(word string) {
	if !bytes.HasPrefix(p.b[p.at:], []byte(word)) {
		p.unexpected("a value")
	}
	p.at += len(word)
}

func (p *parser) number() {
	end, fault := rawjson.SkipNumber(p.b, p.at)
	if p.at = end; fault != rawjson.FaultNone {
		p.unexpected("a digit")
	}
}

// text decodes a string.
func (p *parser) text() string {
	from := p.at
	end, fault := rawjson.SkipString(p.b, from+1)
	switch fault {
	case rawjson.FaultNone:
	case rawjson.FaultControl:
		p.fail(SyntaxInvalid, end, "the control character %q stands in a string", p.b[end])
	case rawjson.FaultUTF8:
		p.fail(SyntaxUTF8, end, "the byte 0x%02x in a string is not UTF-8", p.b[end])
	case rawjson.FaultEscape:
		p.fail(SyntaxInvalid, end, "a backslash begins no escape")
	default:
		p.fail(SyntaxInvalid, from, "the string does not end")
	}
	p.at = end
	inner := p.b[from+1 : end-1]
	p.spend(len(inner))
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	decoded, _ := rawjson.Unescape(make([]byte, 0, len(inner)), inner)
	return string(decoded)
}
