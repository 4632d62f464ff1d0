package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/destkit/destkit/internal/rawjson"
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
// separate type it is refused where an integer is expected and free elsewhere.
type inexact string

// syntaxError holds where a body cannot be read. It quotes nothing of the
// body, which may hold secrets; key is set for a repeated name.
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

// decodeJSON reads a whole body. repeated are names that occur twice in one
// object: the value is the last one, as other decoders have it.
func decodeJSON(text []byte, exact bool) (value any, repeated []syntaxError, err error) {
	r := &jsonReader{text: text, exact: exact}
	defer func() {
		switch failure := recover().(type) {
		case nil:
		case *syntaxError:
			value, repeated, err = nil, nil, failure
		default:
			panic(failure)
		}
	}()
	value = r.value()
	if r.space(); r.pos < len(text) {
		r.fail("there is something after the end of the value")
	}
	return value, r.repeat, nil
}

// fail ends the reading; decodeJSON returns the error.
func (r *jsonReader) fail(message string) {
	panic(&syntaxError{offset: r.pos, message: message})
}

func (r *jsonReader) space() { r.pos = rawjson.SkipSpace(r.text, r.pos) }

// next is the next character that is no white space, 0 at the end.
func (r *jsonReader) next() byte {
	if r.space(); r.pos < len(r.text) {
		return r.text[r.pos]
	}
	return 0
}

// value reads any value.
func (r *jsonReader) value() any {
	if r.values++; r.exact && r.values > maxValues {
		r.fail(fmt.Sprintf("it holds more than %d values", maxValues))
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
		return r.word("true", true)
	case c == 'f':
		return r.word("false", false)
	case c == 'n':
		return r.word("null", nil)
	case r.pos >= len(r.text):
		r.fail("the text ends where a value should stand")
	}
	r.fail("a value should stand here")
	return nil
}

func (r *jsonReader) word(word string, value any) any {
	if !bytes.HasPrefix(r.text[r.pos:], []byte(word)) {
		r.fail("a value should stand here")
	}
	r.pos += len(word)
	return value
}

// nested reads an object or an array one level deeper.
func (r *jsonReader) nested(read func() any) any {
	if r.depth++; r.depth > maxDepth {
		r.fail(fmt.Sprintf("it nests more than %d levels deep", maxDepth))
	}
	r.pos++ // the bracket
	v := read()
	r.depth--
	return v
}

// object reads the members of an object after its brace. Of a name that occurs
// twice the last value counts, and the first repetitions are kept.
func (r *jsonReader) object() any {
	object := map[string]any{}
	for more := r.begins('}'); more; more = r.goesOn('}') {
		if r.next() != '"' {
			r.fail("a name in quotes should stand here")
		}
		start := r.pos
		name := r.string()
		if r.next() != ':' {
			r.fail("a colon should stand here")
		}
		r.pos++
		r.path = append(r.path, step{name: name})
		if _, twice := object[name]; twice && len(r.repeat) < maxProblems {
			r.repeat = append(r.repeat, syntaxError{offset: start, field: r.path.String()})
		}
		object[name] = r.value()
		r.path = r.path[:len(r.path)-1]
	}
	return object
}

func (r *jsonReader) array() any {
	array := []any{}
	for more := r.begins(']'); more; more = r.goesOn(']') {
		r.path = append(r.path, step{index: len(array), isIndex: true})
		array = append(array, r.value())
		r.path = r.path[:len(r.path)-1]
	}
	return array
}

// begins reports whether an object or an array has something in it, and reads the end
// of one that has not.
func (r *jsonReader) begins(end byte) bool {
	if r.next() != end {
		return true
	}
	r.pos++
	return false
}

// goesOn reads a comma, or the end of an object or an array.
func (r *jsonReader) goesOn(end byte) bool {
	c := r.next()
	if c != end && c != ',' {
		r.fail(fmt.Sprintf("a comma or %q should stand here", string(end)))
	}
	r.pos++
	return c == ','
}

// number reads a number up to what cannot belong to one.
func (r *jsonReader) number() any {
	end, fault := rawjson.SkipNumber(r.text, r.pos)
	if fault != rawjson.FaultNone || end < len(r.text) && strings.IndexByte("+-.0123456789eE", r.text[end]) >= 0 {
		r.fail("this is no number")
	}
	text := r.text[r.pos:end]
	r.pos = end
	if r.exact {
		if _, err := strconv.ParseInt(string(text), 10, 64); err != nil {
			return inexact(text)
		}
	}
	return json.Number(text)
}

// string reads a string. Most have no escapes and are taken as they are.
func (r *jsonReader) string() string {
	end, fault := rawjson.SkipString(r.text, r.pos+1)
	switch fault {
	case rawjson.FaultNone:
	case rawjson.FaultUTF8:
		r.fail("this string is not UTF-8")
	case rawjson.FaultEscape:
		r.fail("this string has a wrong escape")
	case rawjson.FaultControl:
		r.pos = end
		r.fail("a control character stands in a string; write it as \\u" + fmt.Sprintf("%04x", r.text[end]))
	default:
		r.pos = len(r.text)
		r.fail("the text ends inside a string")
	}
	quoted := r.text[r.pos:end]
	if r.pos = end; bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // it was read already; half a surrogate pair becomes U+FFFD
	return s
}
