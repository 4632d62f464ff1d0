package foreign

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// ShortSecret is the length in bytes below which a secret is replaced only
// where it is a whole value, or follows its scheme: three letters are found in
// any text.
const ShortSecret = 4

// Redactor replaces secrets by their placeholders: raw in any case, reversed,
// percent-encoded, quoted-printable, JSON-, Go- and HTML-escaped, base64 of both
// alphabets at any offset, base32, hex and lists of bytes, UTF-16, split by white
// space or invisible characters, and up to three of these on top of each other.
// It is safe for parallel use; secrets may be added at any time. A nil one hides nothing.
type Redactor struct {
	mu      sync.RWMutex
	secrets []secret
	needles []needle
	index   index
	spaces  bool // a secret holds a space, which "+" may encode
	least   int  // length of the shortest secret that is looked for
}

type secret struct {
	text, placeholder string
	short             bool
}

// New gives a redactor without secrets.
func New() *Redactor { return &Redactor{} }

// Add makes text a secret, shown as placeholder, such as
// "$DESTKIT_TOKEN". An empty or known text changes nothing.
func (r *Redactor) Add(text, placeholder string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if text == "" || slices.ContainsFunc(r.secrets, func(s secret) bool { return s.text == text }) {
		return
	}
	short := len(text) < ShortSecret || PlainWord(text)
	r.secrets = append(r.secrets, secret{text, placeholder, short})
	at := len(r.secrets) - 1
	if r.least == 0 || len(text) < r.least {
		r.least = len(text)
	}
	r.spaces = r.spaces || strings.Contains(text, " ")
	if short {
		// Its scheme makes it long enough to be found.
		r.add(needle{text: lower([]byte("bearer " + text)), secret: at, word: true, keep: len("bearer ")})
		return
	}
	r.addSecret(at, text)
}

// AddAnother is Add under the next free number where other secrets have the placeholder, such as
// "$DESTKIT_TOKEN_2": what is shown tells one secret from another.
func (r *Redactor) AddAnother(text, placeholder string) {
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
	r.Add(text, name)
}

// longSecret is the length in bytes from which a part of a URL counts as a secret:
// shorter ones are words, mostly.
const longSecret = 8

// AddURL makes known what may be secret in a URL: all beyond its host. name is what messages
// call the URL, such as "$DESTKIT_URL".
func (r *Redactor) AddURL(u *url.URL, name string) {
	if u.User != nil {
		password, _ := u.User.Password()
		r.Add(password, name+"_PASSWORD")
		r.Add(u.User.Username(), name+"_USER")
	}
	if rest := u.RequestURI(); len(rest) >= longSecret {
		r.Add(rest, name+"_PATH")
	}
	for _, part := range strings.FieldsFunc(u.EscapedPath()+"&"+u.RawQuery, func(r rune) bool { return r == '/' || r == '&' }) {
		if _, value, ok := strings.Cut(part, "="); ok {
			part = value
		}
		plain, err := url.QueryUnescape(part)
		for _, text := range []string{part, plain} {
			if err == nil && len(text) >= longSecret && !PlainWord(text) {
				r.Add(text, name+"_PATH")
			}
		}
	}
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

// PlainWord reports whether a value is a word that every exchange may hold:
// hiding "true" would hide every reply.
func PlainWord(s string) bool {
	switch strings.ToLower(s) {
	case "true", "false", "null", "none", "json", "application/json", "jsonrpc", "method", "params",
		"result", "error", "string", "integer", "object", "objects", "field", "fields", "record",
		"records", "label", "success", "message", "contact", "http", "https", "post", "close",
		"keep-alive", "v1", "v2", "test", "identity", "gzip", "test_connection", "list_objects",
		"list_fields", "supported_operations", "get_sync_speed", "sync_batch":
		return true
	}
	return false
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
