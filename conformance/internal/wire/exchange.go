package wire

import "time"

// Exchange is one recorded HTTP exchange. Everything in it has passed the
// redactor: secrets stand as $DESTKIT_TOKEN, $DESTKIT_URL and the like.
type Exchange struct {
	// ID numbers the exchanges of a run from 1.
	ID int `json:"id"`
	// Check is the id of the check that sent it, "" for preflight.
	Check string `json:"check,omitempty"`
	// RPC is the JSON-RPC method as the judge named the call.
	RPC string `json:"rpc_method,omitempty"`
	// RPCID is the JSON-RPC id that the judge gave the call.
	RPCID      string    `json:"rpc_id,omitempty"`
	Started    time.Time `json:"started"`
	DurationMS float64   `json:"duration_ms"`
	// Incoming reports whether the judged service sent it to a destination of the judge.
	Incoming bool `json:"incoming,omitempty"`
	// ReusedConnection reports whether a kept-alive connection carried the call.
	ReusedConnection bool `json:"reused_connection,omitempty"`
	// Retried reports whether a kept-alive connection turned out to be dead and the
	// call was repeated once on a fresh one.
	Retried  bool      `json:"retried,omitempty"`
	Request  Message   `json:"request"`
	Response *Response `json:"response,omitempty"`
	// Kind names how the exchange ended when no complete response came.
	Kind string `json:"kind,omitempty"`
	// Error is what ended the exchange without a complete response.
	Error string `json:"error,omitempty"`
}

// Message is the request half of an exchange.
type Message struct {
	Method string `json:"method"`
	URL    string `json:"url"`
	// OtherURL reports whether the call did not go to the configured URL.
	OtherURL bool     `json:"other_url,omitempty"`
	Header   []Header `json:"headers"`
	Body     Body     `json:"body"`
}

// Response is the response half of an exchange.
type Response struct {
	Proto  string   `json:"proto"`
	Status int      `json:"status"`
	Header []Header `json:"headers"`
	Body   Body     `json:"body"`
}

// Header is one header line, in the order of the wire.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Body is a recorded body. Text is valid UTF-8; a body that is not stands in
// Base64 instead. Size is the true length in bytes; Truncated says that less
// than that was kept.
type Body struct {
	Text      string `json:"text,omitempty"`
	Base64    string `json:"base64,omitempty"`
	Size      int64  `json:"size"`
	Truncated bool   `json:"truncated,omitempty"`
}
