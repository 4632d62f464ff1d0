package foreign

import (
	"bytes"
	"encoding/base64"
)

// partLength is the length from which on most of a secret counts as secret
// too: a token that was cut by one character is still nearly the token.
const partLength = 12

// needle is one text to look for in a view, at least ShortSecret bytes long.
type needle struct {
	text   []byte
	run    func(byte) bool // the whole run of such characters is replaced; nil: the match alone
	exact  bool            // case counts
	word   bool            // a word: neither a part of a longer one nor the name of a member
	plain  bool            // the secret as it is, in lower case
	part   bool
	secret int
	keep   int    // bytes at the beginning that are no secret
	whole  []byte // of a part: the secret in lower case, to extend the match
	suffix bool
}

// addSecret derives what to look for of a whole secret, and of most of it.
func (r *Redactor) addSecret(at int, text string) {
	whole := lower([]byte(text))
	r.look(needle{text: whole, secret: at, plain: true, word: wordLike(text)})
	r.addCoded(text, needle{secret: at})
	n := len(text)
	if n < partLength {
		return
	}
	r.look(needle{text: whole[:n*3/4], secret: at, part: true, whole: whole})
	r.look(needle{text: whole[n-n*3/4:], secret: at, part: true, whole: whole, suffix: true})
	r.addCoded(text[:n*3/4], needle{secret: at, part: true})
	r.addCoded(text[n-n*3/4:], needle{secret: at, part: true})
}

// addCoded adds what a text is in base64, which depends on the offset of the text in the
// encoded bytes: of each offset the characters that depend on the text alone are looked for.
func (r *Redactor) addCoded(text string, n needle) {
	n.run, n.exact = isBase64, true
	for shift := range 3 {
		coded := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), text...))
		if c := coded[(8*shift+5)/6 : 8*(shift+len(text))/6]; len(c) >= ShortSecret {
			n.text = []byte(c)
			r.look(n)
		}
	}
}

func (r *Redactor) look(n needle) {
	if len(n.text) < ShortSecret {
		return
	}
	r.needles = append(r.needles, n)
	r.index.add(n.text, len(r.needles)-1)
}

// findIn adds the matches of one view. skip holds for each needle where it is
// looked for again.
func (r *Redactor) findIn(v *view, skip []int, matches []match) []match {
	text := v.text
	if len(text) < gram {
		return matches
	}
	key := uint32(folded[text[0]])<<16 | uint32(folded[text[1]])<<8 | uint32(folded[text[2]])
	for i := 0; i+gram <= len(text); i++ {
		key = key<<8 | uint32(folded[text[i+gram-1]])
		if !r.index.holds(key) {
			continue
		}
		for _, at := range r.index.starts[key] {
			n := &r.needles[at]
			if i < skip[at] || !n.matches(text[i:]) || n.word && !standsAlone(text, i, i+len(n.text)) {
				continue
			}
			from, to := n.extend(text, i)
			skip[at] = max(to, i+1)
			m := match{placeholder: r.secrets[n.secret].placeholder, part: n.part, weak: n.exact && len(n.text) < 8}
			m.from, m.to = v.source(from+n.keep, to)
			matches = append(matches, m)
		}
	}
	return matches
}

// matches reports whether text begins with the needle.
func (n *needle) matches(text []byte) bool {
	if len(text) < len(n.text) {
		return false
	}
	for i, c := range n.text {
		got := text[i]
		switch {
		case got == c:
		case n.exact:
			if got == '-' && c == '+' || got == '_' && c == '/' {
				continue
			}
			return false
		case got >= 'A' && got <= 'Z' && got+'a'-'A' == c:
		default:
			return false
		}
	}
	return true
}

// standsAlone reports whether from..to is neither a part of a longer word nor the name of a
// member of JSON.
func standsAlone(text []byte, from, to int) bool {
	if from > 0 && isNameByte(text[from-1]) || to < len(text) && isNameByte(text[to]) {
		return false
	}
	rest, quoted := bytes.CutPrefix(text[to:], []byte(`"`))
	return !quoted || !bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(":"))
}

// extend widens a match: coded text to its whole run, a part of a secret to as
// much of the secret as is there.
func (n *needle) extend(text []byte, from int) (int, int) {
	to := from + len(n.text)
	switch {
	case n.run != nil:
		for from > 0 && n.run(text[from-1]) {
			from--
		}
		for to < len(text) && (n.run(text[to]) || text[to] == '=') {
			to++
		}
	case n.whole == nil:
	case n.suffix:
		for i := len(n.whole) - len(n.text) - 1; i >= 0 && from > 0 && lowerByte(text[from-1]) == n.whole[i]; i-- {
			from--
		}
	default:
		for i := len(n.text); i < len(n.whole) && to < len(text) && lowerByte(text[to]) == n.whole[i]; i++ {
			to++
		}
	}
	return from, to
}

// The rest of a secret in a shortened text counts from these lengths on, in bytes:
// before a mark of the cut, and at an end without one, where it must be half of the
// secret as well: "sk_live_" is the beginning of many tokens.
const (
	leastBeforeMark = 4
	leastAtEnd      = 8
)

// findCut adds what a cut has left of a secret: its beginning before "…" or at the
// end of the text, its end after "…" or at the beginning.
func (r *Redactor) findCut(v *view, matches []match) []match {
	places := cuts(v.text)
	for i := range r.needles {
		n := &r.needles[i]
		if !n.plain {
			continue
		}
		name := r.secrets[n.secret].placeholder
		found := func(from, to int) {
			if from < to {
				m := match{placeholder: name, part: true}
				m.from, m.to = v.source(from, to)
				matches = append(matches, m)
			}
		}
		half := max(leastAtEnd, len(n.text)/2)
		found(n.head(v.text, half))
		found(n.tail(v.text, 0, half))
		for _, at := range places {
			found(n.head(v.text[:at], leastBeforeMark))
			found(n.tail(v.text, at+len(ellipsis), half))
		}
	}
	return matches
}

// head gives the beginning of the secret at the end of a text that was cut
// there, perhaps in the middle of an escape.
func (n *needle) head(text []byte, least int) (from, to int) {
	text = bytes.TrimRight(text, " \"'`")
	for _, end := range []int{len(text), len(text) - brokenEscape(text)} {
		for k := min(len(n.text)-1, end); k >= least; k-- {
			if equalLower(text[end-k:end], n.text[:k]) {
				return end - k, end
			}
		}
	}
	return 0, 0
}

// tail gives the end of the secret at the place where a text goes on after a cut.
func (n *needle) tail(text []byte, at, least int) (from, to int) {
	for at < len(text) && (text[at] == ' ' || text[at] == '"') {
		at++
	}
	for k := min(len(n.text)-1, len(text)-at); k >= least; k-- {
		if equalLower(text[at:at+k], n.text[len(n.text)-k:]) {
			return at, at + k
		}
	}
	return 0, 0
}

// brokenEscape is the length of an escape that a cut has left incomplete.
func brokenEscape(text []byte) int {
	for n := 1; n <= min(9, len(text)); n++ {
		switch text[len(text)-n] {
		case '%', '\\', '&', '=':
			return n
		}
	}
	return 0
}

// gram is the length of the pieces by which the needles are indexed.
const gram = 4

// index finds the needles that may begin at a place: one pass for all of them.
type index struct {
	bits   [1 << 10]uint64
	starts map[uint32][]int
}

func slot(key uint32) uint32 { return key * 2654435761 >> 16 }

func (x *index) holds(key uint32) bool {
	s := slot(key)
	return x.bits[s>>6]&(1<<(s&63)) != 0
}

func (x *index) add(text []byte, needle int) {
	var key uint32
	for _, c := range text[:gram] {
		key = key<<8 | uint32(folded[c])
	}
	if x.starts == nil {
		x.starts = map[uint32][]int{}
	}
	x.starts[key] = append(x.starts[key], needle)
	s := slot(key)
	x.bits[s>>6] |= 1 << (s & 63)
}

// folded makes letters of both cases and the two alphabets of base64 alike.
var folded = func() (table [256]byte) {
	for i := range table {
		table[i] = lowerByte(byte(i))
	}
	table['-'], table['_'] = '+', '/'
	return table
}()

func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// lower folds ASCII letters only, so that lengths and offsets stay.
func lower(b []byte) []byte {
	out := make([]byte, len(b))
	for i, c := range b {
		out[i] = lowerByte(c)
	}
	return out
}

// equalLower compares text with a lower-case text of the same length.
func equalLower(text, folded []byte) bool {
	for i, c := range folded {
		if lowerByte(text[i]) != c {
			return false
		}
	}
	return true
}

// isBase64 knows both alphabets.
func isBase64(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '+' || b == '/' || b == '-' || b == '_'
}
