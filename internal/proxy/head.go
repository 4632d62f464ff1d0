package proxy

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
)

// framing is how a body is delimited (RFC 9112 6.3).
type framing struct {
	kind   framingKind
	length int64
}

type framingKind uint8

const (
	framedNone framingKind = iota
	framedLength
	framedChunked
	framedClose
)

// requestHead is what the proxy reads of a request's head.
type requestHead struct {
	method, target string
	header         []conformance.HeaderLine
	framing        framing
	refuse         string // why it is not passed on
	hostAt, hostTo int    // where the value of Host is in the head; 0: there is none
}

// readRequest takes the head of a request apart. Ambiguous heads are refused: the
// proxy and the endpoint must agree on where a request ends.
func readRequest(raw []byte) *requestHead {
	h := &requestHead{}
	head := string(raw) // one copy for all of its parts
	end := strings.IndexByte(head, '\n')
	first, crlf := strings.CutSuffix(head[:end], "\r")
	method, rest, ok := strings.Cut(first, " ")
	target, proto, ok2 := strings.Cut(rest, " ")
	h.method, h.target = method, target
	switch {
	case !crlf:
		h.refuse = "a line of the head ends with LF alone"
		return h
	case strings.ContainsFunc(target, func(c rune) bool { return c <= ' ' || c == 0x7f }):
		h.refuse = "the target of the request has a control character"
		return h
	case !ok || !ok2 || method == "" || target == "" || proto != "HTTP/1.1" && proto != "HTTP/1.0":
		h.refuse = "the request line is not that of HTTP/1.1"
		return h
	case method == http.MethodConnect || target[0] != '/' && target != "*":
		h.refuse = "the request is one to a forward proxy: give the caller the address of this proxy as the URL of the endpoint"
		return h
	}
	length, chunked := int64(-1), false
	for at := end + 1; at < len(head); {
		n := strings.IndexByte(head[at:], '\n')
		line, crlf := strings.CutSuffix(head[at:at+n], "\r")
		from := at
		if !crlf {
			h.refuse = "a line of the head ends with LF alone"
			return h
		}
		if at += n + 1; len(line) == 0 {
			break
		}
		colon := strings.IndexByte(line, ':')
		if colon <= 0 || !isToken(line[:colon]) || strings.ContainsAny(line, "\r\x00") {
			h.refuse = "a header line is not that of HTTP/1.1"
			return h
		}
		name, value := line[:colon], strings.Trim(line[colon+1:], " \t")
		h.header = append(h.header, conformance.HeaderLine{Name: name, Value: value})
		switch len(name) {
		case len("host"):
			if strings.EqualFold(name, "host") {
				if h.hostTo > 0 {
					h.refuse = "there are two Host headers"
					return h
				}
				h.hostAt, h.hostTo = from+colon+1, from+len(line)
			}
		case len("content-length"):
			if strings.EqualFold(name, "content-length") {
				n, err := strconv.ParseUint(value, 10, 63)
				if err != nil || length >= 0 && length != int64(n) {
					h.refuse = "the Content-Length is no number, or there are two"
					return h
				}
				length = int64(n)
			}
		case len("transfer-encoding"):
			if strings.EqualFold(name, "transfer-encoding") {
				if !strings.EqualFold(value, "chunked") || chunked {
					h.refuse = "the Transfer-Encoding is not chunked"
					return h
				}
				chunked = true
			}
		}
	}
	switch {
	case chunked && proto == "HTTP/1.0":
		h.refuse = "HTTP/1.0 has no Transfer-Encoding"
	case chunked && length >= 0:
		h.refuse = "there are both a Content-Length and a Transfer-Encoding"
	case chunked:
		h.framing = framing{framedChunked, -1}
	case length > 0:
		h.framing = framing{framedLength, length}
	}
	return h
}

// isToken reports whether a name has only the characters of one (RFC 9110 5.6.2).
func isToken(name string) bool {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return name != ""
}

// responseHead is what the proxy reads of a response's head.
type responseHead struct {
	status  int
	framing framing
}

// readResponse takes the head of a response apart; ok is false for one whose end
// is unknown: it is passed on up to the end of the connection.
func readResponse(head []byte, method string) (h responseHead, ok bool) {
	end := bytes.IndexByte(head, '\n')
	line := head[:end]
	if !bytes.HasPrefix(line, []byte("HTTP/1.")) || len(line) < 12 || line[8] != ' ' {
		return h, false
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil || status < 100 || len(line) > 12 && line[12] != ' ' && line[12] != '\r' {
		return h, false
	}
	h.status = status
	length, chunked := int64(-1), false
	for at := end + 1; at < len(head); {
		n := bytes.IndexByte(head[at:], '\n')
		line := bytes.TrimSuffix(head[at:at+n], []byte("\r"))
		at += n + 1
		colon := bytes.IndexByte(line, ':')
		if colon <= 0 {
			if len(line) == 0 {
				continue
			}
			return h, false
		}
		name := line[:colon]
		switch {
		case len(name) == len("content-length") && strings.EqualFold(string(name), "content-length"):
			n, err := strconv.ParseUint(string(bytes.Trim(line[colon+1:], " \t")), 10, 63)
			if err != nil || length >= 0 && length != int64(n) {
				return h, false
			}
			length = int64(n)
		case len(name) == len("transfer-encoding") && strings.EqualFold(string(name), "transfer-encoding"):
			if !strings.EqualFold(string(bytes.Trim(line[colon+1:], " \t")), "chunked") {
				return h, false
			}
			chunked = true
		}
	}
	switch {
	case status < 200 || method == http.MethodHead || status == http.StatusNoContent || status == http.StatusNotModified:
		h.framing = framing{framedNone, 0}
	case chunked && length >= 0:
		return h, false
	case chunked:
		h.framing = framing{framedChunked, -1}
	case length >= 0:
		h.framing = framing{framedLength, length}
	default:
		h.framing = framing{framedClose, -1}
	}
	return h, true
}

// chunkSize reads the line of a chunk size.
func chunkSize(line []byte) (int64, bool) {
	if !bytes.HasSuffix(line, []byte("\r\n")) {
		return 0, false
	}
	digits, _, _ := bytes.Cut(line[:len(line)-2], []byte(";"))
	digits = bytes.TrimRight(digits, " \t")
	if len(digits) == 0 || len(digits) > 15 {
		return 0, false
	}
	var n int64
	for _, c := range digits {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | int64(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			n = n<<4 | int64(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return n, true
}
