package destsim

import (
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"
)

// authorised reports whether a call carries the token and the URL secret that
// are configured (spec 5.2.2, 5.2.3).
func (s *Sim) authorised(r *http.Request) bool {
	token := *s.token.Load()
	return (token == "" || tokenMatches(token, r.Header["Authorization"])) && s.config.URLSecret.matches(r.URL)
}

// tokenMatches wants exactly one Authorization header with exactly the token.
func tokenMatches(token string, headers []string) bool {
	if token == "" {
		return true
	}
	if len(headers) != 1 {
		return false
	}
	given, ok := strings.CutPrefix(headers[0], "Bearer ")
	return ok && same(given, token)
}

// matches looks for the secret. A parameter that is repeated must be right
// every time, or an attacker could hide a guess behind another.
func (u URLSecret) matches(at *url.URL) bool {
	switch {
	case u.Query != "":
		values := at.Query()[u.Query]
		for _, v := range values {
			if !same(v, u.Value) {
				return false
			}
		}
		return len(values) > 0
	case u.Path != nil:
		segments := strings.Split(strings.TrimPrefix(at.EscapedPath(), "/"), "/")
		if *u.Path >= len(segments) {
			return false
		}
		segment, err := url.PathUnescape(segments[*u.Path])
		return err == nil && same(segment, u.Value)
	}
	return true
}

// same compares in constant time.
func same(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}
