package suggest

import (
	"net"
	"net/url"
	"strings"
)

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
