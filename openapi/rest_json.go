package openapi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

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
// body, which may hold secrets; field is set for a repeated name.
type syntaxError struct {
	offset  int
	message string
	field   string
}

func (e *syntaxError) Error() string { return e.message }

// jsonReader makes of the scans of package rawjson the values that kin validates:
// objects are map[string]any.
type jsonReader struct {
	text   []byte
	pos    int
	values int
	ended  bool // text ends with a NUL
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
	if r.pos = rawjson.SkipSpace(r.text, 0); r.pos == len(text) {
		r.fail(r.pos, textEnds)
	}
	value = r.value(0)
	if r.pos = rawjson.SkipSpace(r.text, r.pos); r.pos < len(text) {
		r.fail(r.pos, "there is something after the end of the value")
	}
	return value, r.repeat, nil
}

// fail ends the reading; decodeJSON returns the error.
func (r *jsonReader) fail(at int, message string) {
	panic(&syntaxError{offset: at, message: message})
}

const textEnds = "the text ends where a value should stand"

// faultMessages are those of faults that depend on nothing else.
var faultMessages = map[rawjson.Fault]string{
	rawjson.FaultValue:   "a value should stand here",
	rawjson.FaultLiteral: "a value should stand here",
	rawjson.FaultNumber:  "this is no number",
	rawjson.FaultEscape:  "this string has a wrong escape",
	rawjson.FaultUTF8:    "this string is not UTF-8",
	rawjson.FaultKey:     "a name in quotes should stand here",
	rawjson.FaultColon:   "a colon should stand here",
	rawjson.FaultObject:  `a comma or "}" should stand here`,
	rawjson.FaultArray:   `a comma or "]" should stand here`,
}

// reached goes on where a scan has ended, or fails with its fault.
func (r *jsonReader) reached(at int, fault rawjson.Fault) {
	if fault == rawjson.FaultNone {
		r.pos = at
		return
	}
	if fault == rawjson.FaultEnd {
		// A NUL at the end is wrong for what is expected there.
		again := &jsonReader{text: append(r.text[:at:at], 0), ended: true}
		again.pos = rawjson.SkipSpace(again.text, 0)
		again.value(0)
	}
	message, end := faultMessages[fault], r.ended && at == len(r.text)-1
	switch fault {
	case rawjson.FaultNumber, rawjson.FaultEscape, rawjson.FaultUTF8:
		at = r.pos // the whole number or string is wrong
	case rawjson.FaultValue:
		if end {
			message = textEnds
		}
	case rawjson.FaultControl:
		message = fmt.Sprintf(`a control character stands in a string; write it as \u%04x`, r.text[at])
		if end {
			message = "the text ends inside a string"
		}
	}
	r.fail(at, message)
}

// value reads the value at pos; depth counts the objects and arrays around it.
func (r *jsonReader) value(depth int) any {
	from := r.pos
	if r.values++; r.exact && r.values > maxValues {
		r.fail(from, fmt.Sprintf("it holds more than %d values", maxValues))
	}
	first := r.text[from]
	if first == '{' || first == '[' {
		if depth == maxDepth {
			r.fail(from, fmt.Sprintf("it nests more than %d levels deep", maxDepth))
		}
		if first == '{' {
			return r.object(depth + 1)
		}
		return r.array(depth + 1)
	}
	if first == '"' {
		r.reached(rawjson.SkipString(r.text, from+1))
		return string(rawjson.PlainKey(r.text[from+1 : r.pos-1]))
	}
	r.reached(rawjson.SkipValue(r.text, from, depth))
	switch first {
	case 't', 'f':
		return first == 't'
	case 'n':
		return nil
	}
	return r.number(from)
}

// object reads the members of an object. Of a name that occurs twice the last
// value counts, and the first repetitions are kept.
func (r *jsonReader) object(depth int) any {
	object := map[string]any{}
	at, more, fault := rawjson.FirstMember(r.text, r.pos)
	for r.reached(at, fault); more; r.reached(at, fault) {
		start := r.pos
		end, from, wrong := rawjson.SkipKey(r.text, start)
		r.reached(from, wrong)
		name := string(rawjson.PlainKey(r.text[start+1 : end]))
		r.path = append(r.path, step{name: name})
		if _, twice := object[name]; twice && len(r.repeat) < maxProblems {
			r.repeat = append(r.repeat, syntaxError{offset: start, field: r.path.String()})
		}
		object[name] = r.value(depth)
		r.path = r.path[:len(r.path)-1]
		at, more, fault = rawjson.NextMember(r.text, r.pos)
	}
	return object
}

func (r *jsonReader) array(depth int) any {
	array := []any{}
	at, more, fault := rawjson.FirstElement(r.text, r.pos)
	for r.reached(at, fault); more; r.reached(at, fault) {
		r.path = append(r.path, step{index: len(array), isIndex: true})
		array = append(array, r.value(depth))
		r.path = r.path[:len(r.path)-1]
		at, more, fault = rawjson.NextElement(r.text, r.pos)
	}
	return array
}

// number is the number from an index to pos, where nothing must be that numbers
// consist of.
func (r *jsonReader) number(from int) any {
	if r.pos < len(r.text) && strings.IndexByte("+-.0123456789eE", r.text[r.pos]) >= 0 {
		r.fail(from, faultMessages[rawjson.FaultNumber])
	}
	text := string(r.text[from:r.pos])
	if r.exact {
		if _, err := strconv.ParseInt(text, 10, 64); err != nil {
			return inexact(text)
		}
	}
	return json.Number(text)
}
