package destination

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/destkit/destkit/internal/reach"
)

// postPool keeps the connections of Post apart from those of destinations,
// whose ids are positive.
const postPool = -1

// drained bounds how much of an answer is read so that its connection can serve
// again; nothing of it is looked at.
const drained = 64 << 10

// Delivery is a POST to an address that is no destination, such as a webhook, with
// its schedule of attempts.
type Delivery struct {
	URL     string
	Header  http.Header
	Body    []byte
	Timeout time.Duration // of an attempt, in real time
	// Made is how many attempts there were before, Most how many there may be after
	// the first. First is the wait after the first one; it doubles.
	Made, Most int
	First      time.Duration
}

// Delivered is what became of one attempt.
type Delivered struct {
	Status int // HTTP status; 0 without an answer
	// Again reports whether there is another attempt, Wait how long after this one.
	Again bool
	Wait  time.Duration
}

// again notes another attempt, if there may be one.
func (o *Delivered) again(d Delivery, wait time.Duration) {
	if d.Made < d.Most {
		o.Again, o.Wait = true, wait
	}
}

// errLater ends the library's loop where another attempt follows.
var errLater = errors.New("the next attempt is made later")

// Post makes one attempt under go-retryablehttp, which decides whether and when
// there is another one; it is the caller's to make, since waits of minutes outlive
// a process. A Retry-After longer than the schedule is heeded, on the service's
// clock. Post verifies TLS, resolves names and dials as calls of destinations do,
// but never speaks plain http and follows no redirect. The error names scheme and
// host only: path and query may hold secrets. A status other than 2xx is no error.
func (g *Gate) Post(ctx context.Context, d Delivery) (out Delivered, err error) {
	u, problem := checkURL(d.URL, false)
	if problem == "" && !strings.EqualFold(u.Scheme, "https") {
		problem = "must be an https URL"
	}
	if problem != "" { // it may be set right meanwhile
		out.again(d, g.postBackoff(d, nil))
		return out, fmt.Errorf("the URL %s", problem)
	}
	bounded, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	r, err := retryablehttp.NewRequestWithContext(bounded, http.MethodPost, u.String(), d.Body)
	if err != nil { // checkURL has ruled it out; the cause may repeat the URL
		return out, errors.New("the URL cannot be called")
	}
	for name, values := range d.Header {
		r.Header[name] = values
	}
	r.Header.Set("User-Agent", g.options.UserAgent)
	r.Header.Set(reach.Outbound, outbound)
	p, _ := g.pool(postPool)
	var failed error
	client := retryablehttp.Client{
		// Nothing but the transport's RoundTrip: the library would close the idle
		// connections of all webhooks after a failure.
		HTTPClient: &http.Client{Transport: struct{ http.RoundTripper }{p}, CheckRedirect: noRedirect},
		RetryMax:   d.Most - d.Made,
		CheckRetry: func(_ context.Context, response *http.Response, err error) (bool, error) {
			if failed = err; err != nil {
				return true, nil
			}
			out.Status = response.StatusCode
			return out.Status < 200 || out.Status > 299, nil
		},
		Backoff: func(_, _ time.Duration, _ int, response *http.Response) time.Duration {
			out.again(d, g.postBackoff(d, response))
			return 0
		},
		PrepareRetry: func(*http.Request) error { return errLater },
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	if resp, _ := client.Do(r); resp != nil { // what went wrong is in failed, or in the status
		_, _ = io.CopyN(io.Discard, resp.Body, drained)
		_ = resp.Body.Close()
	}
	if failed == nil {
		return out, nil
	}
	var inURL *url.Error
	if errors.As(failed, &inURL) {
		failed = inURL.Err
	}
	return out, g.postError(ctx, bounded, u, d.Timeout, failed)
}

// postBackoff is the wait after an attempt.
func (g *Gate) postBackoff(d Delivery, response *http.Response) time.Duration {
	wait := retryablehttp.DefaultBackoff(d.First, d.First<<d.Most, d.Made, nil)
	if response != nil {
		asked, _ := RetryAfter(response.Header.Get("Retry-After"), g.options.Now())
		wait = max(wait, asked)
	}
	return wait
}

// postError puts the failure of a Post into words that hold no secret. outer is
// the caller's context, bounded the one with the timeout.
func (g *Gate) postError(outer, bounded context.Context, u *url.URL, timeout time.Duration, err error) error {
	if outer.Err() == nil && errors.Is(bounded.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s did not answer within %s", u.Host, seconds(timeout))
	}
	outcome, message := g.network(outer, u.Host, g.options.CallTimeout, err)
	if outcome == OutcomeCanceled {
		return fmt.Errorf("%s: %w", message, context.Canceled)
	}
	return errors.New(newRedactor([]string{u.Path, u.RawQuery}).String(message))
}

// ClientTLS is the configuration of TLS connections to a host that is no
// destination: the authorities of this moment, TLS 1.2 or newer.
func (g *Gate) ClientTLS(host string) *tls.Config {
	return &tls.Config{RootCAs: g.roots.Load(), ServerName: host, MinVersion: tls.VersionTLS12}
}
