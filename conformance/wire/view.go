package wire

import (
	"bytes"
	"html"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// view is a text with one or two encodings undone. Secrets are looked for in
// it, since undoing finds every way to write them: any character may be
// escaped or not, in either case.
type view struct {
	text   []byte
	layers []unescape // applied in this order to the original
	origin []byte
	maps   [][]int32 // per layer: the offset of each decoded byte, built on demand
}

// unescape decodes the unit at the start of b: how many bytes it takes and what
// it stands for. A unit that is no escape is itself.
type unescape struct {
	mark byte // no unit differs from itself without this byte
	unit func(b []byte, out []byte) (n int, decoded []byte)
}

var (
	unescapePercent = unescape{'%', percentUnit}
	unescapePlus    = unescape{'+', plusUnit}
	unescapeJSON    = unescape{'\\', jsonUnit}
	unescapeHTML    = unescape{'&', htmlUnit}
	dropNUL         = unescape{0, nulUnit}
)

// eachView calls fn with the text itself and with every reading of it up to two
// encodings deep.
func eachView(b []byte, spaces bool, fn func(*view)) {
	kinds := []unescape{unescapePercent, unescapeJSON, unescapeHTML, dropNUL}
	if spaces {
		kinds = append(kinds, unescapePlus)
	}
	base := &view{text: b, origin: b}
	fn(base)
	for _, first := range kinds {
		one := base.undo(first)
		if one == nil {
			continue
		}
		fn(one)
		for _, second := range kinds {
			if two := one.undo(second); two != nil {
				fn(two)
			}
		}
	}
}

// undo gives the view with one more encoding undone, or nil when that changes
// nothing.
func (v *view) undo(u unescape) *view {
	if bytes.IndexByte(v.text, u.mark) < 0 {
		return nil
	}
	text, _ := u.apply(v.text, false)
	if len(text) == len(v.text) && bytes.Equal(text, v.text) {
		return nil
	}
	return &view{text: text, origin: v.origin, layers: append(slices.Clone(v.layers), u)}
}

// apply decodes b; offsets, when wanted, holds the start of each decoded byte
// and at its end the length of b.
func (u unescape) apply(b []byte, wanted bool) (text []byte, offsets []int32) {
	text = make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		if b[i] != u.mark {
			text = append(text, b[i])
			if wanted {
				offsets = append(offsets, int32(i))
			}
			i++
			continue
		}
		before := len(text)
		var n int
		n, text = u.unit(b[i:], text)
		if wanted {
			for range len(text) - before {
				offsets = append(offsets, int32(i))
			}
		}
		i += n
	}
	if wanted {
		offsets = append(offsets, int32(len(b)))
	}
	return text, offsets
}

// source gives the stretch of the original that from and to of the view stand
// for.
func (v *view) source(from, to int) (int, int) {
	if v.maps == nil && len(v.layers) > 0 {
		text := v.origin
		for _, layer := range v.layers {
			next, offsets := layer.apply(text, true)
			v.maps = append(v.maps, offsets)
			text = next
		}
	}
	for _, offsets := range slices.Backward(v.maps) {
		// An escape that gives several bytes belongs to the match as a whole.
		end := to
		for end < len(offsets)-1 && end > 0 && offsets[end] == offsets[end-1] {
			end++
		}
		from, to = int(offsets[from]), int(offsets[end])
	}
	return from, to
}

func percentUnit(b, out []byte) (int, []byte) {
	if len(b) >= 3 {
		if n, err := strconv.ParseUint(string(b[1:3]), 16, 8); err == nil {
			return 3, append(out, byte(n))
		}
	}
	return 1, append(out, b[0])
}

func plusUnit(_, out []byte) (int, []byte) { return 1, append(out, ' ') }

func nulUnit(_, out []byte) (int, []byte) { return 1, out }

// jsonUnit knows JSON's escapes and the \xNN and \' of other languages.
func jsonUnit(b, out []byte) (int, []byte) {
	if len(b) < 2 {
		return 1, append(out, b[0])
	}
	switch b[1] {
	case 'u':
		r, n := jsonRune(b)
		if n == 0 {
			return 1, append(out, b[0])
		}
		return n, utf8.AppendRune(out, r)
	case 'x':
		if len(b) >= 4 {
			if n, err := strconv.ParseUint(string(b[2:4]), 16, 8); err == nil {
				return 4, append(out, byte(n))
			}
		}
		return 1, append(out, b[0])
	case 'b':
		return 2, append(out, '\b')
	case 'f':
		return 2, append(out, '\f')
	case 'n':
		return 2, append(out, '\n')
	case 'r':
		return 2, append(out, '\r')
	case 't':
		return 2, append(out, '\t')
	case '"', '\\', '/', '\'':
		return 2, append(out, b[1])
	}
	return 1, append(out, b[0])
}

// jsonRune decodes \uXXXX or a pair of them; n is 0 when it is none.
func jsonRune(b []byte) (r rune, n int) {
	unit := func(b []byte) (rune, bool) {
		if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
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

// htmlUnit decodes a character reference of at most 32 bytes.
func htmlUnit(b, out []byte) (int, []byte) {
	end := bytes.IndexByte(b[:min(len(b), 32)], ';')
	if end < 0 {
		return 1, append(out, b[0])
	}
	coded := string(b[:end+1])
	if plain := html.UnescapeString(coded); plain != coded && utf8.RuneCountInString(plain) <= 2 {
		return end + 1, append(out, plain...)
	}
	return 1, append(out, b[0])
}

// lower folds ASCII letters only, so that lengths and offsets stay.
func lower(b []byte) []byte {
	folded := make([]byte, len(b))
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		folded[i] = c
	}
	return folded
}

// stdAlphabet turns the URL alphabet of base64 into the standard one.
func stdAlphabet(b []byte) []byte {
	if bytes.IndexByte(b, '-') < 0 && bytes.IndexByte(b, '_') < 0 {
		return b
	}
	std := slices.Clone(b)
	for i, c := range std {
		switch c {
		case '-':
			std[i] = '+'
		case '_':
			std[i] = '/'
		}
	}
	return std
}

func isBase64(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '+' || b == '/'
}
