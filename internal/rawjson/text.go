package rawjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrLoneSurrogate is the error of a JSON string that escapes one half of a
// surrogate pair: RFC 8259 admits it, but it is no Unicode text.
var ErrLoneSurrogate = errors.New("lone surrogate in a string")

// StringText decodes one JSON string, quotes included, into its text. White
// space around it, anything else than a string, and bytes that are not UTF-8
// are an error (*SyntaxError, wrapped); half a surrogate pair is
// ErrLoneSurrogate.
func StringText(raw []byte) (string, error) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", fmt.Errorf("decode string: %w", &SyntaxError{Reason: "not a string"})
	}
	end, f := SkipString(raw, 1)
	if f == FaultNone && end != len(raw) {
		f = FaultTrailing
	}
	if f != FaultNone {
		return "", fmt.Errorf("decode string: %w", ErrorAt(end, f))
	}
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), nil
	}
	text, whole := Unescape(make([]byte, 0, len(inner)), inner)
	if !whole {
		return "", fmt.Errorf("decode string: %w", ErrLoneSurrogate)
	}
	return string(text), nil
}

// IsNull reports whether a value is null or left out, which mostly mean the same.
func IsNull(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

// Described is the JSON type of a value with its article, by its first byte: "a string",
// "null", and "absent" where there is no value.
func Described(raw []byte) string {
	if i := SkipSpace(raw, 0); i < len(raw) {
		return cmp.Or(described[raw[i]], "a number")
	}
	return "absent"
}

var described = [256]string{'"': "a string", '{': "an object", '[': "an array", 't': "a boolean", 'f': "a boolean", 'n': "null"}

// TypeOf is Described without the article.
func TypeOf(raw []byte) string {
	kind := Described(raw)
	return kind[strings.LastIndexByte(kind, ' ')+1:]
}

// MessageText turns the raw error_message of a record result into text: a
// string is decoded, null and an absent value are "", and anything else (an
// object is seen in published samples) stays its JSON text.
func MessageText(raw []byte) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	text, err := StringText(raw)
	switch {
	case err == nil:
		return text
	case errors.Is(err, ErrLoneSurrogate):
		return string(PlainKey(raw[1 : len(raw)-1]))
	}
	return string(raw)
}

// Unescape appends the text of a validated string without its quotes. Half a surrogate
// pair becomes the three bytes that UTF-8 would give it, which no text has, and whole is
// false.
func Unescape(dst, s []byte) (text []byte, whole bool) {
	whole = true
	for i := 0; i < len(s); {
		c := s[i]
		if c != '\\' {
			dst = append(dst, c)
			i++
			continue
		}
		if s[i+1] != 'u' {
			dst = append(dst, unescaped[s[i+1]])
			i += 2
			continue
		}
		r, _ := hex4(s, i+2)
		i += 6
		if utf16.IsSurrogate(r) {
			var low rune
			if i+1 < len(s) && s[i] == '\\' && s[i+1] == 'u' {
				low, _ = hex4(s, i+2)
			}
			pair := utf16.DecodeRune(r, low)
			if pair == utf8.RuneError {
				dst, whole = append(dst, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f), false
				continue
			}
			r = pair
			i += 6
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst, whole
}

// unescaped are the characters that escapes of one letter mean.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// PlainKey is the text of a validated string without its quotes: the same
// bytes where nothing is escaped, else a new slice. Half a surrogate pair becomes U+FFFD,
// as in encoding/json.
func PlainKey(inner []byte) []byte {
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	text, whole := Unescape(make([]byte, 0, len(inner)), inner)
	for i := 0; !whole && i+2 < len(text); i++ {
		if text[i] == 0xed && text[i+1] >= 0xa0 {
			copy(text[i:], "\uFFFD")
		}
	}
	return text
}

// LostByte replaces a byte that is no UTF-8 in the JSON text of a source's
// row. It reads as U+FFFD, which is written so nowhere else: this
// distinguishes damaged text from text that holds the character.
const LostByte = `\uFFfd`

// AppendString appends s as a JSON string. Only what RFC 8259 demands is
// escaped; bytes that are not UTF-8 become U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[from:i]...), "\uFFFD"...)
				from = i + 1
			}
			i += n
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = AppendEscape(append(dst, s[from:i]...), c)
		i++
		from = i
	}
	return append(append(dst, s[from:]...), '"')
}

// AppendEscape writes a character below U+0080 that JSON does not allow as it is
// within a string: a quote, a backslash or a control character (RFC 8259
// section 7).
func AppendEscape(dst []byte, c byte) []byte {
	if letter := escapes[c]; letter != 0 {
		return append(dst, '\\', letter)
	}
	return fmt.Appendf(dst, `\u%04x`, c)
}

// escapes are the letters of the characters that have one.
var escapes = [256]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// Encode is v as JSON and a newline, without the escapes that only browsers need.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// Marshal is Encode without the newline.
func Marshal(v any) ([]byte, error) {
	text, err := Encode(v)
	return bytes.TrimSuffix(text, []byte("\n")), err
}
