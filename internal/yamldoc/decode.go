// Package yamldoc owns the strict reading of YAML that people write: the
// configuration of a command, a seed, a catalogue. Whatever is wrong is an
// *Error that points at file, line and column and shows the line.
//
// It refuses to know what a document means, where its bytes come from and what
// becomes of the error: it reads no file and knows no exit status.
package yamldoc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Decode decodes the only document of src into dst, a pointer, strictly: an
// unknown key, a key given twice, a second document and a value of the wrong
// type are errors, and the key that was probably meant is suggested. An empty
// document leaves dst as it was. file is for messages only. Every error is an
// *Error; after one dst may be filled in part.
func Decode(file string, src []byte, dst any) (err error) {
	defer recovered(file, &err)
	body, err := Parse(file, src)
	if err != nil || body == nil {
		return err
	}
	dec := yaml.NewDecoder(bytes.NewReader(nil), yaml.Strict())
	if err := dec.DecodeFromNode(body, dst); err != nil && !errors.Is(err, io.EOF) {
		if tk := culprit(body, err); tk != nil {
			return At(file, src, tk, err.Error())
		}
		return located(file, src, err, keysOf(reflect.TypeOf(dst)))
	}
	return nil
}

// Parse returns the body of the only document of src, nil when there is none,
// for readers whose keys are not the fields of a struct. A second document
// would be ignored silently, so it is refused. Every error is an *Error.
func Parse(file string, src []byte) (body ast.Node, err error) {
	defer recovered(file, &err)
	tokens := lexer.Tokenize(withoutMark(string(src)))
	if tk := tooDeep(tokens); tk != nil {
		return nil, At(file, src, tk, depthMessage)
	}
	parsed, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, located(file, src, err, nil)
	}
	for _, doc := range parsed.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.NullType || doc.Body.Type() == ast.CommentType {
			continue
		}
		if body != nil {
			return nil, At(file, src, doc.Body.GetToken(), "a second YAML document; one file holds one document")
		}
		body = doc.Body
	}
	if tk := tooLong(body); tk != nil {
		return nil, At(file, src, tk, fmt.Sprintf("its aliases repeat more than %d MiB", maxExpanded>>20))
	}
	return body, nil
}

// withoutMark leaves out the mark of UTF-8 that programs of Windows put before a text.
func withoutMark(src string) string { return strings.TrimPrefix(src, "\ufeff") }

// culprit finds the value that an error quotes when the library gives the error
// no place, as it does for durations; nil otherwise.
func culprit(doc ast.Node, err error) *token.Token {
	if _, ok := errors.AsType[yaml.Error](err); ok {
		return nil
	}
	found := scalarFinder{text: err.Error()}
	ast.Walk(&found, doc)
	return found.at
}

// scalarFinder looks for the first scalar that text quotes.
type scalarFinder struct {
	text string
	at   *token.Token
}

func (f *scalarFinder) Visit(node ast.Node) ast.Visitor {
	if scalar, ok := node.(ast.ScalarNode); ok && f.at == nil {
		if tk := scalar.GetToken(); strings.Contains(f.text, strconv.Quote(tk.Value)) {
			f.at = tk
		}
	}
	return f
}

// keysOf lists every key that t and the structs below it can have.
func keysOf(t reflect.Type) []string {
	var keys []string
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] {
			return
		}
		seen[t] = true
		for field := range t.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			if name == "-" || !field.IsExported() {
				continue
			}
			name = cmp.Or(name, strings.ToLower(field.Name))
			if !field.Anonymous {
				keys = append(keys, name)
			}
			walk(field.Type)
		}
	}
	walk(t)
	return keys
}

// recovered turns a panic of the YAML library into an error: documents come
// over the network too, and none of them may end the program.
func recovered(file string, err *error) {
	if p := recover(); p != nil {
		*err = &Error{File: file, Message: fmt.Sprintf("the YAML library gave up: %v", p)}
	}
}

// maxDepth bounds how deep a document may nest. The library's time grows with
// the square of the depth, and no document that a person writes comes near.
const maxDepth = 100

// tooDeep gives the token at which tokens nest deeper than maxDepth, nil when
// they never do. Brackets nest by pairs; the marks of lists, keys, tags and
// anchors nest within their line; nesting by indentation pays for each level
// with a longer line and needs no bound.
func tooDeep(tokens token.Tokens) *token.Token {
	brackets, marks, line := 0, 0, 0
	for _, tk := range tokens {
		if tk.Position != nil && tk.Position.Line != line {
			marks, line = 0, tk.Position.Line
		}
		switch tk.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType, token.TagType, token.AnchorType:
			marks++
		case token.CollectEntryType: // a comma: the next item starts afresh
			marks = 0
		}
		if brackets > maxDepth || marks > maxDepth {
			return tk
		}
	}
	return nil
}

// depthMessage is the message for what tooDeep has found.
var depthMessage = fmt.Sprintf("nested deeper than %d levels", maxDepth)

// Encode writes a value as a document that Decode reads back.
func Encode(v any) ([]byte, error) {
	text, err := yaml.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write document: %w", err)
	}
	return text, nil
}

// maxExpanded bounds a document in bytes once every alias is expanded.
// Decoding shares it, so that a few lines can mean gigabytes to whoever writes
// the value out again.
const maxExpanded = 64 << 20

// tooLong gives the token at which the expanded document grows beyond
// maxExpanded, nil when it never does.
func tooLong(body ast.Node) *token.Token {
	e := expansion{anchors: map[string]int{}}
	e.size(body)
	return e.at
}

// expansion adds up sizes in bytes; an anchor precedes its aliases.
type expansion struct {
	anchors map[string]int
	at      *token.Token
}

// size is that of a node with all aliases below it, at most maxExpanded + 1.
func (e *expansion) size(node ast.Node) int {
	if node == nil || e.at != nil {
		return 0
	}
	total := 1
	add := func(nodes ...ast.Node) {
		for _, child := range nodes {
			total += e.size(child)
		}
	}
	switch n := node.(type) {
	case *ast.MappingNode:
		for _, value := range n.Values {
			add(value)
		}
	case *ast.MappingValueNode:
		add(n.Key, n.Value)
	case *ast.MappingKeyNode:
		add(n.Value)
	case *ast.SequenceNode:
		add(n.Values...)
	case *ast.TagNode:
		add(n.Value)
	case *ast.AnchorNode:
		add(n.Value)
		e.anchors[nameOf(n.Name)] = total
	case *ast.AliasNode:
		total += e.anchors[nameOf(n.Value)]
	default:
		if tk := node.GetToken(); tk != nil {
			total += len(tk.Value)
		}
	}
	if total > maxExpanded && e.at == nil {
		e.at = node.GetToken()
	}
	return total
}

// nameOf is the name of an anchor, as an anchor or an alias has it.
func nameOf(node ast.Node) string {
	if node == nil || node.GetToken() == nil {
		return ""
	}
	return node.GetToken().Value
}
