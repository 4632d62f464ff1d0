package rawjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// File is a kind of JSON file that people hand to the program, such as a report of an
// earlier run. Its errors name the place and the expectation, for the reader of a message
// who knows neither Go nor how the program reads.
type File struct {
	Expected string // such as "the JSON result of destkit load"
	Version  int    // the newest schema_version that is read; 0: there is none
	Strict   bool   // members that the type does not have are refused
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// Decode fills v, a pointer, from the text of a file.
func (f File) Decode(text []byte, v any) error {
	text = bytes.TrimPrefix(text, byteOrderMark)
	if len(bytes.TrimSpace(text)) == 0 {
		return f.wrong("it is empty")
	}
	return f.decode(text, 1, v)
}

// DecodeLine fills v, a pointer, from one line of a file in which each line is a value.
func (f File) DecodeLine(line int, text []byte, v any) error {
	if line == 1 {
		text = bytes.TrimPrefix(text, byteOrderMark)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return f.wrong("line %d is empty", line)
	}
	return f.decode(text, line, v)
}

// decode fills v from a text that begins in a line.
func (f File) decode(text []byte, line int, v any) error {
	if f.Version > 0 {
		// With another version no other member has a meaning.
		var head struct {
			Version json.RawMessage `json:"schema_version"`
		}
		if json.Unmarshal(text, &head) == nil {
			if err := Newer("schema_version", head.Version, f.Version); err != nil {
				return err
			}
		}
	}
	err := json.Unmarshal(text, v)
	if err != nil {
		return f.explain(text, line, err)
	}
	if unknown := f.unknown(text, v); unknown != "" {
		return f.wrong("line %d: unknown member %q", line, unknown)
	}
	return nil
}

func (f File) unknown(text []byte, v any) string {
	if !f.Strict {
		return ""
	}
	for _, key := range UnknownKeys(text, reflect.TypeOf(v)) {
		return key.Place
	}
	return ""
}

// explain puts an error of encoding/json into words.
func (f File) explain(text []byte, line int, err error) error {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return f.wrong("it is UTF-16: save it as UTF-8")
	}
	if row, column, reason := Malformed(text); reason != "" {
		return f.wrong("line %d, column %d: not JSON: %s", line-1+row, column, reason)
	}
	var mistyped *json.UnmarshalTypeError
	var moment *time.ParseError
	switch {
	case errors.As(err, &mistyped):
		row, column := Place(text, startOf(text, mistyped.Offset))
		return f.wrong("line %d, column %d: %s %s", line-1+row, column, cmp.Or(mistyped.Field, "the value"), Mistyped(mistyped))
	case errors.As(err, &moment):
		row, column := Place(text, max(0, bytes.Index(text, []byte(strconv.Quote(moment.Value)))))
		return f.wrong("line %d, column %d: must be a time such as 2026-01-31T12:00:00Z, not %q", line-1+row, column, moment.Value)
	}
	return f.wrong("line %d: %w", line, err)
}

func (f File) wrong(format string, args ...any) error {
	return fmt.Errorf(format+"; expected %s", append(args, f.Expected)...)
}

// Malformed reports where and why a text is not one JSON value; "" where it is one.
func Malformed(text []byte) (line, column int, reason string) {
	at, fault := SkipText(text)
	if fault == FaultNone {
		return 0, 0, ""
	}
	line, column = Place(text, at)
	return line, column, fault.plain()
}

// plain is what a fault means to those who wrote the text.
func (f Fault) plain() string {
	switch f {
	case FaultEnd:
		return "it ends in the middle"
	case FaultTrailing:
		return "more than one value"
	}
	return faultText[f]
}

// Newer refuses a file of a newer program: value is the version that it gives, as JSON,
// in a member of this name. Other values are left to other checks.
func Newer(member string, value json.RawMessage, reads int) error {
	if n, err := strconv.Atoi(strings.Trim(string(value), `"`)); err == nil && n > reads {
		return fmt.Errorf("written by a newer destkit: %s %d, this one reads up to %d", member, n, reads)
	}
	return nil
}

// Place is the line and the column of an index, both from 1.
func Place(text []byte, at int) (line, column int) {
	before := text[:max(0, min(at, len(text)))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// startOf is where the value begins that encoding/json has just passed in valid
// text: after a scalar, or after the bracket that opens an object or a list.
func startOf(text []byte, behind int64) int {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		from := d.InputOffset()
		if _, err := d.Token(); err != nil {
			return int(behind)
		}
		if d.InputOffset() >= behind {
			gap := text[from:]
			return int(from) + len(gap) - len(bytes.TrimLeft(gap, " \t\r\n,:"))
		}
	}
}
