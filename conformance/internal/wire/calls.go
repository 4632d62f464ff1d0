package wire

import (
	"bytes"
	"net/http"
	"strings"
)

// Calls tells the calls of a destination from what else goes to the same host, such as a
// health check: a proxy passes on any path.
type Calls struct {
	own   string          // the path of the endpoint
	paths map[string]bool // where calls go
}

// mostPaths bounds how many paths of callers are known.
const mostPaths = 100

// NewCalls knows the calls of the endpoint at a URL.
func NewCalls(url string, secrets *Redactor) *Calls {
	c := &Calls{own: "/", paths: map[string]bool{}}
	c.own = c.path(url)
	c.paths[c.own], c.paths[secrets.String(c.own)] = true, true // a recording has it redacted
	return c
}

// Has reports whether an exchange is meant as a call: its body speaks of JSON-RPC, or it
// goes where calls go, by POST or with the method in its query. A path where one call
// went is known for the next ones.
func (c *Calls) Has(s *Sight) bool {
	path := c.path(s.URL)
	known := c.paths[path]
	switch {
	case known && s.Method == http.MethodPost:
		return true
	case speaksRPC(s.RequestBody):
		if s.Method == http.MethodPost && len(c.paths) < mostPaths {
			c.paths[path] = true
		}
		return true
	}
	return known && strings.Contains(strings.ReplaceAll(s.Target, "?", "&"), "&method=")
}

// path is that of a URL, as it was given. A URL that is a secret as a whole is that of
// the endpoint.
func (c *Calls) path(url string) string {
	url, _, _ = strings.Cut(url, "#")
	url, _, _ = strings.Cut(url, "?")
	if strings.HasPrefix(url, "$") {
		return c.own
	}
	_, rest, found := strings.Cut(url, "://")
	if !found {
		return url
	}
	if at := strings.IndexByte(rest, '/'); at >= 0 {
		return rest[at:]
	}
	return "/"
}

// speaksRPC reports whether a body has the members of a call, whole or broken.
func speaksRPC(body []byte) bool {
	return bytes.Contains(body, []byte(`"method"`)) &&
		(bytes.Contains(body, []byte(`"jsonrpc"`)) || bytes.Contains(body, []byte(`"params"`)))
}
