package rawjson

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// SkipNumber scans the number at i by the grammar of RFC 8259 section 6.
func SkipNumber(b []byte, i int) (int, Fault) {
	if b[i] == '-' {
		i++
	}
	if i >= len(b) {
		return i, FaultEnd
	}
	switch c := b[i]; {
	case c == '0':
		i++
	case c-'1' <= 8:
		i = SkipDigits(b, i+1)
	default:
		return i, FaultNumber
	}
	if i < len(b) && b[i] == '.' {
		from := i + 1
		if i = SkipDigits(b, from); i == from {
			return i, FaultNumber
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		from := i
		if i = SkipDigits(b, from); i == from {
			return i, FaultNumber
		}
	}
	return i, FaultNone
}

func SkipDigits(b []byte, i int) int {
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special marks, in the high bit of each byte of x, the bytes that end a run of
// plain characters: quote, backslash, control characters and anything beyond
// ASCII. Only the lowest mark is exact (a borrow may smear upwards), and only
// the lowest is used.
func special(x uint64) uint64 {
	quote := x ^ '"'*ones
	slash := x ^ '\\'*ones
	return ((quote-ones)&^quote | (slash-ones)&^slash | (x-0x20*ones)&^x | x) & highs
}

// SkipPlain is SkipString for plain ASCII without escapes, as most strings are;
// at any other the answer is an unspecific fault.
func SkipPlain(b []byte, i int) (int, Fault) {
	for i+8 <= len(b) {
		m := special(binary.LittleEndian.Uint64(b[i:]))
		if m == 0 {
			i += 8
			continue
		}
		if i += bits.TrailingZeros64(m) >> 3; b[i] == '"' {
			return i + 1, FaultNone
		}
		break
	}
	return i, FaultEscape
}

// SkipString scans a string from the byte after its opening quote and returns
// the index after its closing quote. Eight bytes are looked at in one step.
func SkipString(b []byte, i int) (int, Fault) {
	for {
		for i+8 <= len(b) {
			if m := special(binary.LittleEndian.Uint64(b[i:])); m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		if i >= len(b) {
			return i, FaultEnd
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, FaultNone
		case c == '\\':
			n := escapeLen(b, i)
			if n == 0 {
				return i, FaultEscape
			}
			i += n
		case c < 0x20:
			return i, FaultControl
		case c < utf8.RuneSelf:
			i++
		default:
			var f Fault
			if i, f = skipRunes(b, i); f != FaultNone {
				return i, f
			}
		}
	}
}

// skipRunes scans a run of characters beyond ASCII and refuses whatever is not
// UTF-8: overlong forms, encoded surrogates, stray continuation bytes.
func skipRunes(b []byte, i int) (int, Fault) {
	for i < len(b) && b[i] >= utf8.RuneSelf {
		_, n := utf8.DecodeRune(b[i:])
		if n == 1 {
			return i, FaultUTF8
		}
		i += n
	}
	return i, FaultNone
}

// escapeLen is the length of the escape whose backslash is b[i], 0 when it is
// malformed.
func escapeLen(b []byte, i int) int {
	if i+1 >= len(b) {
		return 0
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(b, i+2); ok {
			return 6
		}
	}
	return 0
}

// hex4 reads the four hexadecimal digits at i.
func hex4(b []byte, i int) (rune, bool) {
	if i+4 > len(b) {
		return 0, false
	}
	var r rune
	for _, c := range b[i : i+4] {
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
