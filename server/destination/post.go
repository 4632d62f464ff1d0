package destination

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// postPool keeps the connections of Post apart from those of destinations,
// whose ids are positive.
const postPool = -1

// drained bounds how much of an answer is read so that its connection can serve
// again; nothing of it is looked at.
const drained = 64 << 10

// Post makes one POST to an address that is no destination, such as a webhook.
// It verifies TLS, resolves names and dials as calls of destinations do, but
// never speaks plain http and follows no redirect. It gives the HTTP status, 0
// without an answer. The error names scheme and host only: path and query may
// hold secrets. A status other than 2xx is no error.
func (g *Gate) Post(ctx context.Context, address string, header http.Header, body []byte, timeout time.Duration) (status int, err error) {
	u, problem := checkURL(address, false)
	if problem == "" && !strings.EqualFold(u.Scheme, "https") {
		problem = "must be an https URL"
	}
	if problem != "" {
		return 0, fmt.Errorf("the URL %s", problem)
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(bounded, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil { // checkURL has ruled it out; the cause may repeat the URL
		return 0, errors.New("the URL cannot be called")
	}
	for name, values := range header {
		r.Header[name] = values
	}
	r.Header.Set("User-Agent", g.options.UserAgent)
	p, _ := g.pool(postPool)
	resp, err := p.transport.RoundTrip(r)
	if err != nil {
		return 0, g.postError(ctx, bounded, u, timeout, err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, drained)
	return resp.StatusCode, nil
}

// postError puts the failure of a Post into words that hold no secret. outer is
// the caller's context, bounded the one with the timeout.
func (g *Gate) postError(outer, bounded context.Context, u *url.URL, timeout time.Duration, err error) error {
	if outer.Err() == nil && errors.Is(bounded.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s did not answer within %s", u.Host, seconds(timeout))
	}
	outcome, message := g.network(outer, u.Host, err)
	if outcome == OutcomeCanceled {
		return fmt.Errorf("%s: %w", message, context.Canceled)
	}
	return errors.New(newRedactor([]string{u.Path, u.RawQuery}).clean(message))
}

// ClientTLS is the configuration of TLS connections to a host that is no
// destination: the authorities of this moment, TLS 1.2 or newer.
func (g *Gate) ClientTLS(host string) *tls.Config {
	return &tls.Config{RootCAs: g.roots.Load(), ServerName: host, MinVersion: tls.VersionTLS12}
}
