package foreign

import (
	"bytes"
	"html"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// layers are the encodings that are undone, each by itself.
var layers = []layer{
	{"%", units('%', percentUnit)},
	{`\`, units('\\', escapeUnit)},
	{"&", units('&', htmlUnit)},
	{"", decodeBase64},
	{"+", units('+', func(_, out []byte) (int, []byte) { return 1, append(out, ' ') })},
}

var plusLayer = &layers[len(layers)-1]

// units makes a layer from a decoder of one unit at the start of b: how many
// bytes it takes and what it means. A unit that is no escape is itself.
func units(mark byte, unit func(b, out []byte) (int, []byte)) func([]byte, *plain) {
	return func(text []byte, out *plain) {
		var room [8]byte
		for i := 0; i < len(text); {
			if text[i] != mark {
				next := bytes.IndexByte(text[i:], mark)
				if next < 0 {
					next = len(text) - i
				}
				out.copied(text, i, i+next)
				i += next
				continue
			}
			n, decoded := unit(text[i:], room[:0])
			out.add(decoded, i, i+n)
			i += n
		}
	}
}

// percentUnit knows %XX and the %uXXXX of some servers.
func percentUnit(b, out []byte) (int, []byte) {
	if r, n := utf16Rune(b); n > 0 {
		return n, utf8.AppendRune(out, r)
	}
	if n, ok := hexByte(b, 1); ok {
		return 3, append(out, n)
	}
	return 1, append(out, b[0])
}

func hexByte(b []byte, at int) (byte, bool) {
	if len(b) < at+2 {
		return 0, false
	}
	high, low := hexDigit(b[at]), hexDigit(b[at+1])
	return high<<4 | low, high < 16 && low < 16
}

func hexDigit(c byte) byte { return hexDigits[c] }

// hexDigits is the value of a digit, 255 for anything else.
var hexDigits = func() (table [256]byte) {
	for i := range table {
		table[i] = 255
	}
	for i, c := range "0123456789abcdef" {
		table[c] = byte(i)
	}
	for i, c := range "ABCDEF" {
		table[c] = byte(10 + i)
	}
	return table
}()

// escapeUnit knows the escapes of JSON, and a sign that needs none.
func escapeUnit(b, out []byte) (int, []byte) {
	if r, n := utf16Rune(b); n > 0 {
		return n, utf8.AppendRune(out, r)
	}
	if len(b) < 2 {
		return 1, append(out, b[0])
	}
	if at := strings.IndexByte("bfnrt", b[1]); at >= 0 {
		return 2, append(out, "\b\f\n\r\t"[at])
	}
	if c := b[1]; c > ' ' && c < 0x7f && !isNameByte(c) {
		return 2, append(out, c)
	}
	return 1, append(out, b[0])
}

// utf16Rune decodes \uXXXX, %uXXXX or a pair of them; n is 0 when it is none.
func utf16Rune(b []byte) (r rune, n int) {
	mark := b[0]
	unit := func(b []byte) (rune, bool) {
		if len(b) < 6 || b[0] != mark || b[1] != 'u' {
			return 0, false
		}
		n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
		return rune(n), err == nil
	}
	r, ok := unit(b)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(r) {
		if low, ok := unit(b[6:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, 12
			}
		}
	}
	return r, 6
}

// htmlUnit decodes a character reference of at most 32 bytes; a number needs no
// semicolon.
func htmlUnit(b, out []byte) (int, []byte) {
	if len(b) > 2 && b[1] == '#' {
		base, at := 10, 2
		if b[2] == 'x' || b[2] == 'X' {
			base, at = 16, 3
		}
		end := at
		for end < min(len(b), at+8) && hexDigit(b[end]) < byte(base) {
			end++
		}
		if code, err := strconv.ParseUint(string(b[at:end]), base, 31); err == nil {
			if end < len(b) && b[end] == ';' {
				end++
			} else if end == len(b) || wasCut(b, end) {
				return 1, append(out, b[0]) // perhaps cut in the middle of it
			}
			return end, utf8.AppendRune(out, rune(code))
		}
	}
	end := bytes.IndexByte(b[:min(len(b), 32)], ';')
	if end < 0 {
		return 1, append(out, b[0])
	}
	coded := string(b[:end+1])
	if decoded := html.UnescapeString(coded); decoded != coded && utf8.RuneCountInString(decoded) <= 2 {
		return end + 1, append(out, decoded...)
	}
	return 1, append(out, b[0])
}

// decodeBase64 decodes every run of the alphabet that is long enough to hold a
// secret. Between two runs there is a line break, which no secret spans.
func decodeBase64(text []byte, out *plain) {
	least := max(out.least, ShortSecret) + 2
	for i := 0; i < len(text); {
		if base64Digit[text[i]] > 63 {
			i++
			continue
		}
		from, mixed := i, false
		for ; i < len(text) && base64Digit[text[i]] <= 63; i++ {
			mixed = mixed || base64Digit[text[i]] > 61
		}
		to := i
		for i < len(text) && text[i] == '=' {
			i++
		}
		if to-from < least && !wasCut(text, i) {
			continue
		}
		out.decode64(text[from:to], from)
		if mixed {
			out.pieces(text[from:to], from)
		}
		out.ends(text, i)
	}
}

// pieces adds the parts of a run between signs that may also be between words.
func (p *plain) pieces(run []byte, from int) {
	for i := 0; i < len(run); i++ {
		start := i
		for i < len(run) && base64Digit[run[i]] <= 61 {
			i++
		}
		if i-start >= max(p.least, ShortSecret)+2 {
			p.addByte('\n', from, from)
			p.decode64(run[start:i], from+start)
		}
	}
}

// decode64 appends the decoded run of either alphabet: three bytes for four
// digits.
func (p *plain) decode64(run []byte, from int) {
	for ; len(run) >= 4; run = run[4:] {
		n := uint32(base64Digit[run[0]])<<18 | uint32(base64Digit[run[1]])<<12 | uint32(base64Digit[run[2]])<<6 | uint32(base64Digit[run[3]])
		p.text = append(p.text, byte(n>>16), byte(n>>8), byte(n))
		p.mapped(3, from, from+4)
		from += 4
	}
	if len(run) >= 2 {
		p.addByte(base64Digit[run[0]]<<2|base64Digit[run[1]]>>4, from, from+len(run))
	}
	if len(run) == 3 {
		p.addByte(base64Digit[run[1]]<<4|base64Digit[run[2]]>>2, from, from+3)
	}
}

// ends closes a decoded run: with the mark of a cut where it was cut.
func (p *plain) ends(text []byte, at int) {
	if wasCut(text, at) {
		p.add(ellipsis, at, at)
	}
	p.addByte('\n', at, at)
}

// wasCut reports whether the text was shortened at this place.
func wasCut(text []byte, at int) bool {
	return bytes.HasPrefix(bytes.TrimLeft(text[at:min(len(text), at+8)], " \"'"), ellipsis)
}

// base64Digit is the value of a digit of both alphabets, 255 for anything else.
var base64Digit = func() (table [256]byte) {
	for i := range table {
		table[i] = 255
	}
	for i, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" {
		table[c] = byte(i)
	}
	table['-'], table['_'] = 62, 63
	return table
}()
