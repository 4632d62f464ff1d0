// Package rawjson reads JSON text where it lies: it validates strictly (RFC 8259 in
// UTF-8), gives the index after a value, and hands out the bytes of members and strings
// without a copy. The codec of the protocol, the simulator, the load and the executor
// stand on it, because encoding/json makes values of all that it reads.
//
// For bodies that are small and written by people it also says which keys a type does not
// have, and what a value of the wrong type must be.
//
// Functions named Skip give the index after what they scanned, or a Fault and the index
// where it is; those that take an index expect a byte there unless they say otherwise.
package rawjson

import "strconv"

// maxDepth bounds how deep arrays and objects may nest, so that a hostile body
// cannot exhaust the stack.
const maxDepth = 512

// Fault is why a scan stopped. The scanners hand it back in a register beside
// the offset, so that the good path never touches the heap.
type Fault uint8

const (
	FaultNone Fault = iota
	FaultEnd
	faultValue
	faultLiteral
	faultNumber
	faultControl
	faultEscape
	faultUTF8
	faultKey
	faultColon
	faultObject
	faultArray
	faultDepth
	FaultTrailing
)

var faultText = [...]string{
	FaultNone:     "no fault",
	FaultEnd:      "unexpected end of text",
	faultValue:    "not the start of a value",
	faultLiteral:  "not one of true, false, null",
	faultNumber:   "malformed number",
	faultControl:  "unescaped control character in a string",
	faultEscape:   "malformed escape in a string",
	faultUTF8:     "not UTF-8",
	faultKey:      "a member must start with a string",
	faultColon:    "a colon must follow the key",
	faultObject:   "a comma or a closing brace must follow the member",
	faultArray:    "a comma or a closing bracket must follow the element",
	faultDepth:    "nested deeper than 512",
	FaultTrailing: "bytes after the value",
}

// SyntaxError tells where a text stops being JSON (RFC 8259) in UTF-8.
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
