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
	var unexpected *yaml.UnexpectedNodeTypeError
	if errors.As(err, &unexpected) {
		message = fmt.Sprintf("expected %s, found %s", nodeName(unexpected.Expected), nodeName(unexpected.Actual))
	}
	var mistyped *yaml.TypeError
	if errors.As(err, &mistyped) {
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
