package httpfront

import (
	"bufio"
	"bytes"
	"net/http"
	"strings"
)

// HeadLimit is the longest head that the fast path reads.
const HeadLimit = 8 << 10

// headPartial means that the end of the head has not come yet.
const headPartial = headEnded + 1

// headMemo remembers the last head of a connection: as a rule all of them are
// the same but for Content-Length. net/http interprets a head.
type headMemo struct {
	before, after []byte        // the head around the digits of Content-Length
	request       *http.Request // with an empty body
	apart         func(path string) bool

	text   bytes.Reader
	reader *bufio.Reader
}

// match looks for a head at the start of text. With headUsual it ends at
// text[n] and announces a body of length bytes.
func (m *headMemo) match(text []byte) (n, length, verdict int) {
	if m.request != nil && bytes.HasPrefix(text, m.before) {
		n, length, ok := digitsAt(text, len(m.before))
		if ok && bytes.HasPrefix(text[n:], m.after) {
			m.request.ContentLength = int64(length)
			return n + len(m.after), length, headUsual
		}
	}
	const start = "POST /"
	if !strings.HasPrefix(start, string(text[:min(len(text), len(start))])) {
		return 0, 0, headForeign
	}
	end := bytes.Index(text[:min(len(text), HeadLimit)], []byte("\r\n\r\n"))
	if end < 0 {
		if len(text) >= HeadLimit {
			return 0, 0, headForeign
		}
		return 0, 0, headPartial
	}
	return m.learn(text[:end+4])
}

// digitsAt reads a number of at most 15 digits.
func digitsAt(text []byte, i int) (end, n int, ok bool) {
	from := i
	for i < len(text) && text[i]-'0' <= 9 && i-from < 15 {
		n = n*10 + int(text[i]-'0')
		i++
	}
	return i, n, i > from
}

// learn reads a whole head and remembers it, when it is a usual one.
func (m *headMemo) learn(head []byte) (n, length, verdict int) {
	m.request = nil
	at, ok := usualHead(head)
	if !ok {
		return 0, 0, headForeign
	}
	if m.reader == nil {
		m.reader = bufio.NewReaderSize(nil, 512)
	}
	m.text.Reset(head)
	m.reader.Reset(&m.text)
	request, err := http.ReadRequest(m.reader)
	if err != nil || m.apart(request.URL.Path) {
		return 0, 0, headForeign
	}
	end, length, ok := digitsAt(head, at)
	if !ok || int64(length) != request.ContentLength {
		return 0, 0, headForeign
	}
	request.Body = http.NoBody
	m.request = request
	m.before = append(m.before[:0], head[:at]...)
	m.after = append(m.after[:0], head[end:]...)
	return len(head), length, headUsual
}

// usualHead is strict: whatever it does not know is not usual. at is the index
// of the value of Content-Length.
func usualHead(head []byte) (at int, ok bool) {
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	target, ok := bytes.CutSuffix(line, []byte(" HTTP/1.1"))
	if !ok || !plainTarget(target[len("POST "):]) {
		return 0, false
	}
	hosts := 0
	for len(rest) > 2 {
		i := len(head) - len(rest)
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		name, value, found := bytes.Cut(line, []byte(":"))
		if !found || !token(name) || !plainValue(value) {
			return 0, false
		}
		spaces := len(value) - len(bytes.TrimLeft(value, " \t"))
		value = bytes.Trim(value, " \t")
		switch string(bytes.ToLower(name)) {
		case "content-length":
			if at != 0 || !allDigits(value) {
				return 0, false
			}
			at = i + len(name) + 1 + spaces
		case "host":
			hosts++
			if !plainHost(value) {
				return 0, false
			}
		case "connection":
			if !bytes.EqualFold(value, []byte("keep-alive")) {
				return 0, false
			}
		case "transfer-encoding", "expect", "upgrade", "trailer", "te", "http2-settings":
			return 0, false
		}
	}
	return at, at > 0 && hosts == 1
}

// plainTarget takes visible ASCII without a fragment.
func plainTarget(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c >= 0x7f || c == '#' {
			return false
		}
	}
	return true
}

// token takes the name of a header (RFC 9110 section 5.6.2) as clients write it.
func token(name []byte) bool {
	for _, c := range name {
		if c|0x20-'a' > 'z'-'a' && c-'0' > 9 && c != '-' && c != '_' {
			return false
		}
	}
	return len(name) > 0
}

// plainValue takes what net/http takes, ASCII only.
func plainValue(value []byte) bool {
	for _, c := range value {
		if c < ' ' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// plainHost takes names, addresses and ports.
func plainHost(host []byte) bool {
	for _, c := range host {
		if c|0x20-'a' > 'z'-'a' && c-'0' > 9 && bytes.IndexByte([]byte(".:-_[]"), c) < 0 {
			return false
		}
	}
	return len(host) > 0
}

func allDigits(value []byte) bool {
	end, _, ok := digitsAt(value, 0)
	return ok && end == len(value)
}
