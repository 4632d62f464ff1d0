package loadgen

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/redact"
	"github.com/destkit/destkit/loadgen/internal/failure"
)

// Target is the custom destination to be loaded.
type Target struct {
	// URL of the endpoint; its path and query may be secret and are never shown
	// (spec 5.2.3).
	URL string
	// Replicas are the URLs of further processes of the same destination: connections
	// are spread over all of them. The planning calls go to URL.
	Replicas []string
	// Token is sent as Authorization: Bearer (spec 5.2.2); "" sends none.
	Token string
	// Headers are further headers of every request, by name.
	Headers map[string]string
	// Roots replace the public certificate authorities.
	Roots *x509.CertPool
	// Development is auto (or ""), on or off: whether plain http and chains that
	// do not verify are accepted. auto: on loopback and private addresses.
	Development string
}

// Transport says how the target is reached. The zero value is the client of
// this package: HTTP/1.1, connections kept.
type Transport struct {
	// Standard uses net/http instead; HTTP2 and Proxy need it and imply it.
	Standard bool
	// HTTP2 offers HTTP/2, over https only.
	HTTP2 bool
	// Proxy is the URL of an http or socks5 proxy.
	Proxy string
	// Reconnect makes a new connection for every request.
	Reconnect bool
	// Compress offers gzip and deflate as the service does.
	Compress bool
	// Timeout of a batch with its connecting, 30 s when 0; PlanningTimeout of a
	// planning call before the load, 10 s when 0.
	Timeout, PlanningTimeout time.Duration
	// Dial connects instead of a net.Dialer, address being host:port; planning calls
	// are connected by it as well.
	Dial Dial
	// MaxReply bounds the reply to a batch in bytes, as received and as decoded. When 0
	// it is 512 KiB and 4 KiB for each record of a batch, 32 MiB at the most.
	MaxReply int64
}

// Dial is net.Dialer.DialContext or something that stands for it. The end of ctx
// ends dialling.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

const (
	defaultTimeout  = 30 * time.Second
	defaultPlanning = 10 * time.Second
	defaultMaxReply = 32 << 20
)

func (t Transport) withDefaults() Transport {
	if t.Timeout <= 0 {
		t.Timeout = defaultTimeout
	}
	if t.PlanningTimeout <= 0 {
		t.PlanningTimeout = defaultPlanning
	}
	if t.MaxReply <= 0 {
		t.MaxReply = defaultMaxReply
	}
	if t.Dial == nil {
		t.Dial = new(net.Dialer).DialContext
	}
	t.Standard = t.Standard || t.HTTP2 || t.Proxy != ""
	return t
}

// endpoint is a target that was looked at: what every connection needs.
type endpoint struct {
	url       *url.URL
	address   string      // host:port
	tls       *tls.Config // nil: plain http
	lines     string      // of the head of every request, behind its first line
	head      []byte      // of every batch, up to the value of Content-Length
	header    http.Header // the same for net/http
	host      string      // a Host header that replaces that of the URL
	transport Transport
	hidden    *redact.Redactor  // what is never shown
	memory    *memory           // of all connections
	shared    http.RoundTripper // of the standard client
}

// newEndpoint checks a target and prepares the head of its requests.
func newEndpoint(t Target, tr Transport) (*endpoint, error) {
	u, err := url.Parse(t.URL)
	switch {
	case err != nil:
		return nil, failure.Usagef("the URL of the endpoint does not parse: check the escapes, the port and the brackets")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, failure.Usagef("the URL of the endpoint must start with https:// (or http:// in development)")
	case u.Hostname() == "":
		return nil, failure.Usagef("the URL of the endpoint has no host: destkit load https://HOST/PATH")
	}
	port := u.Port()
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535) {
		return nil, failure.Usagef("the URL of the endpoint has the port %q: use 1 to 65535", port)
	}
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	e := &endpoint{url: u, address: net.JoinHostPort(u.Hostname(), port), transport: tr.withDefaults(), host: u.Host,
		hidden: redact.New(), memory: &memory{most: mostReplies}}
	e.seed(t)
	development := t.Development == "on" || (t.Development == "" || t.Development == "auto") && privateHost(u.Hostname())
	switch {
	case t.Development != "" && t.Development != "auto" && t.Development != "on" && t.Development != "off":
		return nil, failure.Usagef("development %q is none of auto, on and off", t.Development)
	case u.Scheme == "https":
		// spec 5.2.1: a chain that does not verify is for development only.
		e.tls = &tls.Config{
			ServerName: u.Hostname(), RootCAs: t.Roots, InsecureSkipVerify: development && t.Roots == nil,
			NextProtos: []string{"http/1.1"}, ClientSessionCache: tls.NewLRUClientSessionCache(0),
		}
	case !development:
		return nil, failure.Usagef("the endpoint is plain http and its address is public: the service reaches destinations over https only (--development on sends anyway)")
	}
	if e.transport.HTTP2 && e.tls == nil {
		return nil, failure.Usagef("HTTP/2 is offered over https only, and the URL is http://")
	}
	return e, e.setHeaders(t)
}

// privateHost tells loopback and private addresses and names that never leave
// the machine.
func privateHost(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast())
}

// setHeaders makes the head of a request, once for all.
func (e *endpoint) setHeaders(t Target) error {
	h := http.Header{}
	h.Set("User-Agent", "destkit")
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "*/*")
	h.Set("Accept-Encoding", "identity")
	if e.transport.Compress {
		h.Set("Accept-Encoding", "gzip;q=1.0,deflate;q=0.6,identity;q=0.3")
	}
	if t.Token != "" {
		h.Set("Authorization", "Bearer "+t.Token)
	}
	for name, value := range t.Headers {
		switch {
		case !fieldName([]byte(name)) || !fieldValue([]byte(value)):
			return failure.Usagef("the header %q has a name or a value that HTTP does not allow", name)
		case strings.EqualFold(name, "Content-Length"), strings.EqualFold(name, "Transfer-Encoding"), strings.EqualFold(name, "Connection"):
			return failure.Usagef("the header %q is set by the client itself", name)
		case strings.EqualFold(name, "Host"):
			e.host = value
			continue
		}
		h.Set(name, value)
	}
	if !fieldValue([]byte(t.Token)) {
		return failure.Usagef("the token holds a character that no header may have")
	}
	e.header = h
	var b strings.Builder
	b.WriteString("Host: " + e.host + "\r\n")
	if e.transport.Reconnect {
		b.WriteString("Connection: close\r\n")
	}
	if err := h.Write(&b); err != nil {
		return failure.Usagef("the headers cannot be written: %v", err)
	}
	e.lines = b.String()
	e.head = []byte("POST " + e.url.RequestURI() + " HTTP/1.1\r\n" + e.lines + "Content-Length: ")
	return nil
}

// shown is the target as reports name it: no path, no query, no user.
func (e *endpoint) shown() string { return e.url.Scheme + "://" + e.url.Host }

// seed tells the redactor what of a target is secret: the token, the values of
// headers, and all of the URL beyond its host.
func (e *endpoint) seed(t Target) {
	e.hidden.Add(t.Token, "$DESTKIT_TOKEN")
	for _, value := range t.Headers {
		e.hidden.Add(value, "$DESTKIT_HEADER")
		if _, rest, ok := strings.Cut(value, " "); ok {
			e.hidden.Add(strings.TrimSpace(rest), "$DESTKIT_HEADER")
		}
	}
	e.seedURL(e.url, "$DESTKIT_URL")
}

// seedURL tells the redactor what of a URL is secret: all beyond its host. name is what
// messages call the URL.
func (e *endpoint) seedURL(u *url.URL, name string) {
	if u.User != nil {
		password, _ := u.User.Password()
		e.hidden.Add(password, name+"_PASSWORD")
		e.hidden.Add(u.User.Username(), name+"_USER")
	}
	if rest := u.RequestURI(); len(rest) >= longSecret {
		e.hidden.Add(rest, name+"_PATH")
	}
	for _, part := range strings.FieldsFunc(u.EscapedPath()+"&"+u.RawQuery, func(r rune) bool { return r == '/' || r == '&' }) {
		if _, value, ok := strings.Cut(part, "="); ok {
			part = value
		}
		plain, err := url.QueryUnescape(part)
		for _, text := range []string{part, plain} {
			if err == nil && len(text) >= longSecret && !redact.PlainWord(text) {
				e.hidden.Add(text, name+"_PATH")
			}
		}
	}
}

// longSecret is the length in bytes from which a part of a URL counts as a secret:
// shorter ones are words, mostly.
const longSecret = 8

// redact takes secrets out of a text that came from the target.
func (e *endpoint) redact(text string) string { return e.hidden.String(text) }

// hide takes secrets out of an error that names what the target has.
func (e *endpoint) hide(err error) error {
	var usage *failure.UsageError
	if errors.As(err, &usage) {
		return &failure.UsageError{Message: e.redact(err.Error())}
	}
	return err // discover has redacted what the target said
}
