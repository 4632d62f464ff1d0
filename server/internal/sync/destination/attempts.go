package destination

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// Attempts decides about the HTTP attempts of one call after the first. The content of a
// response with the status 200 is judged above the call, not here.
type Attempts interface {
	// Check gets a failed attempt, without a response or with another status than
	// 200, and reports whether there is another one; the error is why there is
	// none.
	Check(failed *CallError) (again bool, err error)
	// Backoff is how long to wait before the next one, on the clock of the caller.
	Backoff() time.Duration
	// Prepare waits so long, takes the next attempt from the limits, and gives the
	// context under which it is made.
	Prepare(wait time.Duration) (context.Context, error)
}

// one are the Attempts of a call that is made once.
type one struct{}

func (one) Check(*CallError) (again bool, err error)               { return false, nil }
func (one) Backoff() time.Duration                                 { return 0 }
func (one) Prepare(time.Duration) (ctx context.Context, err error) { return nil, context.Canceled }

type attemptsKey struct{}

// Attempted lets a Sender make the HTTP attempts of a call: sync_batch and
// get_sync_speed, each one request. ctx is that of the first attempt. The limits
// are the caller's (see Paced).
func Attempted(ctx context.Context, attempts Attempts) context.Context {
	return context.WithValue(Paced(ctx), attemptsKey{}, attempts)
}

// once takes the attempts back, where a call is more than one request.
func once(ctx context.Context) context.Context {
	return context.WithValue(ctx, attemptsKey{}, nil)
}

// repeated makes one call with as many HTTP attempts as it takes, under
// go-retryablehttp.
func (c *caller) repeated(
	ctx context.Context, attempts Attempts, method string, params any, check func(json.RawMessage) (problem string),
) (json.RawMessage, *Exchange, *CallError) {
	a := &attempt{caller: c, attempts: attempts, method: method, params: params}
	defer func() { a.cancel() }()
	request, failed := a.request(ctx)
	if failed != nil {
		return nil, a.x, failed
	}
	client := retryablehttp.Client{
		HTTPClient: &http.Client{Transport: a, CheckRedirect: noRedirect}, RetryMax: math.MaxInt, // Check counts
		CheckRetry: a.check, Backoff: a.backoff, PrepareRetry: a.prepare, ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	response, err := client.Do(request)
	if response != nil {
		defer response.Body.Close()
	}
	if err != nil || a.failed != nil {
		return nil, a.x, a.failed
	}
	raw, err := c.client.Decode(response, a.x.RequestID)
	if err != nil {
		err = fmt.Errorf("call %s: %w", method, err)
	}
	return raw, a.x, a.finish(raw, err, check)
}

// attempt is the attempt of a call that is under way. Each has its own id (spec
// 4.2), context and entry in the journal. It is the transport, since only there a
// request gets the context of its attempt. It has no CloseIdleConnections on
// purpose: the library calls that after every failure, and the connections belong
// to all calls of a destination.
type attempt struct {
	caller   *caller
	attempts Attempts
	method   string
	params   any

	ctx, bounded context.Context // of the caller, and with the timeout of the call
	cancel       context.CancelFunc
	x            *Exchange
	began        time.Time
	text         []byte
	wait         time.Duration
	failed       *CallError // of the last attempt; nil while one is under way
}

// request is the request of all attempts; begin writes the body of each.
func (a *attempt) request(ctx context.Context) (*retryablehttp.Request, *CallError) {
	if err := a.begin(ctx); err != nil {
		return nil, a.finish(nil, err, nil)
	}
	// The library must not stop between two attempts because one has timed out.
	plain, err := a.caller.client.NewRequest(context.WithoutCancel(ctx), nil)
	request := &retryablehttp.Request{Request: plain}
	if err == nil {
		err = request.SetBody(func() (io.Reader, error) { return bytes.NewReader(a.text), nil })
	}
	if err != nil {
		return nil, a.finish(nil, fmt.Errorf("call %s: %w", a.method, err), nil)
	}
	return request, nil
}

// begin is the start of an attempt.
func (a *attempt) begin(ctx context.Context) (err error) {
	a.ctx, a.failed, a.began, a.x = ctx, nil, time.Now(), a.caller.newExchange(ctx, a.method)
	a.bounded, a.cancel = context.WithTimeout(ctx, a.caller.gate.timeout(a.method))
	a.text, a.x.RequestID, err = a.caller.client.Encode(a.method, a.params)
	return err
}

// RoundTrip sends the request of an attempt.
func (a *attempt) RoundTrip(request *http.Request) (*http.Response, error) {
	return a.caller.client.HTTP.Transport.RoundTrip(request.WithContext(context.WithValue(a.bounded, exchangeKey{}, a.x)))
}

// finish is the end of an attempt.
func (a *attempt) finish(raw json.RawMessage, err error, check func(json.RawMessage) (problem string)) *CallError {
	a.x.Duration = time.Since(a.began)
	a.failed = a.caller.finish(a.ctx, a.x, a.params, raw, err, check)
	return a.failed
}

// check is the library's CheckRetry. The body of an error is read, since its words
// are shown.
func (a *attempt) check(_ context.Context, response *http.Response, err error) (bool, error) {
	if err == nil && response.StatusCode == http.StatusOK {
		return false, nil
	}
	if err != nil {
		var inURL *url.Error
		if errors.As(err, &inURL) { // the URL may be a secret
			err = inURL.Err
		}
		err = fmt.Errorf("send request: %w", err)
	} else {
		_, err = a.caller.client.Decode(response, a.x.RequestID)
	}
	return a.attempts.Check(a.finish(nil, fmt.Errorf("call %s: %w", a.method, err), nil))
}

// backoff is the library's Backoff. The library would wait in real time; the wait
// is on another clock, in prepare.
func (a *attempt) backoff(time.Duration, time.Duration, int, *http.Response) time.Duration {
	a.wait = a.attempts.Backoff()
	return 0
}

// prepare is the library's PrepareRetry.
func (a *attempt) prepare(*http.Request) error {
	a.cancel()
	ctx, err := a.attempts.Prepare(a.wait)
	if err != nil {
		return err
	}
	return a.begin(ctx)
}
