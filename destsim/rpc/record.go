package rpc

import "bytes"

// scanRecord scans the object at i, which stands in depth-1 containers, and
// appends its fields. fields[hint:] are those of the record before: as a rule
// all records of a batch have the same keys in the same order.
func (b *Batch) scanRecord(i, depth int, fields []fieldSpan, hint int) (int, []fieldSpan, fault) {
	text, first := b.text, len(fields)
	i = skipSpace(text, i+1)
	if i < len(text) && text[i] == '}' {
		return i + 1, fields, faultNone
	}
	for {
		var end, v int
		var f fault
		if hint < first {
			end, v = sameKey(text, i, fields[hint])
			hint++
		}
		if v == 0 {
			if end, v, f = skipKey(text, i); f != faultNone {
				return v, fields, f
			}
			b.escaped = b.escaped || bytes.IndexByte(text[i+1:end], '\\') >= 0
		}
		key := uint32(i + 1)
		if text[v] == '"' {
			i, f = skipString(text, v+1)
		} else {
			i, f = skipValue(text, v, depth)
		}
		if f != faultNone {
			return i, fields, f
		}
		fields = append(fields, fieldSpan{key, uint32(end), uint32(v), uint32(i)})
		if i+1 < len(text) && text[i] == ',' && text[i+1] == '"' {
			i++ // the usual case: no white space
			continue
		}
		var more bool
		if i, more, f = nextMember(text, i); f != faultNone || !more {
			return i, fields, f
		}
	}
}

// sameKey compares the text at i with the key of an earlier field, its quotes
// and its colon: equal bytes were validated there and need it no second time.
// It returns what skipKey would, or v 0 when the key is another one.
func sameKey(text []byte, i int, old fieldSpan) (keyEnd, v int) {
	quoted := text[old.key-1 : old.keyEnd+2]
	if quoted[len(quoted)-1] != ':' || !bytes.HasPrefix(text[i:], quoted) {
		return 0, 0
	}
	end := i + len(quoted)
	if v = skipSpace(text, end); v >= len(text) {
		return 0, 0 // skipKey reports where the text ends
	}
	return end - 2, v
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
	return plainKey(r.b.text[f.key:f.keyEnd:f.keyEnd]), r.b.text[f.val:f.end:f.end]
}

// Field is the raw value of the named member. When the record repeats a key
// the last member counts, as in encoding/json. A half surrogate in a key
// counts as U+FFFD, also as there.
func (r RawRecord) Field(name string) (raw []byte, ok bool) {
	fields, text := r.span(), r.b.text
	for j := len(fields) - 1; j >= 0; j-- {
		f := fields[j]
		key := text[f.key:f.keyEnd]
		if string(key) == name || r.b.escaped && string(plainKey(key)) == name {
			return text[f.val:f.end:f.end], true
		}
	}
	return nil, false
}
