package violation

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
)

// sentCall is a call to a custom destination as a violation sees it.
type sentCall struct {
	ctx     context.Context
	r       *http.Request // headers and URL may be changed
	body    []byte        // may be changed
	method  string        // the JSON-RPC method
	chunked bool          // the length is not announced
	dial    DialFunc
}

// edit changes the body, a JSON object.
func (o *sentCall) edit(change func(map[string]any)) { o.body = editJSON(o.body, change) }

// param reads a member of params; nil where there is none.
func (o *sentCall) param(path ...string) any {
	var body struct{ Params any }
	d := json.NewDecoder(bytes.NewReader(o.body))
	d.UseNumber()
	if d.Decode(&body) != nil {
		return nil
	}
	at := body.Params
	for _, name := range path {
		object, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = object[name]
	}
	return at
}

// Carriers is the way of calls to destinations with their violations; nil
// without any.
func (b Broken) Carriers(dial DialFunc) func(http.RoundTripper) http.RoundTripper {
	any := false
	for _, s := range b {
		any = any || s.carry != nil
	}
	if !any {
		return nil
	}
	return func(wire http.RoundTripper) http.RoundTripper { return &carrier{b, wire, dial} }
}

// DialFunc connects as calls that break no rule do.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

type carrier struct {
	broken Broken
	wire   http.RoundTripper
	dial   DialFunc
}

// RoundTrip hands a call from violation to violation and then to the wire.
func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	var envelope struct{ Method string }
	_ = json.Unmarshal(body, &envelope) // what is no JSON has no method
	return c.from(0)(&sentCall{ctx: r.Context(), r: r.Clone(r.Context()), body: body, method: envelope.Method, dial: c.dial})
}

func (c *carrier) from(i int) func(*sentCall) (*http.Response, error) {
	for i < len(c.broken) && c.broken[i].carry == nil {
		i++
	}
	if i == len(c.broken) {
		return c.send
	}
	return func(o *sentCall) (*http.Response, error) { return c.broken[i].carry(o, c.from(i+1)) }
}

func (c *carrier) send(o *sentCall) (*http.Response, error) {
	r := o.r.Clone(o.ctx)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(o.body)), int64(len(o.body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(o.body)), nil }
	if o.chunked {
		r.ContentLength, r.GetBody = -1, nil
	}
	return c.wire.RoundTrip(r)
}

// rewrite changes the body of an answer, where there is one and it is a JSON
// object.
func rewrite(resp *http.Response, err error, change func(map[string]any)) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	body = editJSON(body, change)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return resp, nil
}
