package codec

import (
	"bytes"
	"encoding/binary"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// Want is what the values of a member should be, so that the scan of a record
// can look at them on its way (spec 7.2.4 requires a verdict on each record).
// It is a promise about the text too: a value that Plain takes is JSON, needs
// no other spelling to be compared, and has no white space in it.
type Want struct {
	Kind  Kind
	Array bool // an array of such values, null among them
	Null  bool // null may take its place
	// Longest bounds a text, in bytes; 0: any length.
	Longest uint32
}

// Kind is the type of a value.
type Kind uint8

// The kinds of values. KindText is whatever is sent as a string and has no
// further rules.
const (
	KindText Kind = iota
	KindBoolean
	KindInteger // of up to 18 digits, which always fit 64 bits
	KindFloat   // without exponent, too short to overflow
	KindDecimal
	KindDate
	KindDateTime
)

// KindOf is the kind of a field type; of an unknown one KindText.
func KindOf(fieldType string) Kind {
	switch fieldType {
	case rpc.TypeBoolean:
		return KindBoolean
	case rpc.TypeInteger:
		return KindInteger
	case rpc.TypeFloat:
		return KindFloat
	case rpc.TypeDecimal:
		return KindDecimal
	case rpc.TypeDate:
		return KindDate
	case rpc.TypeDateTime:
		return KindDateTime
	}
	return KindText
}

// Plain gives the index after the value that begins at text[i] when it is
// plainly as wanted, else 0: then nothing is known about it. Whether the
// text goes on in a way that JSON allows is for the caller to see.
func (w *Want) Plain(text []byte, i int) (end int) {
	switch {
	case i >= len(text):
		return 0
	case text[i] == 'n':
		if !w.Null {
			return 0
		}
		return literal(text, i, "null")
	case !w.Array:
		return w.one(text, i)
	case text[i] != '[' || i+1 >= len(text):
		return 0
	case text[i+1] == ']':
		return i + 2
	}
	for i++; i < len(text); i++ { // past the bracket or the comma
		if text[i] == 'n' {
			i = literal(text, i, "null")
		} else {
			i = w.one(text, i)
		}
		if i == 0 || i >= len(text) {
			return 0
		}
		if text[i] == ']' {
			return i + 1
		}
		if text[i] != ',' {
			return 0
		}
	}
	return 0
}

// one is Plain for one value that is not null.
func (w *Want) one(text []byte, i int) int {
	switch w.Kind {
	case KindBoolean:
		if text[i] == 't' {
			return literal(text, i, "true")
		}
		return literal(text, i, "false")
	case KindInteger:
		return plainInteger(text, i)
	case KindFloat:
		return plainFloat(text, i)
	}
	if text[i] != '"' {
		return 0
	}
	switch w.Kind {
	case KindDecimal:
		return closed(text, plainDecimal(text, i+1))
	case KindDate:
		return closed(text, plainDate(text, i+1))
	case KindDateTime:
		return closed(text, plainDateTime(text, i+1))
	}
	end, f := rawjson.SkipPlain(text, i+1)
	if f != rawjson.FaultNone {
		if end, f = rawjson.SkipString(text, i+1); f != rawjson.FaultNone || bytes.IndexByte(text[i:end], '\\') >= 0 {
			return 0
		}
	}
	if w.Longest > 0 && end-i-2 > int(w.Longest) {
		return 0
	}
	return end
}

func literal(text []byte, i int, word string) int {
	if i, f := rawjson.SkipLiteral(text, i, word); f == rawjson.FaultNone {
		return i
	}
	return 0
}

// closed steps over the quote at the end of a text; i is 0 where it was no good.
func closed(text []byte, i int) int {
	if i == 0 || i >= len(text) || text[i] != '"' {
		return 0
	}
	return i + 1
}

// numberEnds reports whether no character of a number is at i.
func numberEnds(text []byte, i int) bool {
	if i >= len(text) {
		return true
	}
	c := text[i]
	return c != '.' && c|0x20 != 'e' && c-'0' > 9
}

// plainInteger takes no minus zero, which has another spelling.
func plainInteger(text []byte, i int) int {
	negative := text[i] == '-'
	if negative {
		i++
	}
	end := rawjson.SkipDigits(text, i)
	if end == i || end-i > 18 || text[i] == '0' && (end-i > 1 || negative) || !numberEnds(text, end) {
		return 0
	}
	return end
}

// longestFloat is far from what overflows without an exponent.
const longestFloat = 300

func plainFloat(text []byte, i int) int {
	from := i
	if text[i] == '-' {
		i++
	}
	end := rawjson.SkipDigits(text, i)
	if end == i || text[i] == '0' && end-i > 1 {
		return 0
	}
	if end < len(text) && text[end] == '.' {
		i = end + 1
		if end = rawjson.SkipDigits(text, i); end == i {
			return 0
		}
	}
	if end-from >= longestFloat || !numberEnds(text, end) {
		return 0
	}
	return end
}

// plainDecimal takes an optional sign, digits, an optional fraction and an
// optional exponent, of any length.
func plainDecimal(text []byte, i int) int {
	i = skipSign(text, i)
	end := rawjson.SkipDigits(text, i)
	if end == i {
		return 0
	}
	if end < len(text) && text[end] == '.' {
		i = end + 1
		if end = rawjson.SkipDigits(text, i); end == i {
			return 0
		}
	}
	if end < len(text) && text[end]|0x20 == 'e' {
		i = skipSign(text, end+1)
		if end = rawjson.SkipDigits(text, i); end == i {
			return 0
		}
	}
	return end
}

func skipSign(text []byte, i int) int {
	if i < len(text) && (text[i] == '-' || text[i] == '+') {
		return i + 1
	}
	return i
}

// Eight bytes of a date or a time, the first one lowest: the text with noughts
// for digits, and a summand for the difference so that the high bit shows a
// byte that is no digit, or not the character that must be there.
const (
	dateZero  = 0x2d_30_30_2d_30_30_30_30 // 0000-00-
	dateOdd   = 0x7f_76_76_7f_76_76_76_76
	clockZero = 0x30_3a_30_30_3a_30_30_54 // T00:00:0
	clockOdd  = 0x76_7f_76_76_7f_76_76_7f
	highBits  = 0x80_80_80_80_80_80_80_80
)

// tens reads the number of two digits that begins with byte n.
func tens(digits uint64, n int) uint {
	return uint(digits>>(8*n)&0xff)*10 + uint(digits>>(8*n+8)&0xff)
}

// monthDays has the most days of each month.
var monthDays = [16]uint8{0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// plainDate takes YYYY-MM-DD of the proleptic Gregorian calendar from year 1
// and gives the index after it.
func plainDate(text []byte, i int) int {
	if i+10 > len(text) {
		return 0
	}
	x := binary.LittleEndian.Uint64(text[i:]) ^ dateZero
	high, low := text[i+8]-'0', text[i+9]-'0'
	if ((x+dateOdd)|x)&highBits != 0 || high > 3 || low > 9 || uint32(x) == 0 {
		return 0
	}
	month, day := tens(x, 5), uint(high)*10+uint(low)
	if month < 1 || month > 12 || day < 1 || day > uint(monthDays[month]) {
		return 0
	}
	if month == 2 && day == 29 {
		century, year := tens(x, 0), tens(x, 2)
		if year%4 != 0 || year == 0 && century%4 != 0 {
			return 0
		}
	}
	return i + 10
}

// plainDateTime takes YYYY-MM-DDThh:mm:ss, an optional fraction, and Z.
func plainDateTime(text []byte, i int) int {
	if i+20 > len(text) {
		return 0
	}
	x := binary.LittleEndian.Uint64(text[i+10:]) ^ clockZero
	if plainDate(text, i) == 0 || ((x+clockOdd)|x)&highBits != 0 || text[i+18]-'0' > 9 || tens(x, 1) > 23 || x>>32&0xff > 5 || x>>56 > 5 {
		return 0
	}
	end := i + 19
	if text[end] == '.' {
		from := end + 1
		if end = rawjson.SkipDigits(text, from); end == from {
			return 0
		}
	}
	if end >= len(text) || text[end] != 'Z' {
		return 0
	}
	return end + 1
}

// Expectation is what the values of records with the same names should be, one
// Want for each member. It is compared by its address and never changed.
type Expectation struct{ Wants []Want }

// Expect sets what the last record should have held. The scan checks records of
// later batches that have its names; As reports the result. It does nothing
// after a record with white space between its members.
func (b *Batch) Expect(e *Expectation) {
	n := len(b.records)
	if n == 0 || b.pattern.expected == e || !b.records[n-1].tight || len(e.Wants) != len(b.pattern.names) {
		return
	}
	b.pattern.expected = e
	for j := range b.pattern.names {
		b.pattern.names[j].want, b.pattern.names[j].wanted = e.Wants[j], true
	}
}

// As reports whether every value of the record was seen to be what e wants.
// It may be false for one that is.
func (r RawRecord) As(e *Expectation) bool { return r.b.records[r.i].plain && r.b.expected == e }
