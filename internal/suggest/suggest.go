// Package suggest guesses the intended name behind a mistyped one, and words the
// suggestion in a message. It refuses to know what the names are.
package suggest

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/hbollon/go-edlib"
)

// Word returns the candidate that is most like word, or "" when none is
// near enough to be a slip of the keyboard: at most a third of its letters
// differ. The case of letters counts where two are near.
func Word(word string, candidates []string) string {
	if near := nearest(word, candidates, func(s string) string { return s }); near != "" {
		return near
	}
	return nearest(word, candidates, strings.ToLower)
}

func nearest(word string, candidates []string, in func(string) string) string {
	word = in(word)
	letters := utf8.RuneCountInString(word)
	best, bestDistance := "", letters/3+1
	for _, candidate := range candidates {
		other := in(candidate)
		if more := utf8.RuneCountInString(other) - letters; max(more, -more) > bestDistance {
			continue // whatever its letters are
		}
		if d := Distance(word, other); d < bestDistance || (d == bestDistance && best == "") {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// Distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func Distance(a, b string) int { return edlib.OSADamerauLevenshteinDistance(a, b) }

// most is how many known words a message lists.
const most = 20

// Phrase ends a message about an unknown word: `; did you mean "x"?`, or the known
// words when they are few and none is near, or nothing.
func Phrase(word string, known []string) string {
	if near := Word(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	if len(known) > 0 && len(known) <= most {
		return "; known are " + strings.Join(known, ", ")
	}
	return ""
}

// URL returns the absolute URL that raw was probably meant to be, such as
// http://127.0.0.1:8080 for 127.0.0.1:8080, or "" when there is no good guess.
// Path, query and user may hold a secret, so the guess ends with the port, and
// with /… where more follows.
func URL(raw string) string {
	scheme, rest, found := strings.Cut(strings.TrimSpace(raw), "://")
	if !found {
		scheme, rest, found = brokenScheme(scheme)
	}
	rest = strings.TrimLeft(rest, "/")
	host, more := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host = rest[:i]
		if rest[i:] != "/" {
			more = "/…"
		}
	}
	u, err := url.Parse("http://" + host)
	if err != nil || u.User != nil || u.Hostname() == "" {
		return ""
	}
	address := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || address != nil && (address.IsLoopback() || address.IsPrivate())
	switch {
	case found:
		given := strings.ToLower(scheme)
		scheme = Word(given, []string{"http", "https"})
		if scheme == "" || Distance(given, scheme) > 1 {
			return ""
		}
	case local:
		scheme = "http"
	case address != nil, u.Port() != "", strings.Contains(u.Hostname(), "."):
		scheme = "https"
	default:
		return ""
	}
	return scheme + "://" + host + more
}

// brokenScheme takes a URL apart whose scheme lacks a colon or a slash, such as
// http:/127.0.0.1 and http//127.0.0.1; found is false where there is no scheme.
func brokenScheme(raw string) (scheme, rest string, found bool) {
	if at := strings.IndexAny(raw, ":/"); at > 0 {
		given, behind := strings.ToLower(raw[:at]), raw[at:]
		near := Word(given, []string{"http", "https"})
		if near != "" && Distance(given, near) <= 1 && (strings.HasPrefix(behind, ":/") || strings.HasPrefix(behind, "//")) {
			return given, strings.TrimLeft(behind, ":/"), true
		}
	}
	return "", raw, false
}
