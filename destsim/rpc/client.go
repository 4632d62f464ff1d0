package rpc

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/rawjson"
)

// Sizes of replies, in bytes.
const (
	// DefaultMaxReply bounds a reply where Client.MaxReply is 0.
	DefaultMaxReply = 64 << 20
	// LargeReply is how much of a reply is read before Client.Large is called.
	LargeReply = 256 << 10
)

// Client calls one custom destination, one HTTP POST per call, without
// retries (spec 4.2). It is safe for parallel use.
type Client struct {
	// URL is the endpoint; query string and path are kept verbatim.
	URL string
	// Token is sent as Authorization: Bearer (spec 5.2.2); "" sends none.
	Token string
	// Header adds to the default headers and overrides them by name.
	Header http.Header
	// HTTP carries the calls; nil: the default transport, no redirects followed.
	HTTP *http.Client
	// MaxReply bounds a reply in bytes, as received and as decoded; 0 means
	// DefaultMaxReply.
	MaxReply int64
	// Large is called before a reply takes more than LargeReply bytes of memory,
	// and may wait; it may be nil.
	Large func(ctx context.Context) error
}

// noRedirect is the client of a Client without one: a redirect is not
// documented, and following it would hand the token to another address.
var noRedirect = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// StatusError is the error of a reply with an HTTP status other than 200 that
// carries no JSON-RPC error.
type StatusError struct {
	Status int
	// Body is the beginning of the decoded reply.
	Body string
}

// Error gives the status and the beginning of the reply.
func (e *StatusError) Error() string {
	return fmt.Sprintf("http status %d: %s", e.Status, e.Body)
}

// Call sends one request and decodes the result. params is marshalled with
// encoding/json; json.RawMessage and []byte are sent as they are, nil as {}.
// result is filled by encoding/json, a *json.RawMessage gets the raw object,
// nil drops it.
//
// An error object of the reply comes back as a wrapped *Error, whatever the
// HTTP status; see DecodeResponse, StatusError and ErrReplyTooLarge for the
// others. Errors never hold the URL, which may carry secrets (spec 5.2.3).
func (c *Client) Call(ctx context.Context, method string, params any, result any) error {
	raw, err := c.call(ctx, method, params)
	if err != nil {
		return fmt.Errorf("call %s: %w", method, err)
	}
	switch dst := result.(type) {
	case nil:
	case *json.RawMessage:
		*dst = raw
	default:
		if err := json.Unmarshal(raw, dst); err != nil {
			return fmt.Errorf("call %s: decode result: %w", method, err)
		}
	}
	return nil
}

func (c *Client) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	text, id, err := c.Encode(method, params)
	if err != nil {
		return nil, err
	}
	req, err := c.NewRequest(ctx, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	resp, err := cmp.Or(c.HTTP, noRedirect).Do(req)
	if err != nil {
		return nil, fmt.Errorf("send request: %w", withoutURL(err))
	}
	defer resp.Body.Close()
	return c.Decode(resp, id)
}

// Encode writes the body of one request; its id is new each time (spec 4.2) and
// always as long. Encode, NewRequest and Decode are the parts of Call, for callers
// that send the request themselves.
func (c *Client) Encode(method string, params any) (text []byte, id string, err error) {
	encoded, err := marshalParams(params)
	if err != nil {
		return nil, "", err
	}
	id = newID()
	return EncodeRequest(nil, method, encoded, id), id, nil
}

// NewRequest makes the POST of a body, with all headers.
func (c *Client) NewRequest(ctx context.Context, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, body)
	if err != nil {
		return nil, fmt.Errorf("build request: %w", withoutURL(err))
	}
	c.setHeader(req)
	return req, nil
}

// Decode reads the result out of the reply to the request with an id; the errors
// are those of Call. It does not close the reply.
func (c *Client) Decode(resp *http.Response, id string) (json.RawMessage, error) {
	body, err := c.readReply(resp)
	if err != nil {
		return nil, err
	}
	raw, rpcErr, err := DecodeResponse(body, id)
	switch {
	case rpcErr != nil:
		return nil, rpcErr
	case resp.StatusCode != http.StatusOK:
		return nil, &StatusError{Status: resp.StatusCode, Body: foreign.Clip(bytes.ToValidUTF8(body, []byte("\uFFFD")), 64)}
	}
	return raw, err
}

// setHeader sets the headers that the service sends, except its
// name, and those of the configuration.
func (c *Client) setHeader(req *http.Request) {
	h := req.Header
	h.Set("User-Agent", "destkit")
	h.Set("Content-Type", "application/json")
	h.Set("Accept-Encoding", "gzip;q=1.0,deflate;q=0.6,identity;q=0.3")
	h.Set("Accept", "*/*")
	h.Set("Connection", "keep-alive")
	h.Set("Keep-Alive", "30")
	if c.Token != "" {
		h.Set("Authorization", "Bearer "+c.Token)
	}
	for name, values := range c.Header {
		h[http.CanonicalHeaderKey(name)] = append([]string(nil), values...)
	}
	if host := h.Get("Host"); host != "" {
		req.Host = host
	}
}

// withoutURL takes the URL out of an error of net/http.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// newID makes an id of the published kind: 32 lower-case hexadecimal digits.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand aborts the program instead
	return hex.EncodeToString(b[:])
}

func marshalParams(params any) ([]byte, error) {
	switch p := params.(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		return p, nil
	case []byte:
		return p, nil
	}
	text, err := rawjson.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("encode params: %w", err)
	}
	return text, nil
}
