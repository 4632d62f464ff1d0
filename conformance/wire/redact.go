package wire

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
)

// shortSecret is the length in bytes below which a secret is replaced only as a
// whole header value: three letters are found in any text.
const shortSecret = 4

// partLength is the length from which on most of a secret counts as secret
// too: a token that was cut by one character is still nearly the token.
const partLength = 12

// Redactor replaces secrets by their placeholders, whatever the encoding: raw
// in any case, percent-encoded, JSON- and HTML-escaped (any two of them on top
// of each other), base64 of both alphabets at any offset, hex, UTF-16. It is
// safe for parallel use; secrets may be added at any time.
type Redactor struct {
	mu      sync.RWMutex
	secrets []secret
	needles []needle
	spaces  bool // a secret holds a space, so "+" may stand for one
}

type secret struct{ text, placeholder string }

// needle is one text to look for in a view.
type needle struct {
	text   []byte
	base64 bool // case counts, and the whole run of the alphabet is replaced
	part   bool
	secret int
	whole  []byte // of a part: the secret in lower case, to extend the match
	suffix bool
}

// NewRedactor gives a redactor without secrets.
func NewRedactor() *Redactor { return &Redactor{} }

// Add makes text a secret that stands as placeholder, such as
// "$DESTKIT_TOKEN". An empty or known text changes nothing.
func (r *Redactor) Add(text, placeholder string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if text == "" || slices.ContainsFunc(r.secrets, func(s secret) bool { return s.text == text }) {
		return
	}
	r.secrets = append(r.secrets, secret{text, placeholder})
	if len(text) < shortSecret {
		return
	}
	r.spaces = r.spaces || strings.Contains(text, " ")
	at := len(r.secrets) - 1
	r.addNeedles(text, needle{secret: at})
	if n := len(text); n >= partLength {
		whole := lower([]byte(text))
		r.addNeedles(text[:n*3/4], needle{secret: at, part: true, whole: whole})
		r.addNeedles(text[n-n*3/4:], needle{secret: at, part: true, whole: whole, suffix: true})
	}
}

// addNeedles derives what to look for. Base64 text depends on the offset of the
// secret in the encoded bytes modulo 3; of each the characters that depend on
// the secret alone are looked for.
func (r *Redactor) addNeedles(text string, n needle) {
	n.text = lower([]byte(text))
	r.needles = append(r.needles, n)
	n.whole = nil
	n.text = []byte(hex.EncodeToString([]byte(text)))
	r.needles = append(r.needles, n)
	n.base64 = true
	for shift := range 3 {
		coded := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), text...))
		from, to := (8*shift+5)/6, 8*(shift+len(text))/6
		if core := coded[from:to]; len(core) >= shortSecret {
			n.text = []byte(core)
			r.needles = append(r.needles, n)
		}
	}
}

// String replaces every secret in s.
func (r *Redactor) String(s string) string {
	b := []byte(s)
	if out := r.cut(b, len(b)); !bytes.Equal(out, b) {
		return string(out)
	}
	return s
}

// Bytes replaces every secret in b, which it does not change.
func (r *Redactor) Bytes(b []byte) []byte { return r.cut(b, len(b)) }

// Header replaces secrets in one header value, short ones when they are the
// whole value or all that follows its scheme.
func (r *Redactor) Header(value string) string {
	scheme, rest, found := strings.Cut(value, " ")
	if !found {
		scheme, rest = "", value
	}
	rest = strings.TrimSpace(rest)
	r.mu.RLock()
	short := ""
	for _, s := range r.secrets {
		if len(s.text) >= shortSecret {
			continue
		}
		if value == s.text {
			r.mu.RUnlock()
			return s.placeholder
		}
		if rest == s.text || basicHolds(rest, s.text) {
			short = s.placeholder
		}
	}
	r.mu.RUnlock()
	if short != "" {
		return strings.TrimSpace(scheme + " " + short)
	}
	return r.String(value)
}

// basicHolds tells whether base64 credentials have the secret as a half.
func basicHolds(coded, secret string) bool {
	plain, err := base64.StdEncoding.DecodeString(coded)
	if err != nil {
		return false
	}
	user, password, _ := strings.Cut(string(plain), ":")
	return user == secret || password == secret
}

// Leaks lists the placeholders of the secrets that b holds completely, in any
// encoding; for the check that a reply must not echo them (spec 5.2.4).
func (r *Redactor) Leaks(b []byte) []string {
	var names []string
	for _, m := range r.find(b) {
		if !m.part && !m.weak && !slices.Contains(names, m.placeholder) {
			names = append(names, m.placeholder)
		}
	}
	slices.Sort(names)
	return names
}

// Reveal puts the secrets back in place of their placeholders, in plain form;
// for sending a recorded exchange again.
func (r *Redactor) Reveal(s string) string {
	r.mu.RLock()
	secrets := slices.Clone(r.secrets)
	r.mu.RUnlock()
	slices.SortStableFunc(secrets, func(a, b secret) int { return cmp.Compare(len(b.placeholder), len(a.placeholder)) })
	var pairs []string
	for _, x := range secrets {
		if name, ok := strings.CutPrefix(x.placeholder, "$"); ok {
			pairs = append(pairs, "${"+name+"}", x.text)
		}
	}
	for _, x := range secrets {
		pairs = append(pairs, x.placeholder, x.text)
	}
	return strings.NewReplacer(pairs...).Replace(s)
}

// cut redacts the first limit bytes of b. A secret across the border is found.
func (r *Redactor) cut(b []byte, limit int) []byte {
	limit = min(limit, len(b))
	matches := r.find(b[:min(len(b), limit+64<<10)])
	if len(matches) == 0 {
		return b[:limit]
	}
	out := make([]byte, 0, limit)
	at := 0
	for _, m := range matches {
		if m.from >= limit {
			break
		}
		out = append(out, b[at:m.from]...)
		out = append(out, m.shown(b)...)
		at = m.to
	}
	if at < limit {
		out = append(out, b[at:limit]...)
	}
	return out
}

// find gives all matches in all views of b, merged and in order.
func (r *Redactor) find(b []byte) []match {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.needles) == 0 || len(b) == 0 {
		return nil
	}
	var matches []match
	eachView(b, r.spaces, func(v *view) {
		matches = r.findIn(v, matches)
	})
	return merge(matches)
}

func (r *Redactor) findIn(v *view, matches []match) []match {
	folded := lower(v.text)
	alphabet := stdAlphabet(v.text)
	for i := range r.needles {
		n := &r.needles[i]
		text := folded
		if n.base64 {
			text = alphabet
		}
		for at := 0; ; {
			found := bytes.Index(text[at:], n.text)
			if found < 0 {
				break
			}
			from, to := n.extend(text, at+found)
			at = max(to, at+found+1)
			m := match{placeholder: r.secrets[n.secret].placeholder, part: n.part, weak: n.base64 && len(n.text) < 8}
			m.from, m.to = v.source(from, to)
			matches = append(matches, m)
		}
	}
	return matches
}

// extend widens a match: base64 to its whole run, a part of a secret to as
// much of the secret as stands there.
func (n *needle) extend(text []byte, from int) (int, int) {
	to := from + len(n.text)
	switch {
	case n.base64:
		for from > 0 && isBase64(text[from-1]) {
			from--
		}
		for to < len(text) && (isBase64(text[to]) || text[to] == '=') {
			to++
		}
	case n.whole == nil:
	case n.suffix:
		for i := len(n.whole) - len(n.text) - 1; i >= 0 && from > 0 && text[from-1] == n.whole[i]; i-- {
			from--
		}
	default:
		for i := len(n.text); i < len(n.whole) && to < len(text) && text[to] == n.whole[i]; i++ {
			to++
		}
	}
	return from, to
}
