package wire

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

func (p *parser) word(word string) error {
	if !bytes.HasPrefix(p.b[p.at:], []byte(word)) {
		return p.unexpected("a value")
	}
	p.at += len(word)
	return nil
}

func (p *parser) digits() bool {
	from := p.at
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.at++
	}
	return p.at > from
}

func (p *parser) number() error {
	if p.peek() == '-' {
		p.at++
	}
	if p.peek() == '0' {
		p.at++
	} else if !p.digits() {
		return p.unexpected("a digit")
	}
	if p.peek() == '.' {
		p.at++
		if !p.digits() {
			return p.unexpected("a digit")
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.at++
		if c := p.peek(); c == '+' || c == '-' {
			p.at++
		}
		if !p.digits() {
			return p.unexpected("a digit")
		}
	}
	return nil
}

// text decodes a string.
func (p *parser) text() (text string, lone bool, err error) {
	from := p.at
	p.at++
	plain := p.at
	var out []byte
	for p.at < len(p.b) {
		switch c := p.b[p.at]; {
		case c == '"':
			run := p.b[plain:p.at]
			p.at++
			if err := p.spend(len(out) + len(run)); err != nil {
				return "", false, err
			}
			if out == nil {
				return string(run), lone, nil
			}
			return string(append(out, run...)), lone, nil
		case c == '\\':
			out = append(out, p.b[plain:p.at]...)
			var half bool
			if out, half, err = p.escape(out); err != nil {
				return "", false, err
			}
			lone = lone || half
			plain = p.at
		case c < 0x20:
			return "", false, p.fail(SyntaxInvalid, p.at, "the control character %q stands in a string", c)
		case c < utf8.RuneSelf:
			p.at++
		default:
			r, size := utf8.DecodeRune(p.b[p.at:])
			if r == utf8.RuneError && size == 1 {
				return "", false, p.fail(SyntaxUTF8, p.at, "the byte 0x%02x in a string is not UTF-8", c)
			}
			p.at += size
		}
	}
	return "", false, p.fail(SyntaxInvalid, from, "the string does not end")
}

// simpleEscapes are the escapes of one letter; 0 for those that are none.
var simpleEscapes = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// escape decodes one escape, or two that make a surrogate pair. Half a pair is
// kept, as the three bytes that UTF-8 would give it.
func (p *parser) escape(out []byte) ([]byte, bool, error) {
	if p.at+1 >= len(p.b) {
		return nil, false, p.fail(SyntaxInvalid, p.at, "the string does not end")
	}
	if c := simpleEscapes[p.b[p.at+1]]; c != 0 {
		p.at += 2
		return append(out, c), false, nil
	}
	r, ok := p.unit(p.at)
	if !ok {
		return nil, false, p.fail(SyntaxInvalid, p.at, "a backslash begins no escape")
	}
	p.at += 6
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(out, r), false, nil
	}
	if low, ok := p.unit(p.at); ok {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			p.at += 6
			return utf8.AppendRune(out, pair), false, nil
		}
	}
	return append(out, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f), true, nil
}

// unit reads \uXXXX at an offset.
func (p *parser) unit(at int) (rune, bool) {
	if at+6 > len(p.b) || p.b[at] != '\\' || p.b[at+1] != 'u' {
		return 0, false
	}
	n := rune(0)
	for _, c := range p.b[at+2 : at+6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		n = n<<4 | rune(c)
	}
	return n, true
}
