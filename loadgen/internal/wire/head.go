package wire

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/destkit/destkit/internal/foreign"
)

// head is what the client needs of the head of a response.
type head struct {
	status   int
	length   int64 // of the body; -1: not said
	chunked  bool
	closing  bool   // the connection ends with this response
	encoding string // Content-Encoding, "" for none
	limit    int64  // X-RateLimit-Limit (spec 8), 0 where there is none
	retry    string // Retry-After
}

// longestHead bounds the head of a response.
const longestHead = 64 << 10

// parseHead reads the head of a response, blank line included. It is strict: two
// readings of one head are two opinions about where a reply ends.
func parseHead(text []byte) (h head, err error) {
	line, rest, _ := bytes.Cut(text, crlf)
	if h.status, h.closing, err = statusLine(line); err != nil {
		return h, err
	}
	h.length = -1
	for {
		line, rest, _ = bytes.Cut(rest, crlf)
		if len(line) == 0 {
			break
		}
		name, value, err := fieldLine(line)
		if err != nil {
			return h, fmt.Errorf("the head has %w", err)
		}
		if err := h.field(name, value); err != nil {
			return h, err
		}
	}
	if h.chunked && h.length >= 0 {
		return h, fmt.Errorf("the head has Content-Length and Transfer-Encoding")
	}
	return h, nil
}

var crlf = []byte("\r\n")

// statusLine reads "HTTP/1.1 200 OK".
func statusLine(line []byte) (status int, closing bool, err error) {
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || line[7] != '1' && line[7] != '0' || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
		return 0, false, fmt.Errorf("the reply is not HTTP/1.1: it begins with %q", foreign.Clip(line, LongestQuote))
	}
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return 0, false, fmt.Errorf("the reply has no status: it begins with %q", foreign.Clip(line, LongestQuote))
		}
		status = status*10 + int(c-'0')
	}
	if status < 100 {
		return 0, false, fmt.Errorf("the reply has the status %03d", status)
	}
	if !fieldValue(line[12:]) {
		return 0, false, fmt.Errorf("the status line has a control character: it begins with %q", foreign.Clip(line, LongestQuote))
	}
	return status, line[7] == '0', nil
}

// field takes the few headers that matter, distinguished by their length first.
func (h *head) field(name, value []byte) error {
	switch {
	case is(name, "content-length"):
		n, err := strconv.ParseUint(string(value), 10, 62)
		if err != nil || value[0] == '+' || h.length >= 0 && h.length != int64(n) {
			return fmt.Errorf("the header Content-Length is %q", foreign.Clip(value, LongestQuote))
		}
		h.length = int64(n)
	case is(name, "transfer-encoding"):
		if !is(value, "chunked") || h.chunked {
			return fmt.Errorf("the header Transfer-Encoding is %q", foreign.Clip(value, LongestQuote))
		}
		h.chunked = true
	case is(name, "connection"):
		for word := range bytes.SplitSeq(value, []byte(",")) {
			switch word = bytes.TrimSpace(word); {
			case is(word, "close"):
				h.closing = true
			case is(word, "keep-alive"):
				h.closing = false
			}
		}
	case is(name, "content-encoding"):
		h.encoding = string(bytes.ToLower(value))
	case is(name, "x-ratelimit-limit"):
		if n, err := strconv.ParseInt(string(value), 10, 64); err == nil && n > 0 {
			h.limit = n
		}
	case is(name, "retry-after"):
		h.retry = string(value)
	}
	return nil
}

// is compares with a word in lower case, without regard to case.
func is(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i := range b {
		c := b[i]
		if c-'A' < 26 {
			c |= 0x20
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// fieldLine reads a header or a trailer.
func fieldLine(line []byte) (name, value []byte, err error) {
	name, value, found := bytes.Cut(line, []byte(":"))
	if !found || !fieldName(name) {
		return nil, nil, fmt.Errorf("a line that is no header: %q", foreign.Clip(line, LongestQuote))
	}
	if value = bytes.Trim(value, " \t"); !fieldValue(value) {
		return nil, nil, fmt.Errorf("a control character in the header %s", name)
	}
	return name, value, nil
}

// fieldName reports the tokens of RFC 9110 section 5.6.2.
func fieldName(b []byte) bool {
	for _, c := range b {
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			continue
		}
		if bytes.IndexByte([]byte("!#$%&'*+.^`|~"), c) < 0 {
			return false
		}
	}
	return len(b) > 0
}

// fieldValue refuses control characters, a line break among them.
func fieldValue(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
