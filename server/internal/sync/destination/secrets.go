package destination

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
)

const (
	// shortSecret is the length in bytes below which a secret is not looked
	// for: three letters are found in any text.
	shortSecret = 4
	hidden      = "[hidden]"
	withheld    = "[text withheld: it holds a secret of the connection]"
	maxForeign  = 500 // code points of foreign text that a message shows
)

// redactor takes the secrets of one connection out of texts that its destination wrote
// or that quote what was sent to it: as they are in any case, percent-encoded, JSON- and
// HTML-escaped, in hex, and in base64 of both alphabets at any offset. A text that holds
// one in a form that cannot be cut out is withheld as a whole. Texts of the commands are
// those of internal/redact, which names what it hides and can put it back.
type redactor struct {
	folded []string // looked for in lower case
	base64 []string // of the standard alphabet; case counts
	plain  []string
}

// newRedactor derives all forms once; a connection cleans many texts.
func newRedactor(secrets []string) *redactor {
	r := &redactor{}
	for _, s := range secrets {
		if len(s) < shortSecret {
			continue
		}
		r.plain = append(r.plain, fold(s))
		quoted, _ := json.Marshal(s)
		for _, form := range []string{
			s, url.QueryEscape(s), url.PathEscape(s), string(quoted[1 : len(quoted)-1]), html.EscapeString(s),
			hex.EncodeToString([]byte(s)),
		} {
			if form = fold(form); !slices.Contains(r.folded, form) {
				r.folded = append(r.folded, form)
			}
		}
		// The base64 of a secret depends on its offset modulo 3; the characters
		// that depend on the secret alone are looked for.
		for shift := range 3 {
			coded := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), s...))
			if core := coded[(8*shift+5)/6 : 8*(shift+len(s))/6]; len(core) >= shortSecret {
				r.base64 = append(r.base64, core)
			}
		}
	}
	return r
}

// span is a stretch of a text that must not be shown.
type span struct{ from, to int }

// Clean replaces every secret. A text that still holds one below an encoding is
// withheld as a whole.
func (r *redactor) Clean(s string) string {
	if len(r.plain) == 0 || s == "" {
		return s
	}
	spans := r.find(s)
	spans = r.cut(s, spans)
	s = replace(s, spans)
	for _, view := range views(s) {
		if len(r.find(view)) > 0 {
			return withheld
		}
	}
	return s
}

// Foreign is clean for text that a destination wrote: one line of bounded
// length.
func (r *redactor) Foreign(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return foreign.Clip(strings.TrimSpace(r.Clean(s)), maxForeign)
}

// find gives the stretches that hold a secret. A base64 match takes its whole
// run, since the characters around it are the secret's neighbours.
func (r *redactor) find(s string) []span {
	var spans []span
	low := fold(s)
	for _, needle := range r.folded {
		spans = appendAll(spans, low, needle, func(from, to int) span { return span{from, to} })
	}
	std := base64Text(s)
	for _, needle := range r.base64 {
		spans = appendAll(spans, std, needle, func(from, to int) span {
			for from > 0 && isBase64(std[from-1]) {
				from--
			}
			for to < len(std) && (isBase64(std[to]) || std[to] == '=') {
				to++
			}
			return span{from, to}
		})
	}
	return spans
}

// appendAll adds every occurrence, overlapping ones too: replace merges them.
func appendAll(spans []span, s, needle string, widen func(from, to int) span) []span {
	for at := 0; ; {
		i := strings.Index(s[at:], needle)
		if i < 0 {
			return spans
		}
		spans = append(spans, widen(at+i, at+i+len(needle)))
		at += i + 1
	}
}

// cut adds the beginning of a secret that stands where a text was cut off: of
// four bytes or more before an ellipsis, of eight or more at the end.
func (r *redactor) cut(s string, spans []span) []span {
	low, std := fold(s), base64Text(s)
	edge := func(end, least int) {
		for _, secret := range r.folded {
			spans = appendPrefix(spans, low[:end], secret, least)
		}
		for _, secret := range r.base64 {
			spans = appendPrefix(spans, std[:end], secret, max(least, 6))
		}
	}
	edge(len(s), 2*shortSecret)
	if end := strings.LastIndex(s, "…"); end >= 0 {
		edge(end, shortSecret)
	}
	return spans
}

// appendPrefix adds the longest beginning of a secret at the end of s.
func appendPrefix(spans []span, s, secret string, least int) []span {
	for n := min(len(secret)-1, len(s)); n >= least; n-- {
		if strings.HasSuffix(s, secret[:n]) {
			return append(spans, span{len(s) - n, len(s)})
		}
	}
	return spans
}

// base64Text turns the URL alphabet of base64 into the standard one.
func base64Text(s string) string { return strings.NewReplacer("-", "+", "_", "/").Replace(s) }

// replace puts one placeholder for each stretch; those that overlap share one.
func replace(s string, spans []span) string {
	if len(spans) == 0 {
		return s
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	var b strings.Builder
	at := 0
	for _, sp := range spans {
		if sp.from >= at {
			b.WriteString(s[at:sp.from])
			b.WriteString(hidden)
		}
		at = max(at, sp.to)
	}
	b.WriteString(s[at:])
	return b.String()
}

var escaped = regexp.MustCompile(`\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|\\.`)

// views are the text with encodings undone, one and two deep.
func views(s string) []string {
	undo := []func(string) string{unpercent, unescape, html.UnescapeString}
	var list []string
	for _, first := range undo {
		one := first(s)
		if one == s {
			continue
		}
		list = append(list, one)
		for _, second := range undo {
			if two := second(one); two != one {
				list = append(list, two)
			}
		}
	}
	return list
}

// unescape undoes the escapes of JSON and the \xNN of other languages.
func unescape(s string) string {
	return escaped.ReplaceAllStringFunc(s, func(unit string) string {
		if unit[1] == 'u' || unit[1] == 'x' {
			if n, err := strconv.ParseUint(unit[2:], 16, 32); err == nil {
				return string(rune(n))
			}
		}
		return unit[1:]
	})
}

// unpercent decodes what can be decoded and leaves the rest.
func unpercent(s string) string {
	var b bytes.Buffer
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// fold lowers ASCII letters only, so that offsets stay.
func fold(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// isBase64 tells the characters of the standard alphabet, padding left out.
func isBase64(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '+' || b == '/'
}
