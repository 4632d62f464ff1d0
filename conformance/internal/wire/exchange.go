package wire

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/foreign"
)

// Exchange is one recorded HTTP exchange. Everything in it has passed the redactor, which replaces
// secrets by $DESTKIT_TOKEN, $DESTKIT_URL and the like.
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
	// CallerLeftMS is when the caller of a recorded exchange ended its side of the
	// connection, 0 where it stayed to the end.
	CallerLeftMS float64 `json:"caller_left_ms,omitempty"`
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

// Body is a recorded body. Text is valid UTF-8; another body is in Base64 instead. Size is the true
// length in bytes; Truncated means that less than that was kept.
type Body struct {
	Text      string `json:"text,omitempty"`
	Base64    string `json:"base64,omitempty"`
	Size      int64  `json:"size"`
	Truncated bool   `json:"truncated,omitempty"`
}

// Reply is what came back for one call. It is never nil, whatever happened.
type Reply struct {
	Status int
	Proto  string // "HTTP/1.1"
	// Header has canonical names, RawHeaders the lines as on the wire.
	Header     http.Header
	RawHeaders []Header
	// Interim are the statuses of the 1xx responses before the final one.
	Interim []int
	Content
	Kind Kind
	// Err is nil exactly when Kind is KindNone.
	Err error
	Timing
	// Received counts the bytes of the response, head included.
	Received int64
	Carrier
	// Request is the body as sent, without redaction.
	Request []byte

	budget *budget
	record func() Exchange
}

// Content is the body of a reply.
type Content struct {
	// Framing of the body: none, length, chunked or close.
	Framing string
	// Raw is the body as received without chunk framing, Body the same without content encoding.
	// They share memory when there is none, and Body is Raw when the encoding is false. Of a body
	// that is too large the beginning stays.
	Raw, Body []byte
	// Unread: the body has a coding that this program does not know, and that the caller offered.
	Unread  bool
	partial []byte // what could be decoded of a body that could not be to its end
}

// Timing holds when a call was made, and how long each part took. Started is when dialling or
// sending started. FirstByte counts from there to the first byte of the response (of a Sight only),
// Dial to the usable connection (0 when reused), Total to the end; MaxGap is the longest pause in
// the body. 0 where it is not known.
type Timing struct {
	Started                        time.Time
	Dial, FirstByte, Total, MaxGap time.Duration
}

// Carrier is what became of the connection that carried a call.
type Carrier struct {
	// Reused reports whether a kept-alive connection carried the call, Retried that
	// such a one was dead and a fresh one took over.
	Reused, Retried bool
	// CloseAnnounced reports whether the endpoint announced that it closes, ConnClosed that the
	// connection has ended or will.
	CloseAnnounced, ConnClosed bool
}

// OK reports whether a complete HTTP response was received, be its content encoding wrong.
func (r *Reply) OK() bool { return r.Kind == KindNone || r.Kind == KindEncoding }

// Unsent reports whether no byte of the request has left, not even on a dead connection.
func (r *Reply) Unsent() bool { return r.Kind == KindRefused && !r.Retried }

// Ended reports whether an HTTP response came to an end, be it a bad one. One that began
// and was waited for in vain shows as little as none.
func (r *Reply) Ended() bool {
	return r.Status != 0 && r.Kind != KindTimeout && r.Kind != KindCanceled && r.Kind != KindCut
}

// JSON parses the body, within the memory bound of the client. Its errors are those of
// Parse, and one of KindUnread when other replies hold the memory.
func (r *Reply) JSON() (*Node, error) {
	root, _, err := r.Tree()
	return root, err
}

// Tree is JSON with the memory of its values in bytes, without the text of the body.
func (r *Reply) Tree() (root *Node, cost int, err error) { return parse(r.Body, r.budget) }

// curlInline is the largest body in bytes that does not hide the command.
const curlInline = 300

// Curl gives a command for a POSIX shell that sends the exchange again: secrets as variables
// such as $DESTKIT_TOKEN, a long or binary body as a file, see CurlBodyFile.
func Curl(e Exchange) string { return curl(e, CurlBodyFile(e)) }

// Curl is the same with the whole body in the command, "" when only a part of the request is
// known or its body is no text.
func (e Exchange) Curl() string {
	if e.Request.Body.binary() {
		return ""
	}
	return curl(e, "")
}

func (b Body) binary() bool { return b.Base64 != "" || strings.Contains(b.Text, "\x00") }

func curl(e Exchange, file string) string {
	if e.Incoming || e.Request.Body.Truncated {
		return "" // the service sent it, not the judge; or only its beginning is known
	}
	r := foreign.Request{Method: e.Request.Method, URL: e.Request.URL, File: file, Body: e.Request.Body.Text, Binary: e.Request.Body.Base64 != ""}
	for _, h := range e.Request.Header {
		r.Header = append(r.Header, [2]string{h.Name, h.Value})
	}
	return strings.Join(r.Curl(), " ")
}

// BodyFolder is the folder of the files that Curl refers to, in that of the run.
const BodyFolder = "destkit-bodies"

// CurlBodyFile gives the name of the file that Curl refers to and the body that
// belongs there, or "" when the command holds the body itself.
func CurlBodyFile(e Exchange) string {
	if e.Request.Body.Size <= curlInline && !e.Request.Body.binary() {
		return ""
	}
	return fmt.Sprintf("%s/%s-%d.json", BodyFolder, cmp.Or(e.Check, "preflight"), e.ID)
}
