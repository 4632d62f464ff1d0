package foreign

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Redactor replaces secrets by their placeholders: raw in any case, percent-encoded, JSON- and
// HTML-escaped, base64 of both alphabets at any offset, and up to three of these on top of each
// other. A secret that is a word, such as "secret", is no secret as a part of a longer word or as
// the name of a member; words of the protocol never are, except after "Bearer".
// It is safe for parallel use; secrets may be added at any time. A nil one hides nothing.
type Redactor struct {
	mu      sync.RWMutex
	secrets []secret
	needles []needle
	index   index
	spaces  bool // a secret holds a space, which "+" may encode
	least   int  // length of the shortest secret that is looked for
	most    int  // secrets, 0: no bound
	refused int  // secrets beyond
}

type secret struct {
	text, placeholder string
	short             bool
	named             bool // a text that is no secret, only known by a name
}

// New gives a redactor without secrets.
func New() *Redactor { return &Redactor{} }

// Add makes text a secret, shown as placeholder, such as
// "$DESTKIT_TOKEN". An empty or known text changes nothing, and is not added.
func (r *Redactor) Add(text, placeholder string) (added bool) {
	return r.add(secret{text: text, placeholder: placeholder, short: len(text) < ShortSecret || PlainWord(text)})
}

func (r *Redactor) add(s secret) (added bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.text == "" {
		return false
	}
	at := slices.IndexFunc(r.secrets, func(other secret) bool {
		return s.text == other.text && (!s.named || !other.named || s.placeholder == other.placeholder)
	})
	switch {
	case at >= 0 && (s.named || !r.secrets[at].named):
		return false
	case at >= 0: // more than a name now
		r.secrets[at] = s
	case r.most > 0 && len(r.secrets) >= r.most:
		r.refused++
		return false
	default:
		r.secrets = append(r.secrets, s)
		at = len(r.secrets) - 1
	}
	if s.named {
		return false
	}
	if r.least == 0 || len(s.text) < r.least {
		r.least = len(s.text)
	}
	r.spaces = r.spaces || strings.Contains(s.text, " ")
	if s.short {
		// Its scheme makes it long enough to be found.
		r.look(needle{text: lower([]byte("bearer " + s.text)), secret: at, word: true, keep: len("bearer ")})
		return true
	}
	r.addSecret(at, s.text)
	return true
}

// Bound refuses secrets beyond the given number. Whoever adds to a bound redactor shows nothing
// of what has a Refused one.
func (r *Redactor) Bound(most int) { r.most = most }

// Refused is how often a secret was not let in.
func (r *Redactor) Refused() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.refused
}

// AddAnother is Add under the next free number where other secrets have the placeholder, such as
// "$DESTKIT_TOKEN_2": what is shown tells one secret from another.
func (r *Redactor) AddAnother(text, placeholder string) (added bool) {
	r.mu.RLock()
	taken := map[string]bool{}
	for _, s := range r.secrets {
		taken[s.placeholder] = s.text != text
	}
	r.mu.RUnlock()
	name := placeholder
	for n := 2; taken[name]; n++ {
		name = placeholder + "_" + strconv.Itoa(n)
	}
	return r.Add(text, name)
}

// String replaces every secret in s.
func (r *Redactor) String(s string) string {
	matches := r.find([]byte(s))
	if len(matches) == 0 {
		return r.whole(s)
	}
	return string(replace([]byte(s), len(s), matches))
}

// whole replaces a short secret that is all of a text.
func (r *Redactor) whole(s string) string {
	if r == nil {
		return s
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, x := range r.secrets {
		if x.short && s == x.text {
			return x.placeholder
		}
	}
	return s
}

// Bytes replaces every secret in b, which it does not change.
func (r *Redactor) Bytes(b []byte) []byte { return r.Cut(b, len(b)) }

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
		if !s.short {
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

// basicHolds reports whether base64 credentials have the secret as a half.
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

// Cut redacts the first limit bytes of b. A secret across the border is found.
func (r *Redactor) Cut(b []byte, limit int) []byte {
	limit = min(limit, len(b))
	return replace(b, limit, r.find(b[:min(len(b), limit+64<<10)]))
}

// replace puts placeholders into the first limit bytes of b.
func replace(b []byte, limit int, matches []match) []byte {
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
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.needles) == 0 || len(b) < ShortSecret {
		return nil
	}
	var matches []match
	skip := make([]int, len(r.needles))
	r.eachView(b, func(v *view) {
		clear(skip)
		matches = r.findIn(v, skip, matches)
		matches = r.findCut(v, matches)
	})
	return merge(matches)
}

// isCut finds the places where a text was shortened.
var ellipsis = []byte("…")

func cuts(text []byte) (at []int) {
	for from := 0; ; {
		i := bytes.Index(text[from:], ellipsis)
		if i < 0 {
			return at
		}
		at = append(at, from+i)
		from += i + len(ellipsis)
	}
}

// match is a stretch of the original text that must not be shown.
type match struct {
	from, to    int
	placeholder string
	part        bool
	weak        bool // short base64, which may be chance
}

// shown gives the replacement. A letter behind it must not become part of the
// variable's name.
func (m match) shown(b []byte) string {
	if m.part {
		return "[part of " + m.placeholder + "]"
	}
	if m.to < len(b) && strings.HasPrefix(m.placeholder, "$") && isNameByte(b[m.to]) {
		return "${" + m.placeholder[1:] + "}"
	}
	return m.placeholder
}

func isNameByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// merge joins what overlaps. A whole secret names the stretch before a part,
// the longer before the shorter.
func merge(matches []match) []match {
	slices.SortFunc(matches, func(a, b match) int { return cmp.Compare(a.from, b.from) })
	merged := matches[:0]
	var best int // length of the match that names the last stretch
	for _, m := range matches {
		if n := len(merged); n > 0 && m.from < merged[n-1].to {
			last := &merged[n-1]
			if last.part && !m.part || last.part == m.part && m.to-m.from > best {
				last.placeholder, last.part, best = m.placeholder, m.part, m.to-m.from
			}
			last.weak = last.weak && m.weak
			last.to = max(last.to, m.to)
			continue
		}
		merged = append(merged, m)
		best = m.to - m.from
	}
	return merged
}
