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
)

// DefaultTimeout bounds a call that names none.
const DefaultTimeout = 30 * time.Second

// defaultAcceptEncoding is what the service offers (published protocol text).
const defaultAcceptEncoding = "gzip;q=1.0,deflate;q=0.6,identity;q=0.3"

// Call is one request. The zero value is a POST of an empty body to the
// configured URL with the service's own header set.
type Call struct {
	// Check and RPC name the check and the JSON-RPC method, ID the JSON-RPC id;
	// all three are for the record only.
	Check, RPC, ID string
	// HTTPMethod is POST when empty.
	HTTPMethod string
	// URL is the configured one when empty.
	URL string
	// Header overrides the defaults by name, whatever its case; a name without
	// values removes the header. Several values are several lines.
	Header http.Header
	Body   []byte
	// Chunked sends the body in at least two chunks instead of with a length.
	Chunked bool
	// ExpectContinue sends Expect and holds the body back until the endpoint
	// answers 100, at most continueWait.
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

// Detour leads a call elsewhere than its URL says: Plain sends plain HTTP whatever the
// scheme; Address dials this host:port, the Host header stays.
type Detour struct {
	Plain   bool
	Address string
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
	offered string // the Accept-Encoding that is sent, "" when none
	sent    bool   // an Accept-Encoding is sent at all
}

// prepare resolves the target and writes the head by hand: the header set and
// its order are those that the service sends (published protocol text).
func (c *Client) prepare(call *Call) (*request, error) {
	q := &request{call: call, method: call.HTTPMethod, target: c.target}
	q.method = cmp.Or(q.method, http.MethodPost)
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
	if call.Address != "" {
		q.target.addr = call.Address
	}
	q.header = c.defaultHeader(q)
	if err := q.override(call.Header); err != nil {
		return nil, err
	}
	q.writeHead()
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
	// spec 5.2.2: the token of the connection, on every call. User information
	// in the URL stands in for it only where there is no token.
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

// override applies the call's own header lines and checks all of them.
func (q *request) override(header http.Header) error {
	for _, name := range slices.Sorted(maps.Keys(header)) {
		q.header = setHeader(q.header, name, header[name])
	}
	for _, h := range q.header {
		if err := checkHeader(h); err != nil {
			return err
		}
		if strings.EqualFold(h.Name, "Accept-Encoding") {
			q.sent = true
			q.offered += "," + h.Value
		}
	}
	return nil
}

// setHeader replaces the lines of that name in place, or appends them.
func setHeader(h []Header, name string, values []string) []Header {
	at := slices.IndexFunc(h, func(x Header) bool { return strings.EqualFold(x.Name, name) })
	h = slices.DeleteFunc(h, func(x Header) bool { return strings.EqualFold(x.Name, name) })
	if at < 0 || at > len(h) {
		at = len(h)
	}
	lines := make([]Header, len(values))
	for i, v := range values {
		lines[i] = Header{name, v}
	}
	return slices.Insert(h, at, lines...)
}

// checkHeader refuses what would break the head: a bad name, a line break.
// The value is not printed: it may be a secret.
func checkHeader(h Header) error {
	if !isToken(h.Name) {
		return fmt.Errorf("check header name %q: not a token", h.Name)
	}
	if i := controlIn(h.Value); i >= 0 {
		return fmt.Errorf("check header %s: control character at byte %d of its value", textproto.CanonicalMIMEHeaderKey(h.Name), i)
	}
	return nil
}

func (q *request) writeHead() {
	var b strings.Builder
	b.WriteString(q.method + " " + q.target.path + " HTTP/1.1\r\n")
	for _, h := range q.header {
		b.WriteString(h.Name + ": " + h.Value + "\r\n")
	}
	b.WriteString("\r\n")
	q.head = []byte(b.String())
}

// isToken reports whether s is a token of RFC 9110 5.6.2.
func isToken(s string) bool { return s != "" && strings.Trim(s, tokenBytes) == "" }

const tokenBytes = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

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
