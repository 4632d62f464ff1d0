package yamldoc

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/destkit/destkit/internal/suggest"
)

// Error is one mistake in a document. Line and Column count from 1 and are 0
// when the mistake has no place. Excerpt is the line with a mark under the
// column; it shows what the author wrote, so a caller that must not repeat
// secrets leaves it out and uses Brief.
type Error struct {
	File         string
	Line, Column int
	Message      string
	Excerpt      string
}

// Brief is file:line:column and the message, without the excerpt.
func (e *Error) Brief() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// Error is Brief with the excerpt on the lines below.
func (e *Error) Error() string {
	if e.Excerpt == "" {
		return e.Brief()
	}
	return e.Brief() + "\n" + e.Excerpt
}

// At makes the error that points at one token of src; a nil token has no place.
func At(file string, src []byte, tk *token.Token, message string) *Error {
	e := &Error{File: file, Message: message}
	if tk == nil || tk.Position == nil {
		return e
	}
	return e.place(src, tk.Position.Line, tk.Position.Column)
}

// place sets line and column and cuts the excerpt out of src.
func (e *Error) place(src []byte, line, column int) *Error {
	e.Line, e.Column = line, column
	if lines := strings.Split(withoutMark(string(src)), "\n"); line >= 1 && line <= len(lines) {
		shown := strings.TrimRight(lines[line-1], "\r")
		e.Excerpt = fmt.Sprintf("  %4d | %s\n       | %s^", line, shown, strings.Repeat(" ", max(column-1, 0)))
	}
	return e
}

// UnknownKey words the message for a key that does not exist: with the key
// that was probably meant, or with all that are known when they are few. known
// may hold keys of other places.
func UnknownKey(key string, known []string) string {
	message := fmt.Sprintf("unknown key %q", key)
	if slices.Contains(known, key) {
		message = fmt.Sprintf("the key %q does not belong here", key) // but elsewhere in the document
	} else if near := suggest.Word(key, known); near != "" {
		message += fmt.Sprintf(", did you mean %q?", near)
	} else if len(known) > 0 && len(known) <= 12 {
		message += "; known are " + strings.Join(known, ", ")
	}
	return message
}

// located turns an error of the YAML library into ours. keys are the keys that
// could have been meant.
func located(file string, src []byte, err error, keys []string) *Error {
	var placed yaml.Error
	if !errors.As(err, &placed) {
		return &Error{File: file, Message: err.Error()}
	}
	message := plainly(placed.GetMessage())
	var unknown *yaml.UnknownFieldError
	if errors.As(err, &unknown) && unknown.Token != nil {
		message = UnknownKey(unknown.Token.Value, keys)
	}
	if unexpected, ok := errors.AsType[*yaml.UnexpectedNodeTypeError](err); ok {
		message = fmt.Sprintf("expected %s, found %s", nodeName(unexpected.Expected), nodeName(unexpected.Actual))
	}
	if mistyped, ok := errors.AsType[*yaml.TypeError](err); ok {
		message = fmt.Sprintf("expected %s, found %s", kindName(mistyped.DstType), kindName(mistyped.SrcType))
	}
	return At(file, src, placed.GetToken(), message)
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

// plain are the messages of the YAML library that lack advice, by their beginning, with
// what an author of a file can do about it. The longer of two that begin alike comes
// first.
var plain = []struct{ message, means string }{
	{"found character '\t' that cannot start any token", tabs},
	{"tab character cannot use", tabs},
	{"mapping value is not allowed in this context", "this value has a key with a colon in it: put the value in quotes, or check the indentation of the line below"},
	{"value is not allowed in this context. map key-value is pre-defined", "there is more text behind the end of the value: put the whole value in one pair of quotes"},
	{"value is not allowed in this context", "this line does not fit those above it: check its indentation"},
	{"non-map value is specified", "expected a key with its value, such as key: value"},
	{"unexpected key name", "expected a key with its value, such as key: value"},
	{"unexpected map key", "expected a key with its value, such as key: value"},
	{"map key definition includes an implicit line break", "a key and its colon must be on one line"},
	{"sequence end token ']' not found", "the list has no ] at its end, or a comma is missing"},
	{"',' or ']' must be specified", "the list has no ] at its end, or a comma is missing"},
	{"could not find flow mapping end token '}'", "the mapping has no } at its end, or a comma is missing"},
	{"',' or '}' must be specified", "the mapping has no } at its end, or a comma is missing"},
	{"could not find '[' character corresponding to ']'", "there is a ] without its ["},
	{"could not find '{' character corresponding to '}'", "there is a } without its {"},
	{"could not find end character of double-quoted text", `the text has no " at its end`},
	{"could not find end character of single-quoted text", "the text has no ' at its end"},
	{"could not find alias", "there is no anchor of this name above: put text that begins with * in quotes"},
	{"block sequence entries are not allowed in this context", "a list must begin on the line below its key"},
	{"found unknown escape character", `the text in double quotes has an escape that YAML does not know: write \\ for a backslash, or use single quotes`},
}

const tabs = "the line begins with a tab: YAML is indented with spaces"

// plainly puts a message of the YAML library into words for authors of files.
func plainly(message string) string {
	for _, p := range plain {
		if strings.HasPrefix(message, p.message) {
			return p.means
		}
	}
	if character, ok := strings.CutSuffix(message, " is a reserved character"); ok {
		return "text cannot begin with " + character + ": put it in quotes"
	}
	key, isKey := strings.CutPrefix(message, "mapping key ")
	if key, place, twice := strings.Cut(key, " already defined at ["); isKey && twice {
		line, _, _ := strings.Cut(place, ":")
		return "the key " + key + " is here a second time, the first is in line " + line
	}
	return message
}
