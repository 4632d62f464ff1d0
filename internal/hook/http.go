package hook

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/destkit/destkit/internal/unreached"
)

// post sends the object to a URL. The URL may hold a secret, so no error
// carries it.
func post(parent context.Context, client *http.Client, timeout time.Duration, name, address string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(parent, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, &Error{Kind: KindSetup, Hook: name, Message: "has a url that cannot be used", Err: withoutURL(err)}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	client = cmp.Or(client, http.DefaultClient)
	response, err := client.Do(request)
	if err != nil {
		return nil, unreachable(ctx, parent, name, request.URL.Host, timeout, err)
	}
	defer response.Body.Close()
	reply, err := io.ReadAll(io.LimitReader(response.Body, MaxReply+1))
	if err != nil {
		return nil, unreachable(ctx, parent, name, request.URL.Host, timeout, err)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, &Error{
			Kind: KindStatus, Hook: name,
			Message: fmt.Sprintf("answered HTTP status %d", response.StatusCode), Detail: bounded(string(clip(reply))),
			Fix: statusFix(response.StatusCode),
		}
	}
	if len(reply) > MaxReply {
		return nil, tooLarge(name)
	}
	return reply, nil
}

// statusFix is what a status most often means.
func statusFix(status int) string {
	switch status {
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return "look at the path of its URL: it gets a POST"
	case http.StatusUnauthorized, http.StatusForbidden:
		return "let it in without the token of the endpoint: a hook gets none, so put a secret into its URL"
	}
	return "it should answer status 200"
}

// unreachable distinguishes a slow hook from one that is not there.
func unreachable(ctx, parent context.Context, name, host string, timeout time.Duration, err error) *Error {
	var timed interface{ Timeout() bool }
	if ctx.Err() != nil || (errors.As(err, &timed) && timed.Timeout()) {
		return interrupted(parent, name, timeout, "")
	}
	if cause := unreached.Of(err, "hook", host); cause.What != "" {
		return &Error{Kind: KindUnreachable, Hook: name, Message: cause.What, Fix: cause.Fix}
	}
	return &Error{Kind: KindUnreachable, Hook: name, Message: "did not answer", Err: withoutURL(err)}
}

func tooLarge(name string) *Error {
	return &Error{Kind: KindTooLarge, Hook: name, Message: fmt.Sprintf("answered more than %d bytes", MaxReply)}
}

// withoutURL drops the wrapper that repeats the address.
func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// clip bounds the part of a body that is only quoted.
func clip(body []byte) []byte { return body[:min(len(body), 2*maxDetail)] }
