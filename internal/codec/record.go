package codec

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/destkit/destkit/internal/rawjson"
)

// pattern is the last record without white space around its members that was
// scanned in full. As a rule all records have its names in its order.
type pattern struct {
	text    []byte // its bytes and eight more
	names   []patternName
	escaped bool // a name may hold an escape
	// expected is what the values should be; nil: nothing is known of them.
	expected *Expectation
}

// patternName is a name with its quotes and the colon: its place, and its first
// and its last eight bytes. Of a shorter one mask covers all there is.
type patternName struct {
	at, len          uint32
	mask, head, tail uint64
	want             Want // of the value, if anything is known of it
	wanted           bool
}

// is reports whether text, of len and eight more bytes at least, starts with the
// name. Most names are compared in two steps.
func (n *patternName) is(text []byte, p *pattern) bool {
	if (binary.LittleEndian.Uint64(text)^n.head)&n.mask != 0 {
		return false
	}
	if n.len <= 8 {
		return true
	}
	return binary.LittleEndian.Uint64(text[n.len-8:]) == n.tail &&
		(n.len <= 16 || string(text[8:n.len-8]) == string(p.text[n.at+8:n.at+n.len-8]))
}

// set remembers the record that text is, which began at start.
func (p *pattern) set(text []byte, start uint32, fields []fieldSpan, escaped bool) {
	p.text = append(append(p.text[:0], text...), "        "...)
	p.names, p.escaped, p.expected = p.names[:0], escaped, nil
	for _, f := range fields {
		n := patternName{at: f.key - 1 - start, len: f.keyEnd - f.key + 3, mask: 1<<64 - 1}
		n.head = binary.LittleEndian.Uint64(p.text[n.at:])
		if n.len < 8 {
			n.mask >>= 64 - 8*n.len
		} else {
			n.tail = binary.LittleEndian.Uint64(p.text[n.at+n.len-8:])
		}
		p.names = append(p.names, n)
	}
}

// scan scans the record at i if it has the names of the pattern, in their order
// and without white space around them: names with equal bytes were validated
// there. plain means that the values are as expected. With ok false nothing is
// known about the text and scanRecord has to look.
func (p *pattern) scan(text []byte, i, depth int, fields []fieldSpan) (end int, all []fieldSpan, plain, ok bool) {
	start, first, n := i, len(fields), len(p.names)
	all = slices.Grow(fields, n)[:first+n]
	spans, plain := all[first:], p.expected != nil
	for j := range spans {
		name := &p.names[j]
		i++ // the brace or the comma
		v := i + int(name.len)
		if v+8 > len(text) || !name.is(text[i:], p) {
			return start, fields, false, false
		}
		after := 0
		if name.wanted {
			after = name.want.Plain(text, v)
		}
		if after == 0 {
			var f rawjson.Fault
			if after, f = rawjson.SkipValue(text, v, depth); f != rawjson.FaultNone {
				return start, fields, false, false
			}
			plain = false
		}
		if after >= len(text) || text[after] != ',' && j+1 < n {
			return start, fields, false, false
		}
		spans[j] = fieldSpan{uint32(i + 1), uint32(v - 2), uint32(v), uint32(after)}
		i = after
	}
	if n == 0 || text[i] != '}' {
		return start, fields, false, false
	}
	return i + 1, all, plain, true
}

// tight reports whether the fields of the record from start to end follow one
// another without white space.
func tight(fields []fieldSpan, start, end uint32) bool {
	for _, f := range fields {
		if f.key != start+2 || f.val != f.keyEnd+2 {
			return false
		}
		start = f.end
	}
	return len(fields) > 0 && start+1 == end
}

// scanRecord scans the object at i, which is in depth-1 containers, and
// appends its fields.
func (b *Batch) scanRecord(i, depth int, fields []fieldSpan) (int, []fieldSpan, rawjson.Fault) {
	text := b.text
	i = rawjson.SkipSpace(text, i+1)
	if i < len(text) && text[i] == '}' {
		return i + 1, fields, rawjson.FaultNone
	}
	for {
		end, v, f := rawjson.SkipKey(text, i)
		if f != rawjson.FaultNone {
			return v, fields, f
		}
		b.escaped = b.escaped || bytes.IndexByte(text[i+1:end], '\\') >= 0
		key := uint32(i + 1)
		if i, f = rawjson.SkipValue(text, v, depth); f != rawjson.FaultNone {
			return i, fields, f
		}
		fields = append(fields, fieldSpan{key, uint32(end), uint32(v), uint32(i)})
		var more bool
		if i, more, f = rawjson.NextMember(text, i); f != rawjson.FaultNone || !more {
			return i, fields, f
		}
	}
}

// RawRecord is a view of one record of a Batch.
type RawRecord struct {
	b *Batch
	i int
}

// span gives the fields of the record.
func (r RawRecord) span() []fieldSpan {
	end := len(r.b.fields)
	if r.i+1 < len(r.b.records) {
		end = int(r.b.records[r.i+1].first)
	}
	return r.b.fields[r.b.records[r.i].first:end]
}

// Raw is the record's JSON object as it stood in the params.
func (r RawRecord) Raw() []byte {
	rec := &r.b.records[r.i]
	return r.b.text[rec.start:rec.end:rec.end]
}

// Len is the number of members on the wire, repeated ones counted each.
func (r RawRecord) Len() int { return len(r.span()) }

// At is the member at j, from 0 to Len()-1, in the order of the wire: the text
// of its key and its raw value. Only a key with an escape allocates.
func (r RawRecord) At(j int) (name, raw []byte) {
	f := r.span()[j]
	return rawjson.PlainKey(r.b.text[f.key:f.keyEnd:f.keyEnd]), r.b.text[f.val:f.end:f.end]
}

// Members are the members of one record as they were sent.
type Members struct {
	text   []byte
	fields []fieldSpan
	start  uint32
}

// Members gives all members at once, for a reader in a hurry. They are written
// to m: copying a value right after writing it stalls.
func (r RawRecord) Members(m *Members) {
	m.text, m.fields, m.start = r.b.text, r.span(), r.b.records[r.i].start
}

// Len is the number of members.
func (m *Members) Len() int { return len(m.fields) }

// Value is the raw value of the member at j, from 0 to Len()-1.
func (m *Members) Value(j int) []byte {
	f := &m.fields[j]
	return m.text[f.val:f.end:f.end]
}

// Plain reports that the value at j is plainly as wanted.
func (m *Members) Plain(j int, w *Want) bool {
	return w.Plain(m.text, int(m.fields[j].val)) == int(m.fields[j].end)
}

// Name is the name of the member at j with its quotes.
func (m *Members) Name(j int) []byte {
	f := &m.fields[j]
	return m.text[f.key-1 : f.keyEnd+1 : f.keyEnd+1]
}

// Offset is where the value of the member at j begins in Raw.
func (m *Members) Offset(j int) int { return int(m.fields[j].val - m.start) }

// Same reports whether the record has the names of the record before it,
// byte for byte and in the same order. It may be false for one that has.
func (r RawRecord) Same() bool { return r.b.records[r.i].same }

// Tight reports whether there is no white space before, between or after the members of the
// record; within arrays and objects among their values there may be some.
func (r RawRecord) Tight() bool { return r.b.records[r.i].tight }

// Field is the raw value of the named member. When the record repeats a key
// the last member counts, as in encoding/json. A half surrogate in a key
// counts as U+FFFD, also as there.
func (r RawRecord) Field(name string) (raw []byte, ok bool) {
	fields, text := r.span(), r.b.text
	for j := len(fields) - 1; j >= 0; j-- {
		f := fields[j]
		key := text[f.key:f.keyEnd]
		if string(key) == name || r.b.escaped && string(rawjson.PlainKey(key)) == name {
			return text[f.val:f.end:f.end], true
		}
	}
	return nil, false
}
