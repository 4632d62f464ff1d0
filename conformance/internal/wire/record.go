package wire

import (
	"encoding/base64"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/destkit/destkit/internal/foreign"
)

// The recorded part of a body, in bytes, and the replacements of secrets.
const (
	recordedRequest  = 1 << 20
	recordedResponse = 256 << 10

	urlPlaceholder   = "$DESTKIT_URL"
	tokenPlaceholder = "$DESTKIT_TOKEN"
)

// Exchange is the redacted record of the call; it is made on request.
func (r *Reply) Exchange() Exchange {
	if r.record == nil {
		return Exchange{}
	}
	return r.record()
}

// keep attaches its call to a reply; q is nil for one that could not be prepared.
func (c *Client) keep(call *Call, q *request, r *Reply) {
	number := int(c.numbers.Add(1))
	r.record = sync.OnceValue(func() Exchange {
		e := Exchange{
			ID: number, Check: call.Check, RPC: c.redact.String(call.RPC), RPCID: c.redact.String(call.ID),
			Started: r.Started, DurationMS: milliseconds(r.Total), ReusedConnection: r.Reused, Retried: r.Retried,
		}
		if q != nil {
			e.Request = Message{Method: q.method, URL: c.showURL(q), OtherURL: q.changed, Header: c.redactHeader(q.header)}
		}
		e.Request.Body = recordBody(c.redact, call.Body, int64(len(call.Body)), recordedRequest)
		c.recordEnd(&e, r, c.redactHeader(r.RawHeaders), recordedResponse)
		return e
	})
}

// recordEnd records what ended the exchange, and the response with its header as shown and up
// to so many bytes of its decoded body. One that cannot be decoded to its end is shown up to
// there, or when it is text: the redactor finds no secret inside compressed bytes.
func (c *Client) recordEnd(e *Exchange, r *Reply, shown []Header, most int) {
	if r.Err != nil {
		e.Kind = string(r.Kind)
		e.Error = c.redact.String(e.Kind + ": " + r.Err.Error())
	}
	if r.Status == 0 {
		return
	}
	body, size := r.Body, max(int64(len(r.Raw)), int64(len(r.Body)))
	if r.Err != nil && len(contentCodings(r.Header["Content-Encoding"])) > 0 && !utf8.Valid(r.Raw) {
		body = r.partial
		size = max(size, int64(len(body))+1)
	}
	if r.Kind == KindTooLarge || r.Kind == KindUnread {
		size = max(r.Received, int64(len(body))+1)
	}
	e.Response = &Response{Proto: r.Proto, Status: r.Status, Header: shown, Body: recordBody(c.redact, body, size, most)}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (c *Client) redactHeader(header []Header) []Header {
	shown := make([]Header, len(header))
	for i, h := range header {
		shown[i] = Header{c.redact.String(h.Name), c.redact.Header(h.Value)}
	}
	return shown
}

// wholeRunes drops a rune that the cut left incomplete.
func wholeRunes(b []byte) []byte {
	for at := len(b) - 1; at >= max(0, len(b)-utf8.UTFMax); at-- {
		if utf8.RuneStart(b[at]) && !utf8.FullRune(b[at:]) {
			return b[:at]
		}
	}
	return b
}

// showURL gives the URL for the record, that of the options as a name if it holds a secret.
func (c *Client) showURL(q *request) string {
	if !q.changed {
		if c.redact.String(c.opts.URL) != c.opts.URL {
			return urlPlaceholder
		}
		return c.opts.URL
	}
	raw := q.call.URL
	if q.target.user != "" {
		scheme, rest, _ := strings.Cut(raw, "://")
		_, rest, _ = strings.Cut(rest, "@")
		raw = scheme + "://" + rest
	}
	return hideQuery(c.redact.String(raw), func(value string) bool { // not what was changed
		return strings.Contains(c.opts.URL, "="+value)
	})
}

// seedRedactor adds every secret of the options.
func (c *Client) seedRedactor() {
	c.redact.Add(c.opts.Token, tokenPlaceholder)
	for name, value := range c.opts.Headers {
		if !foreign.PlainWord(value) {
			c.redact.Add(value, "$DESTKIT_HEADER_"+foreign.VariableName(name))
		}
		// A header may carry a scheme; its second half is the secret.
		if _, rest, ok := strings.Cut(value, " "); ok && strings.EqualFold(name, "Authorization") {
			c.redact.Add(strings.TrimSpace(rest), "$DESTKIT_HEADER_"+foreign.VariableName(name))
		}
	}
	u, err := url.Parse(c.opts.URL)
	if err != nil {
		return
	}
	if c.redact.AddURLParts(u, "$DESTKIT_") > 0 || u.RawQuery != "" {
		c.redact.Add(c.opts.URL, urlPlaceholder)
	}
}

// Redactor takes secrets out of whatever is recorded.
type Redactor = foreign.Redactor

// NewRedactor gives a redactor without secrets.
func NewRedactor() *Redactor { return foreign.New() }

// RequestBody is a body as an exchange keeps it: redacted, and cut where it is long.
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
