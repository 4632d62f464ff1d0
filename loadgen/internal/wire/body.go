package wire

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// readBody reads what the head announces. The result is a part of l.in.
func (l *Link) readBody(h head) ([]byte, error) {
	most := l.end.Transport.MaxReply
	switch {
	case h.status == 204 || h.status == 304:
		return nil, nil
	case h.chunked:
		return l.readChunks(most)
	case h.length < 0:
		return l.readToEnd(most)
	case h.length > most:
		return nil, tooLarge(most)
	}
	from, size := l.r, int(h.length)
	// The announced length may be false: room grows with the received bytes.
	for l.w-from < size {
		if err := l.fill(min(size-(l.w-from), 1<<20)); err != nil {
			return nil, err
		}
	}
	l.r += size
	if l.r < l.w {
		return nil, Newf(KindHTTP, "the reply is longer than its Content-Length of %d", size)
	}
	return l.in[from:l.r], nil
}

func tooLarge(most int64) *Failure {
	return Newf(KindTooLarge, "the reply has more than %s", quantity.Count(most, "byte"))
}

// readToEnd reads a body that ends with its connection (RFC 9112 section 6.3).
func (l *Link) readToEnd(most int64) ([]byte, error) {
	from := l.r
	for {
		if int64(l.w-from) > most {
			return nil, tooLarge(most)
		}
		err := l.fill(1)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	l.r = l.w
	body := l.in[from:l.w]
	l.drop()
	return body, nil
}

// readChunks joins the chunks in place: each moves down over the lines before.
func (l *Link) readChunks(most int64) ([]byte, error) {
	from, to := l.r, l.r
	for {
		size, err := l.chunkSize(to)
		if err != nil {
			return nil, err
		}
		if size == 0 {
			break
		}
		if int64(to-from)+size > most {
			return nil, tooLarge(most)
		}
		for need := int(size) + 2; l.w-l.r < need; {
			if err := l.fill(min(need-(l.w-l.r), 1<<20)); err != nil {
				return nil, err
			}
		}
		if string(l.in[l.r+int(size):l.r+int(size)+2]) != "\r\n" {
			return nil, Newf(KindHTTP, "a chunk does not end where it says")
		}
		copy(l.in[to:], l.in[l.r:l.r+int(size)])
		to += int(size)
		l.r += int(size) + 2
	}
	// Trailers are read and dropped.
	for trailers := 0; ; {
		line, err := l.line()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			break
		}
		if trailers += len(line); trailers > longestHead {
			return nil, Newf(KindHTTP, "the trailers have more than %d bytes", longestHead)
		}
		if _, _, err := fieldLine(line); err != nil {
			return nil, Newf(KindHTTP, "the end of the chunks has %v", err)
		}
	}
	if l.r < l.w {
		return nil, Newf(KindHTTP, "there are bytes after the last chunk")
	}
	return l.in[from:to], nil
}

// chunkSize reads the line before a chunk. The bytes between keep and the line
// are no longer needed, so an endless train of small chunks needs no room.
func (l *Link) chunkSize(keep int) (int64, error) {
	if l.r-keep > 64<<10 {
		l.w = keep + copy(l.in[keep:], l.in[l.r:l.w])
		l.r = keep
	}
	line, err := l.line()
	if err != nil {
		return 0, err
	}
	digits, _, _ := bytes.Cut(line, []byte(";"))
	digits = bytes.TrimRight(digits, " \t")
	size, err := strconv.ParseUint(string(digits), 16, 62)
	if err != nil || digits[0] == '+' {
		return 0, Newf(KindHTTP, "the length of a chunk is %q", foreign.Clip(line, LongestQuote))
	}
	return int64(size), nil
}

// line reads a line, without its end.
func (l *Link) line() ([]byte, error) {
	for seen := 0; ; {
		if end := bytes.Index(l.in[l.r+seen:l.w], crlf); end >= 0 {
			line := l.in[l.r : l.r+seen+end]
			l.r += seen + end + 2
			return line, nil
		}
		if l.w-l.r > longestHead {
			return nil, Newf(KindHTTP, "a line of the body has more than %d bytes", longestHead)
		}
		seen = max(0, l.w-l.r-1)
		if err := l.fill(1); err != nil {
			return nil, err
		}
	}
}

// decompress opens what undoes a Content-Encoding.
func decompress(encoding string, body []byte) (io.Reader, error) {
	switch encoding {
	case "gzip", "x-gzip":
		return gzip.NewReader(bytes.NewReader(body))
	case "deflate":
		// The name means zlib, and many servers send the bare stream.
		if r, err := zlib.NewReader(bytes.NewReader(body)); err == nil {
			return r, nil
		}
		return flate.NewReader(bytes.NewReader(body)), nil
	}
	return nil, fmt.Errorf("unknown content encoding")
}
