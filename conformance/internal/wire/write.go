package wire

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// write writes the request, or as much of it as the call configures.
func (c *Conn) write(q *request, goAhead <-chan struct{}, deadline time.Time) error {
	body := q.call.Body
	if !q.call.ExpectContinue && !q.call.Chunked && q.call.CutRequestAfter == 0 && len(body) <= 64<<10 {
		// One write, one segment where it fits.
		if _, err := c.nc.Write(append(q.head[:len(q.head):len(q.head)], body...)); err != nil {
			return err
		}
		return c.cut(q.call.CutAfterRequest)
	}
	if _, err := c.nc.Write(q.head); err != nil {
		return err
	}
	if q.call.ExpectContinue {
		timer := time.NewTimer(min(continueWait, time.Until(deadline)/2))
		defer timer.Stop()
		select {
		case _, open := <-goAhead:
			if !open { // a final response came instead: the body is not wanted
				return errors.New("the endpoint did not ask for the body")
			}
		case <-timer.C:
		}
	}
	whole := q.call.CutRequestAfter == 0 || q.call.CutRequestAfter >= len(body)
	if !whole {
		body = body[:q.call.CutRequestAfter]
	}
	if err := c.writeBody(q, body, whole); err != nil {
		return err
	}
	return c.cut(q.call.CutAfterRequest || q.call.CutRequestAfter > 0)
}

// writeBody writes plain, or in chunks of half the body, 16 KiB at most.
func (c *Conn) writeBody(q *request, body []byte, last bool) error {
	if !q.call.Chunked {
		_, err := c.nc.Write(body)
		return err
	}
	for chunk := range slices.Chunk(body, min(max((len(body)+1)/2, 1), 16<<10)) {
		if _, err := fmt.Fprintf(c.nc, "%x\r\n%s\r\n", len(chunk), chunk); err != nil {
			return err
		}
	}
	if !last {
		return nil
	}
	_, err := io.WriteString(c.nc, "0\r\n\r\n")
	return err
}

// cut closes after what was written, when requested.
func (c *Conn) cut(asked bool) error {
	if !asked {
		return nil
	}
	c.kill(errCut)
	return errCut
}

// target is where a call goes. The path holds the query too, as it was given.
type target struct {
	tls  bool
	addr string // host:port to dial
	name string // host name for SNI and certificates
	host string // the Host header
	path string // request target, verbatim
	user string // decoded user:password, or ""
}

// parseTarget takes a URL apart; path and query stay as they are, as in the service (spec
// 5.2.3 puts secrets there). Its errors print no part of the URL, which may carry secrets.
func parseTarget(raw string) (target, error) {
	u, err := url.Parse(raw)
	if err != nil {
		if bad, is := errors.AsType[*url.Error](err); is && strings.Contains(bad.Err.Error(), "port") {
			return target{}, errors.New("parse url: invalid port")
		}
		return target{}, errors.New("parse url: not a valid URL")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return target{}, fmt.Errorf("parse url: the scheme is %q, not http or https", u.Scheme)
	case u.Hostname() == "":
		return target{}, errors.New("parse url: no host")
	}
	t := target{tls: u.Scheme == "https", name: u.Hostname(), host: u.Host, path: verbatimPath(raw)}
	t.addr = net.JoinHostPort(t.name, cmp.Or(u.Port(), map[bool]string{true: "443", false: "80"}[t.tls]))
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

// verbatimPath is everything after the authority of a URL, without the fragment. Only bytes
// that a request line cannot have are percent-encoded.
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
