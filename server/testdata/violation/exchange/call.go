package exchange

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
)

// Carry is the way of one call: it may rewrite the request, hand it on (also more than
// once, or not at all) and rewrite the answer.
type Carry = func(o *Call, next Next) (*http.Response, error)

// Next hands a call on.
type Next = func(*Call) (*http.Response, error)

// Call is a call to a custom destination as a violation sees it.
type Call struct {
	Context context.Context
	HTTP    *http.Request // headers and URL may be changed
	Body    []byte        // may be changed
	Method  string        // the JSON-RPC method
	Chunked bool          // the length is not announced
	Dial    DialFunc
}

// Edit changes the body, a JSON object.
func (o *Call) Edit(change func(map[string]any)) { o.Body = EditJSON(o.Body, change) }

// Param reads a member of params; nil where there is none.
func (o *Call) Param(path ...string) any {
	var body struct{ Params any }
	d := json.NewDecoder(bytes.NewReader(o.Body))
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

// InParams changes the params of a call; the members of the request come in the order
// of their names.
func InParams(o *Call, change func(params map[string]any)) {
	o.Edit(func(body map[string]any) {
		if params, ok := body["params"].(map[string]any); ok {
			change(params)
		}
	})
}

// InPlan changes the plan of a batch, as InParams does.
func InPlan(o *Call, change func(plan map[string]any)) {
	InParams(o, func(params map[string]any) {
		if plan, ok := params["sync_plan"].(map[string]any); ok {
			change(plan)
		}
	})
}

// Made is an answer to a call that no destination gave.
func Made(o *Call, status int, body any) *http.Response {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // of values that came out of JSON
	}
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: o.HTTP,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)),
	}
}

// Reply is a reply of the protocol to a call, with these members and the id of the
// call, that no destination gave.
func Reply(o *Call, members map[string]any) *http.Response {
	body := []byte("{}")
	o.Envelope(func(e *Envelope) {
		body = EditJSON(body, func(m map[string]any) {
			m["jsonrpc"], m["id"] = "2.0", e.ID
			for name, value := range members {
				m[name] = value
			}
		})
	})
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: o.HTTP,
		Header: http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(body))}},
		Body:   io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// Rewrite changes the body of an answer, where there is one and it is a JSON
// object.
func Rewrite(resp *http.Response, err error, change func(map[string]any)) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	body = EditJSON(body, change)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return resp, nil
}

// RewriteResults changes the record results of an answer.
func RewriteResults(resp *http.Response, err error, change func(results []any) []any) (*http.Response, error) {
	return Rewrite(resp, err, func(body map[string]any) {
		if result, ok := body["result"].(map[string]any); ok {
			if results, ok := result["record_results"].([]any); ok {
				result["record_results"] = change(results)
			}
		}
	})
}

// DialFunc connects as calls that break no rule do.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Through is the way of calls from one carry to the next, and then to the wire.
func Through(carries []Carry, dial DialFunc) func(http.RoundTripper) http.RoundTripper {
	return func(wire http.RoundTripper) http.RoundTripper { return &carrier{carries, wire, dial} }
}

type carrier struct {
	carries []Carry
	wire    http.RoundTripper
	dial    DialFunc
}

// RoundTrip hands a call from one to the next and then to the wire.
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
	return c.from(0)(&Call{Context: r.Context(), HTTP: r.Clone(r.Context()), Body: body, Method: envelope.Method, Dial: c.dial})
}

func (c *carrier) from(i int) Next {
	if i == len(c.carries) {
		return c.send
	}
	return func(o *Call) (*http.Response, error) { return c.carries[i](o, c.from(i+1)) }
}

func (c *carrier) send(o *Call) (*http.Response, error) {
	r := o.HTTP.Clone(o.Context)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(o.Body)), int64(len(o.Body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(o.Body)), nil }
	if o.Chunked {
		r.ContentLength, r.GetBody = -1, nil
	}
	return c.wire.RoundTrip(r)
}

// Envelope is a request with its members in the published order.
type Envelope struct {
	JSONRPC json.RawMessage `json:"jsonrpc,omitempty"`
	Method  json.RawMessage `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	ID      json.RawMessage `json:"id,omitempty"`
	Version json.RawMessage `json:"api_version,omitempty"` // is not in the protocol
}

// Envelope changes the request and keeps the order of its members, which Edit
// does not.
func (o *Call) Envelope(change func(*Envelope)) {
	var e Envelope
	if json.Unmarshal(o.Body, &e) != nil {
		return
	}
	change(&e)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(e) == nil {
		o.Body = bytes.TrimSpace(out.Bytes())
	}
}

// Params changes the parameters of the request.
func (o *Call) Params(change func(map[string]any)) {
	o.Envelope(func(e *Envelope) { e.Params = EditJSON(e.Params, change) })
}
