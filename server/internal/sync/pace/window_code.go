package pace

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"
)

// form is the first byte of a window's binary form.
const form = 1

// ErrDamaged is the answer of UnmarshalBinary to what no Window has written.
var ErrDamaged = errors.New("read limit: its state is damaged or of another version; delete the row, and it is made anew")

// MarshalBinary is the window in a few hundred bytes: numbers of variable
// length, moments as microseconds since the one before. What it leaves out is shorter
// than the grain of sends.
func (w *Window) MarshalBinary() ([]byte, error) {
	b := []byte{form}
	b = binary.AppendVarint(b, w.limit)
	at := int64(0)
	moment := func(t time.Time) {
		if t.IsZero() {
			t = time.Unix(0, 0)
		}
		b = binary.AppendVarint(b, t.UnixMicro()-at)
		at = t.UnixMicro()
	}
	moment(w.paused)
	moment(w.next)
	b = binary.AppendUvarint(b, uint64(len(w.sends)))
	for _, s := range w.sends {
		moment(s.at)
		b = binary.AppendVarint(b, s.n)
	}
	b = binary.AppendUvarint(b, uint64(len(w.holds)))
	for _, h := range w.holds {
		b = binary.BigEndian.AppendUint64(b, h.holder)
		for _, t := range []time.Time{h.until, h.since, h.due} {
			moment(t)
		}
		b = binary.AppendVarint(binary.AppendVarint(b, h.n), h.short)
	}
	return b, nil
}

// UnmarshalBinary reads what MarshalBinary has written; else it is ErrDamaged.
func (w *Window) UnmarshalBinary(b []byte) error {
	d := decoder{rest: b}
	if len(b) == 0 || b[0] != form {
		return ErrDamaged
	}
	d.rest = b[1:]
	*w = Window{limit: d.number()}
	w.paused, w.next = d.moment(), d.moment()
	w.sends = make([]send, d.count())
	for i := range w.sends {
		w.sends[i] = send{d.moment(), d.number()}
	}
	w.holds = make([]hold, d.count())
	for i := range w.holds {
		w.holds[i] = hold{holder: d.fixed(), until: d.moment(), since: d.moment(), due: d.moment(), n: d.number(), short: d.number()}
	}
	sorted := slices.IsSortedFunc(w.sends, func(a, b send) int { return a.at.Compare(b.at) })
	if d.failed || len(d.rest) > 0 || w.limit < 1 || w.limit > mostLimit || !sorted {
		return ErrDamaged
	}
	return nil
}

// decoder reads numbers until one is missing.
type decoder struct {
	rest   []byte
	at     int64
	failed bool
}

func (d *decoder) number() int64 {
	n, size := binary.Varint(d.rest)
	if size <= 0 {
		d.failed, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

// count is the length of a list whose entries take a byte at least.
func (d *decoder) count() int {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 || n > uint64(len(d.rest)) {
		d.failed, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[size:]
	return int(n)
}

func (d *decoder) fixed() uint64 {
	if len(d.rest) < 8 {
		d.failed, d.rest = true, nil
		return 0
	}
	n := binary.BigEndian.Uint64(d.rest)
	d.rest = d.rest[8:]
	return n
}

func (d *decoder) moment() time.Time {
	d.at += d.number()
	if d.at == 0 {
		return time.Time{}
	}
	return time.UnixMicro(d.at).UTC()
}
