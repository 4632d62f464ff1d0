package foreign

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// Writer is the net below all that a program prints for people and for programs
// that read lines: whatever has slipped through is escaped here, in a form that is
// also right inside a string of JSON. Colours pass, other sequences do not.
type Writer struct {
	to      io.Writer
	colours bool
	mu      sync.Mutex
	inside  bool   // something but spaces was written on this line
	rest    []byte // the next write may complete it
	buf     []byte
}

// NewWriter makes a net above to. With colours the sequences that choose one pass.
func NewWriter(to io.Writer, colours bool) *Writer { return &Writer{to: to, colours: colours} }

// Raw is the writer below the escaping one, for output that must reach it unchanged: a bar that
// is drawn over, a page with its own rules. Any other writer is returned itself.
func Raw(w io.Writer) io.Writer {
	if net, ok := w.(*Writer); ok {
		return net.to
	}
	return w
}

// Write escapes forbidden characters. An incomplete character waits for the
// next write.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) == 0 && harmless(p) {
		last := p[bytes.LastIndexByte(p, '\n')+1:]
		w.inside = w.inside && len(last) == len(p) || len(bytes.TrimSpace(last)) > 0
		return w.to.Write(p)
	}
	text := p
	if len(w.rest) > 0 {
		text = append(w.rest, p...)
	}
	w.rest = nil
	if n := incomplete(text); n > 0 {
		w.rest = bytes.Clone(text[len(text)-n:])
		text = text[:len(text)-n]
	}
	w.buf = w.buf[:0]
	for i := 0; i < len(text); {
		i += w.next(text[i:])
	}
	if len(w.buf) == 0 {
		return len(p), nil
	}
	if _, err := w.to.Write(w.buf); err != nil {
		return 0, err
	}
	return len(p), nil
}

// harmless reports whether there is nothing to look at more closely.
func harmless(p []byte) bool {
	for _, c := range p {
		if (c < ' ' || c >= 0x7f) && c != '\n' && c != '\t' {
			return false
		}
	}
	return !bytes.Contains(p, []byte("::")) && !bytes.Contains(p, []byte("##"))
}

// next takes the first element of text and returns its length.
func (w *Writer) next(text []byte) int {
	c := text[0]
	switch {
	case c == '\n':
		w.inside = false
		w.buf = append(w.buf, c)
		return 1
	case c == ' ' || c == '\t':
		w.buf = append(w.buf, c)
		return 1
	case c == 0x1b && w.colours:
		if n := colour(text); n > 0 {
			w.buf = append(w.buf, text[:n]...)
			return n
		}
	case c == ':' && !w.inside && bytes.HasPrefix(text, []byte("::")):
		w.inside = true
		w.buf = append(w.buf, `\::`...)
		return 2
	case c == '#' && command(text):
		w.inside = true
		w.buf = append(w.buf, `#\u0023`...)
		return 2
	}
	w.inside = true
	if c >= ' ' && c < 0x7f {
		w.buf = append(w.buf, c)
		return 1
	}
	r, n := utf8.DecodeRune(text)
	switch {
	case r == utf8.RuneError && n == 1:
		w.buf = utf8.AppendRune(w.buf, utf8.RuneError)
	case Hidden(r):
		w.buf = AppendEscape(w.buf, r)
	default:
		w.buf = append(w.buf, text[:n]...)
	}
	return n
}

// colour is the length of a sequence that chooses a colour, 0 for any other.
func colour(text []byte) int {
	if len(text) < 3 || text[1] != '[' {
		return 0
	}
	for i := 2; i < min(len(text), 12); i++ {
		switch c := text[i]; {
		case c == 'm':
			return i + 1
		case (c < '0' || c > '9') && c != ';', c == '8':
			return 0 // 8 conceals; no colour of ours has the digit
		}
	}
	return 0
}

// command reports whether a command to a CI service begins here.
func command(text []byte) bool {
	return slices.ContainsFunc([][]byte{[]byte("##["), []byte("##vso["), []byte("##teamcity[")}, func(form []byte) bool { return bytes.HasPrefix(text, form) })
}

// incomplete is the length of a character at the end of text that lacks bytes.
func incomplete(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if c := text[len(text)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(text[len(text)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// AppendEscape writes r as \uXXXX, in two halves beyond the first plane: right in
// JSON, and readable elsewhere.
func AppendEscape(b []byte, r rune) []byte {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return fmt.Appendf(b, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(b, `\u%04x`, r)
}

// JSON escapes characters in encoded JSON that must not reach a screen; any
// of them is inside a string there, so that nothing is lost.
func JSON(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		c := b[i]
		if c == '#' && command(b[i:]) {
			out = append(out, `#\u0023`...)
			i += 2
			continue
		}
		if c < 0x7f {
			out = append(out, c)
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			out = utf8.AppendRune(out, utf8.RuneError)
		case Hidden(r) || joins(r):
			out = AppendEscape(out, r)
		default:
			out = append(out, b[i:i+n]...)
		}
		i += n
	}
	return out
}
