// Package yamldoc owns the strict reading of YAML that people write: the
// configuration of a command, a seed, a catalogue. Whatever is wrong is an
// *Error that points at file, line and column and shows the line.
//
// It refuses to know what a document means, where its bytes come from and what
// becomes of the error: it reads no file and knows no exit status.
package yamldoc

import (
	"bytes"
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
// document leaves dst as it was. file stands in messages only. Every error is
// an *Error; after one dst may be filled in part.
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
	var placed yaml.Error
	if errors.As(err, &placed) {
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
			if name == "" {
				name = strings.ToLower(field.Name)
			}
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
