package wire

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// write writes the request, or as much of it as the call asks for.
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
	if n := q.call.CutRequestAfter; n > 0 && n < len(body) {
		if err := c.writeBody(q, body[:n], false); err != nil {
			return err
		}
		return c.cut(true)
	}
	if err := c.writeBody(q, body, true); err != nil {
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
	size := min(max((len(body)+1)/2, 1), 16<<10)
	for len(body) > 0 {
		n := min(size, len(body))
		chunk := append(strconv.AppendInt(nil, int64(n), 16), "\r\n"...)
		chunk = append(append(chunk, body[:n]...), "\r\n"...)
		if _, err := c.nc.Write(chunk); err != nil {
			return err
		}
		body = body[n:]
	}
	if !last {
		return nil
	}
	_, err := io.WriteString(c.nc, "0\r\n\r\n")
	return err
}

// cut closes after what was written, when asked to.
func (c *Conn) cut(asked bool) error {
	if !asked {
		return nil
	}
	c.kill(errCut)
	return errCut
}

// finishing waits a moment for a writer that is about to end anyway.
func (c *Conn) finishing(written <-chan error, writeErr *error) bool {
	timer := time.NewTimer(50 * time.Millisecond)
	defer timer.Stop()
	select {
	case *writeErr = <-written:
		return true
	case <-timer.C:
		return false
	}
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
	port := cmp.Or(u.Port(), map[bool]string{true: "443", false: "80"}[t.tls])
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
