package wire

import (
	"bytes"

	"github.com/destkit/destkit/internal/rawjson"
)

func (p *parser) word(word string) error {
	if !bytes.HasPrefix(p.b[p.at:], []byte(word)) {
		return p.unexpected("a value")
	}
	p.at += len(word)
	return nil
}

func (p *parser) number() error {
	end, fault := rawjson.SkipNumber(p.b, p.at)
	p.at = end
	if fault != rawjson.FaultNone {
		return p.unexpected("a digit")
	}
	return nil
}

// text decodes a string.
func (p *parser) text() (string, error) {
	from := p.at
	end, fault := rawjson.SkipString(p.b, from+1)
	switch fault {
	case rawjson.FaultNone:
	case rawjson.FaultControl:
		return "", p.fail(SyntaxInvalid, end, "the control character %q stands in a string", p.b[end])
	case rawjson.FaultUTF8:
		return "", p.fail(SyntaxUTF8, end, "the byte 0x%02x in a string is not UTF-8", p.b[end])
	case rawjson.FaultEscape:
		return "", p.fail(SyntaxInvalid, end, "a backslash begins no escape")
	default:
		return "", p.fail(SyntaxInvalid, from, "the string does not end")
	}
	p.at = end
	inner := p.b[from+1 : end-1]
	if err := p.spend(len(inner)); err != nil {
		return "", err
	}
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), nil
	}
	decoded, _ := rawjson.Unescape(make([]byte, 0, len(inner)), inner)
	return string(decoded), nil
}
