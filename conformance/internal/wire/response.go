package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
)

// Bounds of a reply's head; trailers count too.
const (
	maxHead    = 256 << 10
	maxInterim = 16
)

// Framings of a response body.
const (
	FramingNone    = "none"    // no body by method or status
	FramingLength  = "length"  // Content-Length
	FramingChunked = "chunked" // Transfer-Encoding: chunked
	FramingClose   = "close"   // until the connection closes
)

// headReader reads the lines of one response within the bound of its head.
type headReader struct {
	br     *bufio.Reader
	left   int
	strict bool // a bare LF is no end
}

// line gives one line without its end. A bare LF is tolerated as an end, as
// RFC 9112 2.2 allows for the head; a bare CR inside is not.
func (h *headReader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := h.br.ReadSlice('\n')
		if h.left -= len(part); h.left < 0 {
			return nil, tooLarge("the head of the response is larger than %d bytes", maxHead)
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return nil, eofInside(err, len(line))
		}
		line = line[:len(line)-1]
		if h.strict && !bytes.HasSuffix(line, []byte("\r")) {
			return nil, malformed("the line %q of the chunked body ends without a carriage return", foreign.Clip(line, quoted))
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		if bytes.IndexByte(line, '\r') >= 0 {
			return nil, malformed("a bare carriage return in the line %q", foreign.Clip(line, quoted))
		}
		return line, nil
	}
}

// eofInside keeps an end before the first byte apart from one inside.
func eofInside(err error, n int) error {
	if errors.Is(err, io.EOF) && n > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

// head reads one status line and its header lines into r.
func (h *headReader) head(r *Reply) error {
	line, err := h.line()
	if err != nil {
		return err
	}
	if r.Proto, r.Status, err = parseStatusLine(line); err != nil {
		return err
	}
	r.RawHeaders, err = h.fields()
	if err != nil {
		return err
	}
	r.Header = canonical(r.RawHeaders)
	return nil
}

// parseStatusLine takes `HTTP/1.x CODE REASON` apart; the reason and the space
// before it may be missing.
func parseStatusLine(line []byte) (proto string, status int, err error) {
	proto, rest, found := strings.Cut(string(line), " ")
	if !found || proto != "HTTP/1.1" && proto != "HTTP/1.0" {
		return "", 0, malformed("the status line %q does not begin with HTTP/1.1 or HTTP/1.0", foreign.Clip(line, quoted))
	}
	code, reason, _ := strings.Cut(rest, " ")
	if len(code) != 3 || !isDigits(code) || code[0] == '0' {
		return "", 0, malformed("the status line %q has no status code of three digits", foreign.Clip(line, quoted))
	}
	if controlIn(reason) >= 0 {
		return "", 0, malformed("the reason in the status line %q has control characters", foreign.Clip(line, quoted))
	}
	status, _ = strconv.Atoi(code)
	return proto, status, nil
}

// fields reads header lines up to the empty one, in their order.
func (h *headReader) fields() ([]Header, error) {
	var fields []Header
	for {
		line, err := h.line()
		if err != nil {
			return fields, err
		}
		if len(line) == 0 {
			return fields, nil
		}
		// RFC 9112 5.2: line folding is obsolete, and parsers disagree on it.
		if line[0] == ' ' || line[0] == '\t' {
			return fields, malformed("the header line %q is a folded continuation", foreign.Clip(line, quoted))
		}
		name, value, found := bytes.Cut(line, []byte(":"))
		if !found || !isToken(string(name)) {
			return fields, malformed("the header line %q has no valid name and colon", foreign.Clip(line, quoted))
		}
		text := strings.Trim(string(value), " \t")
		if controlIn(text) >= 0 {
			return fields, malformed("the value of the header %s has control characters", name)
		}
		fields = append(fields, Header{Name: string(name), Value: text})
	}
}

// framing decides how the body is delimited (RFC 9112 6.3) and refuses what
// two parsers could read in two ways.
func framing(r *Reply, method string) (kind string, length int64, err error) {
	lengths, codings := r.Header["Content-Length"], r.Header["Transfer-Encoding"]
	length = -1
	for _, list := range lengths {
		for part := range strings.SplitSeq(list, ",") {
			n, err := parseLength(strings.Trim(part, " \t"))
			if err != nil {
				return "", 0, err
			}
			if length >= 0 && n != length {
				return "", 0, malformed("two Content-Lengths: %d and %d", length, n)
			}
			length = n
		}
	}
	if len(codings) > 0 {
		coding := strings.ToLower(strings.Join(codings, ", "))
		switch {
		case length >= 0:
			return "", 0, malformed("both Transfer-Encoding and Content-Length")
		case r.Proto == "HTTP/1.0":
			return "", 0, malformed("Transfer-Encoding in a reply of HTTP/1.0")
		case coding != "chunked":
			return "", 0, malformed("the Transfer-Encoding is %q, not chunked", foreign.Clip(coding, quoted))
		}
	}
	switch {
	case method == http.MethodHead, r.Status == http.StatusNoContent, r.Status == http.StatusNotModified:
		return FramingNone, 0, nil
	case len(codings) > 0:
		return FramingChunked, -1, nil
	case length >= 0:
		return FramingLength, length, nil
	}
	return FramingClose, -1, nil
}

func parseLength(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || !isDigits(s) {
		return 0, malformed("the Content-Length %q is not a decimal number", foreign.Clip(s, quoted))
	}
	return n, nil
}

// closeAnnounced reports whether the endpoint said that it closes.
func closeAnnounced(r *Reply) bool {
	tokens := strings.ToLower(strings.Join(r.Header["Connection"], ","))
	keep := false
	for token := range strings.SplitSeq(tokens, ",") {
		switch strings.Trim(token, " \t") {
		case "close":
			return true
		case "keep-alive":
			keep = true
		}
	}
	return r.Proto == "HTTP/1.0" && !keep
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// controlIn is where a control character stands that a header must not have; -1 is nowhere.
func controlIn(s string) int {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// quoted is how much of what an endpoint sent a message quotes, in characters.
const quoted = 60
