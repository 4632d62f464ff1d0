package wire

import (
	"cmp"
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

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/reach"
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

// Transport sets how the target is reached. The zero value is the client of
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
	// are connected by it as well. The end of ctx ends dialling.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// MaxReply bounds the reply to a batch in bytes, as received and as decoded. When 0
	// it is 512 KiB and 4 KiB for each record of a batch, 32 MiB at the most.
	MaxReply int64
}

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

// Endpoint is a target that was looked at: the data that every connection needs.
type Endpoint struct {
	URL       *url.URL
	address   string      // host:port
	tls       *tls.Config // nil: plain http
	Lines     string      // of the head of every request, behind its first line
	Head      []byte      // of every batch, up to the value of Content-Length
	Header    http.Header // the same for net/http
	host      string      // a Host header that replaces that of the URL
	Transport Transport
	Hidden    *foreign.Redactor // secrets, never shown
	memory    *memory           // of all connections
	Shared    http.RoundTripper // of the standard client
}

// NewEndpoint checks a target and prepares the head of its requests.
func NewEndpoint(t Target, tr Transport) (*Endpoint, error) {
	u, err := url.Parse(t.URL)
	switch {
	case err != nil:
		return nil, Usagef("the URL of the endpoint does not parse: check the escapes, the port and the brackets")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, Usagef("the URL of the endpoint must start with https:// (or http:// in development)")
	case u.Hostname() == "":
		return nil, Usagef("the URL of the endpoint has no host: destkit load https://HOST/PATH")
	}
	port := u.Port()
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535) {
		return nil, Usagef("the URL of the endpoint has the port %q: use 1 to 65535", port)
	}
	port = cmp.Or(port, map[string]string{"http": "80", "https": "443"}[u.Scheme])
	e := &Endpoint{URL: u, address: net.JoinHostPort(u.Hostname(), port), Transport: tr.withDefaults(), host: u.Host,
		Hidden: foreign.New(), memory: &memory{most: mostReplies}}
	e.seed(t)
	development := t.Development == "on" || (t.Development == "" || t.Development == "auto") && reach.PrivateHost(u.Hostname())
	switch {
	case t.Development != "" && t.Development != "auto" && t.Development != "on" && t.Development != "off":
		return nil, Usagef("development %q is none of auto, on and off", t.Development)
	case u.Scheme == "https":
		// spec 5.2.1: a chain that does not verify is for development only.
		e.tls = &tls.Config{
			ServerName: u.Hostname(), RootCAs: t.Roots, InsecureSkipVerify: development && t.Roots == nil,
			NextProtos: []string{"http/1.1"}, ClientSessionCache: tls.NewLRUClientSessionCache(0),
		}
	case !development:
		return nil, Usagef("the endpoint is plain http and its address is public: the service reaches destinations over https only (--development on sends anyway)")
	}
	if e.Transport.HTTP2 && e.tls == nil {
		return nil, Usagef("HTTP/2 is offered over https only, and the URL is http://")
	}
	return e, e.setHeaders(t)
}

// setHeaders makes the head of a request, once for all.
func (e *Endpoint) setHeaders(t Target) error {
	h := http.Header{}
	h.Set("User-Agent", "destkit")
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "*/*")
	h.Set("Accept-Encoding", "identity")
	if e.Transport.Compress {
		h.Set("Accept-Encoding", "gzip;q=1.0,deflate;q=0.6,identity;q=0.3")
	}
	if t.Token != "" {
		h.Set("Authorization", "Bearer "+t.Token)
	}
	for name, value := range t.Headers {
		switch {
		case !fieldName([]byte(name)) || !fieldValue([]byte(value)):
			return Usagef("the header %q has a name or a value that HTTP does not allow", name)
		case strings.EqualFold(name, "Content-Length"), strings.EqualFold(name, "Transfer-Encoding"), strings.EqualFold(name, "Connection"):
			return Usagef("the header %q is set by the client itself", name)
		case strings.EqualFold(name, "Host"):
			e.host = value
			continue
		}
		h.Set(name, value)
	}
	if !fieldValue([]byte(t.Token)) {
		return Usagef("the token holds a character that no header may have")
	}
	e.Header = h
	var b strings.Builder
	b.WriteString("Host: " + e.host + "\r\n")
	if e.Transport.Reconnect {
		b.WriteString("Connection: close\r\n")
	}
	if err := h.Write(&b); err != nil {
		return Usagef("the headers cannot be written: %v", err)
	}
	e.Lines = b.String()
	e.Head = []byte("POST " + e.URL.RequestURI() + " HTTP/1.1\r\n" + e.Lines + "Content-Length: ")
	return nil
}

// Shown is the target as reports name it: no path, no query, no user.
func (e *Endpoint) Shown() string { return e.URL.Scheme + "://" + e.URL.Host }

// seed gives the redactor the secrets of a target: the token, the values of
// headers, and what may be secret in the URL.
func (e *Endpoint) seed(t Target) {
	e.Hidden.Add(t.Token, "$DESTKIT_TOKEN")
	for _, value := range t.Headers {
		e.Hidden.Add(value, "$DESTKIT_HEADER")
		if _, rest, ok := strings.Cut(value, " "); ok {
			e.Hidden.Add(strings.TrimSpace(rest), "$DESTKIT_HEADER")
		}
	}
	e.Hidden.AddURL(e.URL, "$DESTKIT_")
}

// Redact takes secrets out of a text that came from the target.
func (e *Endpoint) Redact(text string) string { return e.Hidden.String(text) }

// Hide takes secrets out of an error that names what the target has.
func (e *Endpoint) Hide(err error) error {
	if _, ok := errors.AsType[*UsageError](err); ok {
		return &UsageError{Message: e.Redact(err.Error())}
	}
	return err // discover has redacted what the target said
}

// Replicas makes the endpoints of the further processes. They share what counts the
// memory of replies and what hides secrets.
func (e *Endpoint) Replicas(t Target) ([]*Endpoint, error) {
	var all []*Endpoint
	for _, url := range t.Replicas {
		t.URL = url
		r, err := NewEndpoint(t, e.Transport)
		if err != nil {
			// The messages are about the URL of the endpoint.
			return nil, Usagef("replica: %s", strings.ReplaceAll(err.Error(), "destkit load https", "--replica https"))
		}
		r.memory, r.Hidden = e.memory, e.Hidden
		e.Hidden.AddURL(r.URL, "$DESTKIT_")
		if r.Transport.Standard {
			r.Shared, _ = r.RoundTripper()
		}
		all = append(all, r)
	}
	return all, nil
}
