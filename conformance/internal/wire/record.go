package wire

import (
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/destkit/destkit/internal/foreign"
)

// What is recorded of a body, in bytes.
const (
	recordedRequest  = 1 << 20
	recordedResponse = 256 << 10
)

// Exchange is the record of the call, redacted; it is made when it is asked for,
// since most calls are fine and no one asks.
func (r *Reply) Exchange() Exchange {
	if r.record == nil {
		return Exchange{}
	}
	return r.record()
}

// keep lets the reply tell of its call. q is nil when the call could not be
// prepared.
func (c *Client) keep(call *Call, q *request, r *Reply) {
	number := int(c.numbers.Add(1))
	r.record = sync.OnceValue(func() Exchange {
		e := Exchange{
			ID: number, Check: call.Check, RPC: c.redact.String(call.RPC), RPCID: c.redact.String(call.ID),
			Started: r.Started, DurationMS: float64(r.Total.Microseconds()) / 1000,
			ReusedConnection: r.Reused, Retried: r.Retried,
		}
		if q != nil {
			e.Request = Message{Method: q.method, URL: c.showURL(q), OtherURL: q.changed, Header: c.redactHeader(q.header)}
		}
		e.Request.Body = recordBody(c.redact, call.Body, int64(len(call.Body)), recordedRequest)
		c.recordEnd(&e, r, c.redactHeader(r.RawHeaders), recordedResponse)
		return e
	})
}

// recordEnd records the response, with its header as shown and up to so many bytes of
// its body, and what ended the exchange without one.
func (c *Client) recordEnd(e *Exchange, r *Reply, shown []Header, most int) {
	if r.Status > 0 {
		e.Response = &Response{Proto: r.Proto, Status: r.Status, Header: shown, Body: c.recordUpTo(r, most)}
	}
	if r.Err != nil {
		e.Kind = string(r.Kind)
		e.Error = c.redact.String(e.Kind + ": " + r.Err.Error())
	}
}

func (c *Client) redactHeader(header []Header) []Header {
	shown := make([]Header, len(header))
	for i, h := range header {
		shown[i] = Header{c.redact.String(h.Name), c.redact.Header(h.Value)}
	}
	return shown
}

// recordUpTo records the decoded body. A body that cannot be decoded is
// shown as far as it could be, or when it is text: a secret inside compressed
// bytes would not be found by the redactor.
func (c *Client) recordUpTo(r *Reply, most int) Body {
	body, size := r.Body, max(int64(len(r.Raw)), int64(len(r.Body)))
	if r.Err != nil && len(contentCodings(r.Header["Content-Encoding"])) > 0 && !utf8.Valid(r.Raw) {
		body = r.partial
		size = max(size, int64(len(body))+1)
	}
	if r.Kind == KindTooLarge || r.Kind == KindUnread {
		size = max(r.Received, int64(len(body))+1)
	}
	return recordBody(c.redact, body, size, most)
}

// wholeRunes drops a rune that the cut left incomplete.
func wholeRunes(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if tail := b[len(b)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// showURL gives the URL for the record: spec 5.2.3 allows secrets in it, so one
// that carries a query, user information or a known secret stands as a name.
func (c *Client) showURL(q *request) string {
	if !q.changed {
		if c.hidden() {
			return urlPlaceholder
		}
		return c.opts.URL
	}
	raw := q.call.URL
	if u, err := url.Parse(raw); err == nil && u.User != nil {
		if scheme, rest, ok := strings.Cut(raw, "://"); ok {
			_, rest, _ = strings.Cut(rest, "@")
			raw = scheme + "://" + rest
		}
	}
	return c.redact.String(raw)
}

func (c *Client) hidden() bool {
	return c.hideURL || c.redact.String(c.opts.URL) != c.opts.URL
}

// Names that stand for secrets in records.
const (
	urlPlaceholder   = "$DESTKIT_URL"
	tokenPlaceholder = "$DESTKIT_TOKEN"
)

// seedRedactor adds every secret of the options.
func (c *Client) seedRedactor() {
	c.redact.Add(c.opts.Token, tokenPlaceholder)
	for name, value := range c.opts.Headers {
		if !foreign.PlainWord(value) {
			c.redact.Add(value, "$DESTKIT_HEADER_"+shellName(name))
		}
		// A header may carry a scheme; its second half is the secret.
		if _, rest, ok := strings.Cut(value, " "); ok && strings.EqualFold(name, "Authorization") {
			c.redact.Add(strings.TrimSpace(rest), "$DESTKIT_HEADER_"+shellName(name))
		}
	}
	u, err := url.Parse(c.opts.URL)
	if err != nil {
		return
	}
	if u.User != nil {
		c.hideURL = true
		password, _ := u.User.Password()
		c.redact.Add(password, "$DESTKIT_URL_PASSWORD")
		c.redact.Add(u.User.Username(), "$DESTKIT_URL_USER")
	}
	if u.RawQuery != "" {
		c.hideURL = true
		c.seedQuery(u.RawQuery)
	}
	if c.hideURL {
		c.redact.Add(c.opts.URL, urlPlaceholder)
	}
}

// seedQuery adds the values of a query, as given and decoded. Words of the
// protocol itself stay readable: hiding "true" would hide every reply.
func (c *Client) seedQuery(query string) {
	for i, part := range strings.Split(query, "&") {
		name, value, found := strings.Cut(part, "=")
		if !found {
			name, value = strconv.Itoa(i), name
		}
		placeholder := "$DESTKIT_QUERY_" + shellName(name)
		decoded, err := url.QueryUnescape(value)
		if err != nil {
			decoded = value
		}
		for _, secret := range []string{value, decoded} {
			if len(secret) >= foreign.ShortSecret && !foreign.PlainWord(secret) && !hidden(secret) {
				c.redact.Add(secret, placeholder)
			}
		}
	}
}

// shellName makes a header or parameter name part of a variable name.
func shellName(s string) string {
	name := []byte(strings.ToUpper(s))
	for i, b := range name {
		if (b < 'A' || b > 'Z') && (b < '0' || b > '9') {
			name[i] = '_'
		}
	}
	return string(name[:min(len(name), 40)])
}

// Redactor takes secrets out of whatever is recorded.
type Redactor = foreign.Redactor

// NewRedactor gives a redactor without secrets.
func NewRedactor() *Redactor { return foreign.New() }

// RequestBody and ResponseBody give a whole body as an exchange keeps it:
// redacted, and cut where it is long.
func RequestBody(r *Redactor, body []byte) Body {
	return recordBody(r, body, int64(len(body)), recordedRequest)
}

// ResponseBody is like RequestBody for the other half.
func ResponseBody(r *Redactor, body []byte) Body {
	return recordBody(r, body, int64(len(body)), recordedResponse)
}

// recordBody redacts and cuts one body of size bytes.
func recordBody(r *Redactor, body []byte, size int64, limit int) Body {
	shown := r.Cut(body, limit)
	b := Body{Size: size, Truncated: size > int64(len(body)) || len(body) > limit}
	if b.Truncated {
		shown = wholeRunes(shown)
	}
	if utf8.Valid(shown) {
		b.Text = string(shown)
	} else {
		b.Base64 = base64.StdEncoding.EncodeToString(shown)
	}
	return b
}
