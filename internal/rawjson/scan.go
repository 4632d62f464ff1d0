// Package rawjson reads JSON text in place: it validates strictly (RFC 8259 in UTF-8),
// gives the index after a value, and hands out the bytes of members and strings without
// a copy. The codec of the protocol, the simulator, the load and the executor use it,
// because encoding/json makes values of all that it reads.
//
// For bodies that are small and written by people it also reports which keys a type does
// not have, and what a value of the wrong type must be.
//
// Functions named Skip give the index after what they scanned, or a Fault and the index
// where it is; those that take an index expect a byte there unless they say otherwise.
package rawjson

import "strconv"

// SkipText scans a whole text: one value, white space around it.
func SkipText(b []byte) (int, Fault) {
	i := SkipSpace(b, 0)
	if i == len(b) {
		return i, FaultEnd
	}
	i, f := SkipValue(b, i, 0)
	if f != FaultNone {
		return i, f
	}
	if i = SkipSpace(b, i); i != len(b) {
		return i, FaultTrailing
	}
	return i, FaultNone
}

func SkipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// SkipValue scans the value whose first byte is b[i]; depth counts the
// containers around it. It returns the index after the value, or the index of
// the fault.
func SkipValue(b []byte, i, depth int) (int, Fault) {
	switch b[i] {
	case '"':
		return SkipString(b, i+1)
	case '{':
		return skipObject(b, i, depth+1)
	case '[':
		return skipArray(b, i, depth+1)
	default:
		return skipScalar(b, i)
	}
}

// skipScalar scans a number or a literal.
func skipScalar(b []byte, i int) (int, Fault) {
	switch c := b[i]; {
	case c-'0' <= 9, c == '-':
		return SkipNumber(b, i)
	case c == 't':
		return SkipLiteral(b, i, "true")
	case c == 'f':
		return SkipLiteral(b, i, "false")
	case c == 'n':
		return SkipLiteral(b, i, "null")
	}
	return i, FaultValue
}

func SkipLiteral(b []byte, i int, word string) (int, Fault) {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return i, FaultLiteral
	}
	return i + len(word), FaultNone
}

func skipObject(b []byte, i, depth int) (int, Fault) {
	if depth > maxDepth {
		return i, faultDepth
	}
	i, more, f := FirstMember(b, i)
	for more {
		if _, i, f = SkipKey(b, i); f != FaultNone {
			return i, f
		}
		if i, f = SkipValue(b, i, depth); f != FaultNone {
			return i, f
		}
		i, more, f = NextMember(b, i)
	}
	return i, f
}

// SkipKey scans `"key" :` at i. keyEnd is the index of the closing quote; v is
// the index of the value's first byte, or of the fault.
func SkipKey(b []byte, i int) (keyEnd, v int, f Fault) {
	if i >= len(b) {
		return 0, i, FaultEnd
	}
	if b[i] != '"' {
		return 0, i, FaultKey
	}
	if i, f = SkipString(b, i+1); f != FaultNone {
		return 0, i, f
	}
	keyEnd = i - 1
	if i = SkipSpace(b, i); i >= len(b) {
		return 0, i, FaultEnd
	}
	if b[i] != ':' {
		return 0, i, FaultColon
	}
	if i = SkipSpace(b, i+1); i >= len(b) {
		return 0, i, FaultEnd
	}
	return keyEnd, i, FaultNone
}

// NextMember scans what follows a member: a comma (more, i at the next key) or
// the closing brace (i after it).
func NextMember(b []byte, i int) (next int, more bool, f Fault) {
	if i = SkipSpace(b, i); i >= len(b) {
		return i, false, FaultEnd
	}
	switch b[i] {
	case ',':
		return SkipSpace(b, i+1), true, FaultNone
	case '}':
		return i + 1, false, FaultNone
	}
	return i, false, FaultObject
}

// NextElement is NextMember for arrays; with more, b[next] exists.
func NextElement(b []byte, i int) (next int, more bool, f Fault) {
	if i = SkipSpace(b, i); i >= len(b) {
		return i, false, FaultEnd
	}
	switch b[i] {
	case ',':
		if i = SkipSpace(b, i+1); i >= len(b) {
			return i, false, FaultEnd
		}
		return i, true, FaultNone
	case ']':
		return i + 1, false, FaultNone
	}
	return i, false, FaultArray
}

// FirstElement steps into the array that opens at i; more is false when it is
// empty, and then next is the index after it.
func FirstElement(b []byte, i int) (next int, more bool, f Fault) {
	return first(b, i, ']')
}

// FirstMember is FirstElement for objects.
func FirstMember(b []byte, i int) (next int, more bool, f Fault) {
	return first(b, i, '}')
}

func first(b []byte, i int, end byte) (next int, more bool, f Fault) {
	if i = SkipSpace(b, i+1); i >= len(b) {
		return i, false, FaultEnd
	}
	if b[i] == end {
		return i + 1, false, FaultNone
	}
	return i, true, FaultNone
}

func skipArray(b []byte, i, depth int) (int, Fault) {
	if depth > maxDepth {
		return i, faultDepth
	}
	i, more, f := FirstElement(b, i)
	for more && f == FaultNone {
		if i, f = SkipValue(b, i, depth); f != FaultNone {
			return i, f
		}
		i, more, f = NextElement(b, i)
	}
	return i, f
}

// maxDepth bounds how deep arrays and objects may nest, so that a hostile body
// cannot exhaust the stack.
const maxDepth = 512

// Fault is why a scan stopped. The scanners hand it back in a register with
// the offset, so that the good path never touches the heap.
type Fault uint8

const (
	FaultNone Fault = iota
	FaultEnd
	FaultValue
	FaultLiteral
	FaultNumber
	FaultControl
	FaultEscape
	FaultUTF8
	FaultKey
	FaultColon
	FaultObject
	FaultArray
	faultDepth
	FaultTrailing
)

var faultText = [...]string{
	FaultNone:     "no fault",
	FaultEnd:      "unexpected end of text",
	FaultValue:    "not the start of a value",
	FaultLiteral:  "not one of true, false, null",
	FaultNumber:   "malformed number",
	FaultControl:  "unescaped control character in a string",
	FaultEscape:   "malformed escape in a string",
	FaultUTF8:     "not UTF-8",
	FaultKey:      "a member must start with a string",
	FaultColon:    "a colon must follow the key",
	FaultObject:   "a comma or a closing brace must follow the member",
	FaultArray:    "a comma or a closing bracket must follow the element",
	faultDepth:    "nested deeper than 512",
	FaultTrailing: "bytes after the value",
}

// SyntaxError holds where a text stops being JSON (RFC 8259) in UTF-8.
type SyntaxError struct {
	// Offset is the index of the offending byte, from 0.
	Offset int
	// Reason is one lower-case phrase.
	Reason string
}

// Error gives the reason and the offset.
func (e *SyntaxError) Error() string {
	return e.Reason + " at byte " + strconv.Itoa(e.Offset)
}

func ErrorAt(at int, f Fault) *SyntaxError {
	return &SyntaxError{Offset: at, Reason: faultText[f]}
}

// Valid reports whether b is exactly one JSON value (RFC 8259) in UTF-8, with
// nothing but white space around it and nested at most 512 deep. A byte order
// mark is refused. Escaped lone surrogates are within RFC 8259 and pass; they
// fail in StringText. The error is a *SyntaxError.
func Valid(b []byte) error {
	at, f := SkipText(b)
	if f != FaultNone {
		return ErrorAt(at, f)
	}
	return nil
}
