package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
)

// Bounds of a reply's head; trailers count too.
const (
	maxHead    = 256 << 10
	maxInterim = 16
	shownLines = 50 // are kept of a head that is wrong or has no end
)

// Framings of a response body.
const (
	FramingNone    = "none"    // no body by method or status
	FramingLength  = "length"  // Content-Length
	FramingChunked = "chunked" // Transfer-Encoding: chunked
	FramingClose   = "close"   // until the connection closes
)

// headReader reads the lines of one response within its bound. It fails at a fault, for attempt.
type headReader struct {
	br   *bufio.Reader
	left int
	// strict: inside a chunked body, where parsers disagree on a bare LF, it ends no line.
	strict bool
}

// broken is what the reading of a response panics with.
type broken struct{ err error }

// fail ends the reading; nil lets it go on.
func fail(err error) {
	if err != nil {
		panic(broken{err})
	}
}

// attempt reads a part of a response and returns what has ended it.
func attempt(read func()) (err error) {
	defer func() {
		failure := recover()
		if b, is := failure.(broken); is {
			err = b.err
		} else if failure != nil {
			panic(failure)
		}
	}()
	read()
	return nil
}

// line gives one line without its end. In the head a bare LF ends it too (RFC 9112 2.2).
func (h *headReader) line() []byte {
	var line []byte
	for {
		part, err := h.br.ReadSlice('\n')
		if h.left -= len(part); h.left < 0 && h.strict {
			fail(malformed("the line of a chunk size or the trailers are too long"))
		} else if h.left < 0 {
			fail(tooLarge("the head of the response is larger than %d bytes", maxHead))
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		fail(eofInside(err, h.strict || len(line) > 0))
		line = line[:len(line)-1]
		if h.strict && !bytes.HasSuffix(line, []byte("\r")) {
			fail(malformed("the line %q of the chunked body ends without a carriage return", foreign.Clip(line, quoted)))
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		if bytes.IndexByte(line, '\r') >= 0 {
			fail(malformed("a bare carriage return in the line %q", foreign.Clip(line, quoted)))
		}
		return line
	}
}

// eofInside keeps an end before the first byte apart from one inside.
func eofInside(err error, inside bool) error {
	if errors.Is(err, io.EOF) && inside {
		return io.ErrUnexpectedEOF
	}
	return err
}

// head reads one status line and its header lines into r.
func (h *headReader) head(r *Reply) {
	r.Proto, r.Status = parseStatusLine(h.line())
	h.fields(&r.RawHeaders)
	r.Header = canonical(r.RawHeaders)
}

// parseStatusLine takes `HTTP/1.x CODE REASON` apart, where the reason is optional.
func parseStatusLine(line []byte) (proto string, status int) {
	proto, rest, found := strings.Cut(string(line), " ")
	code, reason, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	switch {
	case !found || proto != "HTTP/1.1" && proto != "HTTP/1.0":
		fail(malformed("the status line %q does not begin with HTTP/1.1 or HTTP/1.0", foreign.Clip(line, quoted)))
	case err != nil || len(code) != 3 || status < 100:
		fail(malformed("the status line %q has no status code of three digits", foreign.Clip(line, quoted)))
	case controlIn(reason) >= 0:
		fail(malformed("the reason in the status line %q has control characters", foreign.Clip(line, quoted)))
	}
	return proto, status
}

// fields reads header lines up to the empty one, in their order.
func (h *headReader) fields(into *[]Header) {
	for line := h.line(); len(line) > 0; line = h.line() {
		// RFC 9112 5.2: line folding is obsolete, and parsers disagree on it.
		if line[0] == ' ' || line[0] == '\t' {
			fail(malformed("the header line %q is a folded continuation", foreign.Clip(line, quoted)))
		}
		name, value, found := bytes.Cut(line, []byte(":"))
		if !found || !isToken(string(name)) {
			fail(malformed("the header line %q has no valid name and colon", foreign.Clip(line, quoted)))
		}
		text := strings.Trim(string(value), " \t")
		if controlIn(text) >= 0 {
			fail(malformed("the value of the header %s has control characters", name))
		}
		*into = append(*into, Header{Name: string(name), Value: text})
	}
}

// framing decides how the body is delimited (RFC 9112 6.3), and refuses ambiguous framing.
func framing(r *Reply, method string) (kind string, length int64) {
	length = -1
	for _, text := range elements(r.Header["Content-Length"]) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || strings.ContainsAny(text, "+-") {
			fail(malformed("the Content-Length %q is not a decimal number", foreign.Clip(text, quoted)))
		}
		if length >= 0 && n != length {
			fail(malformed("two Content-Lengths: %d and %d", length, n))
		}
		length = n
	}
	coding := strings.ToLower(strings.Join(r.Header["Transfer-Encoding"], ", "))
	chunked := len(r.Header["Transfer-Encoding"]) > 0
	switch {
	case !chunked:
	case length >= 0:
		fail(malformed("both Transfer-Encoding and Content-Length"))
	case r.Proto == "HTTP/1.0":
		fail(malformed("Transfer-Encoding in a reply of HTTP/1.0"))
	case coding != "chunked":
		fail(malformed("the Transfer-Encoding is %q, not chunked", foreign.Clip(coding, quoted)))
	}
	switch {
	case method == http.MethodHead, r.Status == http.StatusNoContent, r.Status == http.StatusNotModified:
		return FramingNone, 0
	case chunked:
		return FramingChunked, -1
	case length >= 0:
		return FramingLength, length
	}
	return FramingClose, -1
}

// closeAnnounced reports whether the endpoint announced that it closes.
func closeAnnounced(r *Reply) bool {
	said := elements(r.Header["Connection"])
	return slices.Contains(said, "close") || r.Proto == "HTTP/1.0" && !slices.Contains(said, "keep-alive")
}

// elements are those of a header that is a list, in lower case.
func elements(values []string) []string {
	if len(values) == 0 {
		return nil
	}
	list := strings.Split(strings.ToLower(strings.Join(values, ",")), ",")
	return lists.Of(list, func(s string) string { return strings.Trim(s, " \t") })
}

// controlIn is the index of a control character that a header must not have, -1 without one.
func controlIn(s string) int {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// quoted is how much of what an endpoint sent a message quotes, in characters.
const quoted = 60
