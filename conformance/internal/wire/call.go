package wire

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/lists"
)

const (
	DefaultTimeout        = 30 * time.Second                          // of a call that names none
	defaultAcceptEncoding = "gzip;q=1.0,deflate;q=0.6,identity;q=0.3" // of the service (published protocol text)
)

// Call is one request. The zero value is a POST of nothing to the configured URL.
type Call struct {
	// Check, RPC (the JSON-RPC method) and ID (the JSON-RPC id) are for the record only.
	Check, RPC, ID string
	// HTTPMethod is POST when empty.
	HTTPMethod string
	// URL is the configured one when empty.
	URL string
	// Header overrides the defaults by name, one line for each value; none removes the header.
	Header http.Header
	Body   []byte
	// Chunked sends the body in at least two chunks instead of with a length.
	Chunked bool
	// ExpectContinue sends Expect and holds the body back for the answer 100.
	ExpectContinue bool
	// Timeout of the exchange, dialling included; DefaultTimeout when zero.
	Timeout time.Duration
	// FreshConn dials a new connection and closes it afterwards.
	FreshConn bool
	// Conn carries the call over exactly this connection, without fallback.
	Conn *Conn
	Detour
	Cut
	// Records is the number of records carried, for the limiter.
	Records int
}

// Detour leads a call elsewhere than to its URL: Plain sends plain HTTP whatever the scheme;
// Address dials this host:port, the Host header stays. Once: no repeat on a fresh connection, which could meet its own effect.
type Detour struct {
	Plain, Once bool
	Address     string
}

// Cut breaks a call off. CutAfterRequest closes the connection once the request is
// written, CutResponseAfter after that many bytes of the response, head included,
// CutRequestAfter after that many bytes of the body; 0: never.
type Cut struct {
	CutAfterRequest                   bool
	CutResponseAfter, CutRequestAfter int
}

// request is a call made ready to be written.
type request struct {
	call    *Call
	method  string
	target  target
	changed bool // not the configured URL
	header  []Header
	head    []byte
}

// prepare resolves the target and writes the head by hand: the header set and
// its order are those that the service sends (published protocol text).
func (c *Client) prepare(call *Call) (*request, error) {
	q := &request{call: call, method: cmp.Or(call.HTTPMethod, http.MethodPost), target: c.target}
	if !isToken(q.method) {
		return nil, fmt.Errorf("check method %q: not a token", q.method)
	}
	if call.URL != "" && call.URL != c.opts.URL {
		other, err := parseTarget(call.URL)
		if err != nil {
			return nil, err
		}
		q.target, q.changed = other, true
	}
	if call.Plain {
		q.target.tls = false
	}
	q.target.addr = cmp.Or(call.Address, q.target.addr)
	q.header = c.defaultHeader(q)
	for _, name := range slices.Sorted(maps.Keys(call.Header)) {
		q.header = setHeader(q.header, name, call.Header[name])
	}
	q.head = fmt.Appendf(nil, "%s %s HTTP/1.1\r\n", q.method, q.target.path)
	for _, h := range q.header {
		if !isToken(h.Name) {
			return nil, fmt.Errorf("check header name %q: not a token", h.Name)
		}
		if i := controlIn(h.Value); i >= 0 { // the value is not printed: it may be a secret
			return nil, fmt.Errorf("check header %s: control character at byte %d of its value", textproto.CanonicalMIMEHeaderKey(h.Name), i)
		}
		q.head = fmt.Appendf(q.head, "%s: %s\r\n", h.Name, h.Value)
	}
	q.head = append(q.head, "\r\n"...)
	return q, nil
}

func (c *Client) defaultHeader(q *request) []Header {
	h := []Header{
		{"User-Agent", c.opts.UserAgent},
		{"Content-Type", "application/json"},
		{"Accept-Encoding", defaultAcceptEncoding},
		{"Accept", "*/*"},
		{"Connection", "keep-alive"},
		{"Keep-Alive", "30"},
		{"Host", q.target.host},
	}
	switch {
	case q.call.Chunked:
		h = append(h, Header{"Transfer-Encoding", "chunked"})
	case len(q.call.Body) > 0 || q.method == http.MethodPost || q.method == http.MethodPut || q.method == http.MethodPatch:
		h = append(h, Header{"Content-Length", strconv.Itoa(len(q.call.Body))})
	}
	if q.call.ExpectContinue {
		h = append(h, Header{"Expect", "100-continue"})
	}
	// The token, or the user information in the URL where there is none (spec 5.2.2).
	if c.opts.Token != "" {
		h = append(h, Header{"Authorization", "Bearer " + c.opts.Token})
	} else if q.target.user != "" {
		h = append(h, Header{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(q.target.user))})
	}
	for _, name := range slices.Sorted(maps.Keys(c.opts.Headers)) {
		h = setHeader(h, name, []string{c.opts.Headers[name]})
	}
	return h
}

// setHeader replaces the lines of that name in place, or appends them.
func setHeader(h []Header, name string, values []string) []Header {
	at := slices.IndexFunc(h, func(x Header) bool { return strings.EqualFold(x.Name, name) })
	h = slices.DeleteFunc(h, func(x Header) bool { return strings.EqualFold(x.Name, name) })
	if at < 0 {
		at = len(h)
	}
	return slices.Insert(h, at, lists.Of(values, func(v string) Header { return Header{name, v} })...)
}

// isToken reports whether s is a token of RFC 9110 5.6.2.
func isToken(s string) bool { return s != "" && strings.Trim(s, tokenBytes) == "" }

const tokenBytes = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// Calls separates the calls of a destination from other traffic to the same host.
type Calls struct {
	own   string          // the path of the endpoint
	paths map[string]bool // where calls go, 100 at most
}

// NewCalls knows the calls of the endpoint at a URL.
func NewCalls(url string, secrets *Redactor) *Calls {
	c := &Calls{own: "/"}
	c.own = c.path(url)
	c.paths = map[string]bool{c.own: true, secrets.String(c.own): true} // a recording has it redacted
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
		if s.Method == http.MethodPost && len(c.paths) < 100 {
			c.paths[path] = true
		}
		return true
	}
	return known && strings.Contains(strings.ReplaceAll(s.Target, "?", "&"), "&method=")
}

// path is that of a URL as it was given; a URL that is secret as a whole is the endpoint's.
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
	_, path, _ := strings.Cut(rest, "/")
	return "/" + path
}

// speaksRPC reports whether a body has the members of a call, whole or broken.
func speaksRPC(body []byte) bool {
	return bytes.Contains(body, []byte(`"method"`)) &&
		(bytes.Contains(body, []byte(`"jsonrpc"`)) || bytes.Contains(body, []byte(`"params"`)))
}
