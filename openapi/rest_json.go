package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// maxDepth bounds how deep a body nests, so that no body can exhaust the stack
// of what walks it later; maxValues bounds what validating it costs. The largest
// sync that the document allows has a third of that.
const (
	maxDepth  = 64
	maxValues = 100_000
)

// inexact is a number with a point or an exponent, or of more than 64 bits. JSON
// Schema calls 1.0 an integer, but no integer field can be decoded from it; as a
// type of its own it is refused where an integer is expected and free elsewhere.
type inexact string

// syntaxError says where a body cannot be read. It quotes nothing of the body,
// which may hold secrets; key is set for a repeated name.
type syntaxError struct {
	offset  int
	message string
	field   string
}

func (e *syntaxError) Error() string { return e.message }

// at is the line and the column of an offset, both counted from 1, the column
// in characters.
func at(text []byte, offset int) (line, column int) {
	before := text[:min(offset, len(text))]
	line = bytes.Count(before, []byte{'\n'}) + 1
	last := bytes.LastIndexByte(before, '\n') + 1
	return line, utf8.RuneCount(before[last:]) + 1
}

// jsonReader decodes JSON into the values that kin validates: objects are
// map[string]any. Unlike encoding/json it refuses repeated names, bytes that are
// no UTF-8, and more than maxDepth levels.
type jsonReader struct {
	text   []byte
	pos    int
	depth  int
	values int
	exact  bool // a request: numbers that no int64 holds become inexact, and values are counted
	path   place
	repeat []syntaxError
}

// decodeJSON reads a whole body. repeated are names that stand twice in one
// object: the value is the last one, as other decoders have it.
func decodeJSON(text []byte, exact bool) (value any, repeated []syntaxError, err error) {
	r := &jsonReader{text: text, exact: exact}
	value, err = r.value()
	if err != nil {
		return nil, nil, err
	}
	if r.space(); r.pos < len(text) {
		return nil, nil, r.fail("there is something after the end of the value")
	}
	return value, r.repeat, nil
}

func (r *jsonReader) fail(message string) error {
	return &syntaxError{offset: r.pos, message: message}
}

// space skips white space (RFC 8259 knows these four characters).
func (r *jsonReader) space() {
	for r.pos < len(r.text) {
		switch r.text[r.pos] {
		case ' ', '\t', '\r', '\n':
			r.pos++
		default:
			return
		}
	}
}

// next is the next character that is no white space, 0 at the end.
func (r *jsonReader) next() byte {
	if r.space(); r.pos < len(r.text) {
		return r.text[r.pos]
	}
	return 0
}

// value reads any value.
func (r *jsonReader) value() (any, error) {
	if r.values++; r.exact && r.values > maxValues {
		return nil, r.fail(fmt.Sprintf("it holds more than %d values", maxValues))
	}
	switch c := r.next(); {
	case c == '{':
		return r.nested(r.object)
	case c == '[':
		return r.nested(r.array)
	case c == '"':
		return r.string()
	case c == '-' || c >= '0' && c <= '9':
		return r.number()
	case c == 't':
		return true, r.word("true")
	case c == 'f':
		return false, r.word("false")
	case c == 'n':
		return nil, r.word("null")
	case r.pos >= len(r.text):
		return nil, r.fail("the text ends where a value should stand")
	}
	return nil, r.fail("a value should stand here")
}

func (r *jsonReader) word(word string) error {
	if !bytes.HasPrefix(r.text[r.pos:], []byte(word)) {
		return r.fail("a value should stand here")
	}
	r.pos += len(word)
	return nil
}

// nested reads an object or an array one level deeper.
func (r *jsonReader) nested(read func() (any, error)) (any, error) {
	if r.depth++; r.depth > maxDepth {
		return nil, r.fail(fmt.Sprintf("it nests more than %d levels deep", maxDepth))
	}
	r.pos++ // the bracket
	v, err := read()
	r.depth--
	return v, err
}

// object reads the members of an object after its brace. Of a name that stands
// twice the last value counts, and the first repetitions are kept.
func (r *jsonReader) object() (any, error) {
	object := map[string]any{}
	if r.next() == '}' {
		r.pos++
		return object, nil
	}
	for {
		if r.next() != '"' {
			return nil, r.fail("a name in quotes should stand here")
		}
		start := r.pos
		name, err := r.string()
		if err != nil {
			return nil, err
		}
		if r.next() != ':' {
			return nil, r.fail("a colon should stand here")
		}
		r.pos++
		r.path = append(r.path, step{name: name})
		if _, twice := object[name]; twice && len(r.repeat) < maxProblems {
			r.repeat = append(r.repeat, syntaxError{offset: start, field: r.path.String()})
		}
		if object[name], err = r.value(); err != nil {
			return nil, err
		}
		r.path = r.path[:len(r.path)-1]
		if done, err := r.more('}'); done || err != nil {
			return object, err
		}
	}
}

func (r *jsonReader) array() (any, error) {
	array := []any{}
	if r.next() == ']' {
		r.pos++
		return array, nil
	}
	for {
		r.path = append(r.path, step{index: len(array), isIndex: true})
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		r.path = r.path[:len(r.path)-1]
		array = append(array, v)
		if done, err := r.more(']'); done || err != nil {
			return array, err
		}
	}
}

// more reads a comma, or the end of an object or an array.
func (r *jsonReader) more(end byte) (done bool, err error) {
	switch r.next() {
	case end:
		r.pos++
		return true, nil
	case ',':
		r.pos++
		return false, nil
	}
	return false, r.fail(fmt.Sprintf("a comma or %q should stand here", string(end)))
}

// number collects what may belong to a number; encoding/json then decides.
func (r *jsonReader) number() (any, error) {
	start, exact := r.pos, true
	for r.pos < len(r.text) {
		switch c := r.text[r.pos]; {
		case c >= '0' && c <= '9', c == '-', c == '+':
		case c == '.', c == 'e', c == 'E':
			exact = false
		default:
			return r.numeral(start, exact)
		}
		r.pos++
	}
	return r.numeral(start, exact)
}

// numeral checks the characters of a number.
func (r *jsonReader) numeral(start int, exact bool) (any, error) {
	text := r.text[start:r.pos]
	if !json.Valid(text) {
		r.pos = start
		return nil, r.fail("this is no number")
	}
	if r.exact {
		if _, err := strconv.ParseInt(string(text), 10, 64); !exact || err != nil {
			return inexact(text), nil
		}
	}
	return json.Number(text), nil
}

// string reads a string. Most have no escapes and are taken as they are.
func (r *jsonReader) string() (string, error) {
	start := r.pos
	plain := true
	for i := start + 1; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case c == '"':
			quoted := r.text[start : i+1]
			if !utf8.Valid(quoted) {
				return "", r.fail("this string is not UTF-8")
			}
			if r.pos = i + 1; plain {
				return string(quoted[1 : len(quoted)-1]), nil
			}
			var s string
			if err := json.Unmarshal(quoted, &s); err != nil {
				r.pos = start
				return "", r.fail("this string has a wrong escape")
			}
			return s, nil
		case c == '\\':
			plain = false
			i++
		case c < ' ':
			r.pos = i
			return "", r.fail("a control character stands in a string; write it as \\u" + fmt.Sprintf("%04x", c))
		}
	}
	r.pos = len(r.text)
	return "", r.fail("the text ends inside a string")
}
