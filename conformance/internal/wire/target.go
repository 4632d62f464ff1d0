package wire

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// target is where a call goes. The path holds the query too, as it was given.
type target struct {
	tls  bool
	addr string // host:port to dial
	name string // host name for SNI and certificates
	host string // the Host header
	path string // request target, verbatim
	user string // decoded user:password, or ""
}

// parseTarget takes a URL apart without touching its path and query: the
// service keeps both verbatim (spec 5.2.3 puts secrets there). Its errors never
// print the URL, which may carry secrets.
func parseTarget(raw string) (target, error) {
	u, err := url.Parse(raw)
	if err != nil {
		var bad *url.Error
		if errors.As(err, &bad) {
			err = bad.Err
		}
		// The inner error may quote a part of the URL, so only its class is kept.
		if strings.Contains(err.Error(), "port") {
			return target{}, errors.New("parse url: invalid port")
		}
		return target{}, errors.New("parse url: not a valid URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return target{}, fmt.Errorf("parse url: the scheme is %q, not http or https", u.Scheme)
	}
	if u.Hostname() == "" {
		return target{}, errors.New("parse url: no host")
	}
	t := target{tls: u.Scheme == "https", name: u.Hostname(), host: u.Host, path: verbatimPath(raw)}
	port := u.Port()
	if port == "" {
		port = map[bool]string{true: "443", false: "80"}[t.tls]
	}
	t.addr = net.JoinHostPort(t.name, port)
	if zone := strings.IndexByte(t.host, '%'); zone >= 0 { // an IPv6 zone stays on this machine
		t.host = t.host[:zone] + t.host[strings.IndexByte(t.host, ']'):]
		t.name = t.name[:strings.IndexByte(t.name, '%')]
	}
	if u.User != nil {
		password, _ := u.User.Password()
		t.user = u.User.Username() + ":" + password
	}
	return t, nil
}

// verbatimPath gives the request target of an absolute URL: everything after
// the authority, without the fragment. Only bytes that cannot stand in a
// request line are percent-encoded.
func verbatimPath(raw string) string {
	raw, _, _ = strings.Cut(raw, "#")
	_, rest, _ := strings.Cut(raw, "://")
	at := strings.IndexAny(rest, "/?")
	if at < 0 {
		return "/"
	}
	rest = rest[at:]
	if rest[0] == '?' {
		rest = "/" + rest
	}
	var b strings.Builder
	for i := range len(rest) {
		if c := rest[i]; c <= 0x20 || c >= 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
