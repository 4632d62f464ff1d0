package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// readYAML decodes one YAML file into dst, a pointer to a struct, strictly:
// an unknown key, a key given twice and a value of the wrong type are errors
// that name file, line and column, show the line, and suggest the key that was
// probably meant. An empty file leaves dst as it was.
func readYAML(file string, dst any) error {
	src, err := os.ReadFile(file)
	if err != nil {
		return usageError(fmt.Errorf("read file: %w", err))
	}
	return decodeYAML(file, src, dst)
}

// decodeYAML is readYAML on bytes; file is used in messages only.
func decodeYAML(file string, src []byte, dst any) error {
	doc, err := parseYAML(file, src)
	if err != nil || doc == nil {
		return err
	}
	dec := yaml.NewDecoder(bytes.NewReader(nil), yaml.Strict())
	if err := dec.DecodeFromNode(doc, dst); err != nil && !errors.Is(err, io.EOF) {
		if tk := culprit(doc, err); tk != nil {
			return positionError(file, src, tk, err.Error())
		}
		return yamlError(file, src, err, yamlKeys(reflect.TypeOf(dst)))
	}
	return nil
}

// culprit finds the value that an error quotes when the library gives the error
// no place, as it does for durations; nil otherwise.
func culprit(doc ast.Node, err error) *token.Token {
	var located yaml.Error
	if errors.As(err, &located) {
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

// parseYAML returns the body of the only document of src, nil when there is
// none. A second document would be ignored silently, so it is refused.
func parseYAML(file string, src []byte) (ast.Node, error) {
	parsed, err := parser.ParseBytes(src, 0)
	if err != nil {
		return nil, yamlError(file, src, err, nil)
	}
	var body ast.Node
	for _, doc := range parsed.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.NullType || doc.Body.Type() == ast.CommentType {
			continue
		}
		if body != nil {
			return nil, positionError(file, src, doc.Body.GetToken(), "a second YAML document; one file holds one document")
		}
		body = doc.Body
	}
	return body, nil
}

// yamlError turns an error of the YAML library into ours. keys are the keys
// that could have been meant.
func yamlError(file string, src []byte, err error, keys []string) error {
	var located yaml.Error
	if !errors.As(err, &located) {
		return usageError(fmt.Errorf("%s: %w", file, err))
	}
	message := located.GetMessage()
	var unknown *yaml.UnknownFieldError
	if errors.As(err, &unknown) && unknown.Token != nil {
		message = unknownKey(unknown.Token.Value, keys)
	}
	var unexpected *yaml.UnexpectedNodeTypeError
	if errors.As(err, &unexpected) {
		message = fmt.Sprintf("expected %s, found %s", nodeName(unexpected.Expected), nodeName(unexpected.Actual))
	}
	var mistyped *yaml.TypeError
	if errors.As(err, &mistyped) {
		message = fmt.Sprintf("expected %s, found %s", kindName(mistyped.DstType), kindName(mistyped.SrcType))
	}
	return positionError(file, src, located.GetToken(), message)
}

// positionError is a usage error that points at one token: file:line:column,
// the message, the line itself and a mark under the column.
func positionError(file string, src []byte, tk *token.Token, message string) error {
	if tk == nil || tk.Position == nil {
		return usageError(fmt.Errorf("%s: %s", file, message))
	}
	line, column := tk.Position.Line, tk.Position.Column
	text := fmt.Sprintf("%s:%d:%d: %s", file, line, column, message)
	if lines := strings.Split(string(src), "\n"); line >= 1 && line <= len(lines) {
		shown := strings.TrimRight(lines[line-1], "\r")
		text += fmt.Sprintf("\n  %4d | %s\n       | %s^", line, shown, strings.Repeat(" ", max(column-1, 0)))
	}
	return usageError(errors.New(text))
}

// unknownKey words the error for a key that does not exist.
func unknownKey(key string, keys []string) string {
	message := fmt.Sprintf("unknown key %q", key)
	if near := nearest(key, keys); near != "" {
		message += fmt.Sprintf(", did you mean %q?", near)
	} else if len(keys) > 0 && len(keys) <= 12 {
		message += "; known are " + strings.Join(keys, ", ")
	}
	return message
}

// yamlKeys lists every key that t and the structs below it can have.
func yamlKeys(t reflect.Type) []string {
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

// kindName is the word that a reader of a YAML file has for a Go type.
func kindName(t reflect.Type) string {
	if t == nil {
		return "nothing"
	}
	if t.String() == "time.Duration" {
		return "a duration such as 10s"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "a mapping"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Pointer:
		return kindName(t.Elem())
	default:
		return "a whole number"
	}
}

// nodeName is the same word for a node of the file.
func nodeName(t ast.NodeType) string {
	switch t {
	case ast.SequenceType:
		return "a list"
	case ast.IntegerType:
		return "a whole number"
	case ast.FloatType:
		return "a number"
	case ast.BoolType:
		return "true or false"
	default:
		return "a " + t.YAMLName()
	}
}
