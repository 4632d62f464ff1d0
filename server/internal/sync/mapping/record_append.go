package mapping

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/rawjson"
)

// AppendRecord appends the record of a row to dst: a JSON object with its
// members in the order of Fields. row has the JSON text of each of Columns.
// record is dst with the appended bytes; key is the identifier's value in its
// one JSON form, as written in record; nil without an identifier.
//
// A row that cannot be sent has a reason in invalid, and record is dst as it
// was; key is nil then only where the row has none, so that a mirror does not
// delete records that it cannot read.
func (p *Plan) AppendRecord(dst []byte, row [][]byte) (record, key []byte, invalid string) {
	start := len(dst)
	dst = append(dst, '{')
	if p.generated {
		dst = p.appendGeneratedSpace(dst)
	}
	var templates scope
	keyFrom, keyTo, opened := 0, 0, 0
	for i := range p.steps {
		s := &p.steps[i]
		switch s.kind {
		case stepOpen:
			dst = append(separated(dst), s.lead...)
			if opened == 0 {
				opened = len(dst)
			}
			dst = append(dst, '{')
			continue
		case stepClose:
			dst = append(dst, '}')
			if s.asText {
				dst = rawjson.AppendString(dst[:opened], string(dst[opened:]))
			}
			if s.lead == nil { // the outermost
				opened = 0
			}
			continue
		case stepColumn:
			if s.skipNull && isNullText(row[s.column]) {
				continue
			}
		}
		before := len(dst)
		dst = append(separated(dst), s.lead...)
		from := len(dst)
		var err error
		if dst, err = p.appendValue(dst, s, row, &templates); err != nil {
			return p.invalid(dst[:start], row, s, err)
		}
		if len(dst)-start > LongestRecord {
			return p.invalid(dst[:start], row, s, errLongRecord)
		}
		if i == p.keyStep {
			if bytes.IndexByte(dst[from:], '\\') >= 0 && !bytes.Contains(dst[from:], lostByte) {
				dst = AppendCanonical(dst[:from], bytes.Clone(dst[from:]))
			}
			keyFrom, keyTo = from, len(dst)
		} else if s.skipNull && string(dst[from:]) == "null" {
			dst = dst[:before]
		}
	}
	dst = append(dst, '}')
	if bytes.Contains(dst[start:], lostByte) {
		return p.damaged(dst[:start], row)
	}
	switch {
	case p.generated:
		key = p.generate(dst[start:])
	case p.keyStep >= 0:
		key = dst[keyFrom:keyTo:keyTo]
		if isNullText(key) {
			return dst[:start], nil, InvalidNull
		}
	}
	return dst, key, ""
}

// separated adds the comma that the next member needs.
func separated(dst []byte) []byte {
	if dst[len(dst)-1] != '{' {
		return append(dst, ',')
	}
	return dst
}

// appendValue writes the value of one step in the type of its field.
func (p *Plan) appendValue(dst []byte, s *planStep, row [][]byte, templates *scope) ([]byte, error) {
	switch s.kind {
	case stepLiteral:
		return append(dst, s.literal...), nil
	case stepTemplate:
		return p.appendTemplate(dst, s, row, templates)
	case stepSegments:
		return p.appendSegments(dst, s, row)
	}
	raw := row[s.column]
	if s.array {
		return appendArray(dst, raw, s.wire)
	}
	return appendScalar(dst, raw, s.wire, s.exact)
}

// scope is what templates see of a row, made for the first of them.
type scope struct{ record map[string]any }

func (p *Plan) see(row [][]byte) (map[string]any, error) {
	record := make(map[string]any, len(p.reads))
	for _, at := range p.reads {
		value, err := decodeValue(row[at])
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", foreign.Clip(p.columns[at], 80), err)
		}
		record[p.columns[at]] = value
	}
	return record, nil
}

// appendTemplate renders a template: as text, or in JSON mode for an array. A
// template that prints nothing is null for every type but string.
func (p *Plan) appendTemplate(dst []byte, s *planStep, row [][]byte, templates *scope) ([]byte, error) {
	if templates.record == nil {
		var err error
		if templates.record, err = p.see(row); err != nil {
			return dst, err
		}
	}
	var value any
	var err error
	if s.array {
		value, err = renderValue(s.template, templates.record, p.limits)
	} else {
		var text string
		text, err = s.template.Render(templates.record, p.limits)
		if value = text; s.wire != wireString && s.wire != wireAny && len(bytes.TrimSpace([]byte(text))) == 0 {
			value = nil
		}
	}
	if err != nil {
		return dst, err
	}
	return appendCast(dst, value, s.wire, s.array)
}

// invalid finds the key of a row that cannot be sent. A missing identifier is
// the greater fault of the two.
func (p *Plan) invalid(dst []byte, row [][]byte, s *planStep, err error) (record, key []byte, invalid string) {
	invalid = fmt.Sprintf("field %q: %v", foreign.Clip(s.name, 80), err)
	if p.keyStep < 0 || s == &p.steps[p.keyStep] {
		return dst, nil, invalid
	}
	var templates scope
	key, err = p.appendValue(nil, &p.steps[p.keyStep], row, &templates)
	switch {
	case err != nil, bytes.Contains(key, lostByte):
		return dst, nil, invalid
	case isNullText(key):
		return dst, nil, InvalidNull
	}
	return dst, AppendCanonical(nil, key), invalid
}

// lostByte is where a text of the source was no UTF-8. A destination would get
// another text than the source holds.
var lostByte = []byte(rawjson.LostByte)

var errNotUTF8 = errors.New("the text is not valid UTF-8")

// damaged finds the field of a record whose text is damaged.
func (p *Plan) damaged(dst []byte, row [][]byte) (record, key []byte, invalid string) {
	for i := range p.steps {
		if s := &p.steps[i]; s.kind == stepColumn && bytes.Contains(row[s.column], lostByte) {
			return p.invalid(dst, row, s, errNotUTF8)
		}
	}
	return dst, nil, errNotUTF8.Error()
}

// LongestRecord bounds a record in bytes: mappings may repeat a long column.
const LongestRecord = 32 << 20

var errLongRecord = fmt.Errorf("the record has more than %d bytes: map fewer long columns, or cut them with truncate in a template", LongestRecord)

// The digits of a generated key: those of the hash, and room for the number that
// distinguishes equal rows.
const (
	generatedDigits = 32
	repeatDigits    = 8
)

// appendGeneratedSpace leaves room for the identifier, which is the hash of what
// follows: it comes first.
func (p *Plan) appendGeneratedSpace(dst []byte) []byte {
	dst = rawjson.AppendString(dst, p.identifier)
	dst = append(dst, ':', '"')
	dst = append(dst, bytes.Repeat([]byte{'0'}, generatedDigits+repeatDigits)...)
	return append(dst, '"')
}

// generate fills the identifier in and gives it.
func (p *Plan) generate(record []byte) []byte {
	from := 1 + len(rawjson.AppendString(nil, p.identifier)) + 1 // after the brace, the name and the colon
	key := record[from : from+2+generatedDigits+repeatDigits]
	sum := sha256.Sum256(p.Compared(record[from+len(key):]))
	hex.Encode(key[1:], sum[:generatedDigits/2])
	return key
}

// AppendDelete appends the record that removes a key: the identifier alone.
func (p *Plan) AppendDelete(dst, key []byte) []byte {
	dst = rawjson.AppendString(append(dst, '{'), p.identifier)
	dst = append(append(dst, ':'), key...)
	return append(dst, '}')
}

// AppendWholeDelete appends the record that removes a key with the row that was
// sent last: its members that the plan still has, in the order of Fields. A row
// that cannot be read leaves the identifier alone.
func (p *Plan) AppendWholeDelete(dst, key, row []byte) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(row, &members) != nil {
		return p.AppendDelete(dst, key)
	}
	dst = append(dst, '{')
	for i := range p.fields {
		name := p.fields[i].FullName
		value, sent := members[name]
		if name == p.identifier {
			value, sent = key, true
		}
		if !sent {
			continue
		}
		dst = append(rawjson.AppendString(separated(dst), name), ':')
		dst = append(dst, value...)
	}
	return append(dst, '}')
}

// Compared is what of a record reports whether it has changed: all of it, except
// the number of the run where it is mapped, which would change every record in
// every run.
func (p *Plan) Compared(record []byte) []byte {
	if p.volatile == nil {
		return record
	}
	return bytes.ReplaceAll(record, p.volatile, nil)
}
