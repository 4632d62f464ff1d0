package ledger

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Fingerprint is a checksum of a mapped record, or of a mapping; the caller
// chooses how it is made.
type Fingerprint [16]byte

// Verdict is what became of a record.
type Verdict uint8

// The verdicts. The zero value is none, so a forgotten one is refused.
const (
	Acknowledged Verdict = iota + 1 // the destination said that it is stored (or deleted)
	Rejected                        // the destination refused it: it is sent again in the next run
	Invalid                         // never sent: NULL or duplicate identifier, a lossy cast
)

// String gives the word of GET /sync_runs/{id}/records.
func (v Verdict) String() string {
	switch v {
	case Acknowledged:
		return "succeeded"
	case Rejected:
		return "rejected"
	case Invalid:
		return "invalid"
	}
	return fmt.Sprintf("Verdict(%d)", uint8(v))
}

// Entry is what the state knows of one key.
type Entry struct {
	// Key is the canonical JSON text of the identifier. A Cursor overwrites it
	// with the next entry.
	Key []byte
	// Print is of the record that was last acknowledged. Without Known it means
	// nothing.
	Print Fingerprint
	// Known means that the destination has acknowledged a record of this key and
	// got no delete for it since.
	Known bool
	// Verdict is Acknowledged, or Rejected when the key must be sent again.
	Verdict Verdict
	// Deleted means that the rejected record was a delete.
	Deleted bool
	// Row is the payload of the record that was last acknowledged, or else of the
	// one that was last sent, where it was to be kept; nil otherwise. A Cursor
	// overwrites it with the next entry.
	Row []byte
}

// marks are the bits of an item.
type marks uint8

const (
	known    marks = 1 << iota // a record was acknowledged; in a run: in this run
	rejected                   // the last verdict was a refusal
	deleted                    // … of a delete
	removed                    // in a run only: a delete was acknowledged
	numbered                   // in a run only: the number of the record follows
	carried                    // the row follows
)

// item is an entry as it is kept: in the state, and for each key of a run.
type item struct {
	key    []byte
	print  Fingerprint
	marks  marks
	number uint64 // of the key's last record in the log, from 1
	row    []byte
}

func (it *item) entry() Entry {
	e := Entry{
		Key: it.key, Print: it.print, Row: it.row, Known: it.marks&known != 0, Verdict: Acknowledged,
		Deleted: it.marks&deleted != 0,
	}
	if it.marks&rejected != 0 {
		e.Verdict = Rejected
	}
	return e
}

// verdict is what counts for this key in its run.
func (it *item) verdict() Verdict {
	if it.marks&rejected != 0 {
		return Rejected
	}
	return Acknowledged
}

// isDelete reports whether the key's last record in its run was a delete.
func (it *item) isDelete() bool {
	if it.marks&rejected != 0 {
		return it.marks&deleted != 0
	}
	return it.marks&removed != 0
}

// follow adds a verdict to the run's item of its key. A refusal does not
// undo an acknowledgement: the destination still has that record.
func (it *item) follow(r *Record, number uint64) {
	it.number = number
	// A refused record may still be there: its row replaces an acknowledged one
	// as long as there is none.
	if r.Verdict != Rejected || it.marks&known == 0 && r.Keep && !r.Delete {
		it.row = r.row()
	}
	switch {
	case r.Verdict == Rejected:
		it.marks = it.marks&(known|removed) | rejected
		if r.Delete {
			it.marks |= deleted
		}
	case r.Delete:
		it.marks, it.print = removed, Fingerprint{}
	default:
		it.marks, it.print = known, r.Print
	}
}

// row is a copy of the row for the state.
func (r *Record) row() []byte {
	if !r.Keep || r.Delete {
		return nil
	}
	return bytes.Clone(r.Payload)
}

// over puts what a run learnt of a key over the state's entry, which may be
// nil; false: nothing is left to keep. Doing it twice changes nothing.
func (it *item) over(old *item) (item, bool) {
	merged := item{key: it.key, row: it.row}
	switch {
	case it.marks&known != 0:
		merged.marks, merged.print = known, it.print
	case it.marks&removed != 0:
	case old != nil:
		merged.marks, merged.print = old.marks&known, old.print
		if merged.marks&known != 0 || it.row == nil {
			merged.row = old.row
		}
	}
	merged.marks |= it.marks & (rejected | deleted)
	return merged, merged.marks&(known|rejected) != 0
}

// appendItem writes marks, key, fingerprint and number.
func appendItem(dst []byte, it *item) []byte {
	m := it.marks
	if it.number > 0 {
		m |= numbered
	}
	if it.row != nil {
		m |= carried
	}
	dst = append(dst, byte(m))
	dst = appendBytes(dst, it.key)
	if m&known != 0 {
		dst = append(dst, it.print[:]...)
	}
	if m&numbered != 0 {
		dst = binary.AppendUvarint(dst, it.number)
	}
	if m&carried != 0 {
		dst = appendBytes(dst, it.row)
	}
	return dst
}

// cutItem reads one; its key and row point into src.
func cutItem(src []byte, it *item) (rest []byte, ok bool) {
	if len(src) == 0 || src[0] >= byte(carried)<<1 {
		return nil, false
	}
	it.marks = marks(src[0]) &^ (numbered | carried)
	stored := marks(src[0])
	if it.key, src, ok = cutBytes(src[1:]); !ok {
		return nil, false
	}
	it.print, it.number, it.row = Fingerprint{}, 0, nil
	if stored&known != 0 {
		if len(src) < len(it.print) {
			return nil, false
		}
		src = src[copy(it.print[:], src):]
	}
	if stored&numbered != 0 {
		if it.number, src, ok = cutNumber(src); !ok {
			return nil, false
		}
	}
	if stored&carried != 0 {
		if it.row, src, ok = cutBytes(src); !ok {
			return nil, false
		}
	}
	return src, true
}

func appendBytes[T string | []byte](dst []byte, text T) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	return append(dst, text...)
}

func cutBytes(src []byte) (text, rest []byte, ok bool) {
	n, rest, ok := cutNumber(src)
	if !ok || n > uint64(len(rest)) {
		return nil, nil, false
	}
	return rest[:n:n], rest[n:], true
}

func cutNumber(src []byte) (n uint64, rest []byte, ok bool) {
	n, width := binary.Uvarint(src)
	if width <= 0 {
		return 0, nil, false
	}
	return n, src[width:], true
}
