package wire

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// readBody reads the body as its framing says into g, chunk framing removed.
// What was read before an error stays in g.
func (h *headReader) readBody(g *grower, framing string, length int64) ([]Header, error) {
	switch framing {
	case FramingNone:
		return nil, nil
	case FramingLength:
		if length > g.max { // what a report shows of it is enough, if it is not a lie
			if err := h.readN(g, recordedResponse, recordedResponse); err != nil {
				return nil, err
			}
			return nil, tooLarge("the body has %s, more than %d", quantity.Count(length, "byte"), g.max)
		}
		return nil, h.readN(g, length, length)
	case FramingChunked:
		return h.readChunks(g)
	}
	return nil, h.readAll(g)
}

// readN reads exactly n bytes of a body of total bytes (0: not known).
func (h *headReader) readN(g *grower, n, total int64) error {
	for n > 0 {
		if err := g.room(total); err != nil {
			return err
		}
		at := len(g.buf)
		end := int64(at) + min(n, int64(cap(g.buf)-at))
		got, err := h.br.Read(g.buf[at:end])
		g.buf = g.buf[:at+got]
		n -= int64(got)
		if g.size() > g.max {
			return tooLarge("the body is larger than %s", quantity.Count(g.max, "byte"))
		}
		if err != nil && n > 0 {
			return eofInside(err, 1)
		}
	}
	return nil
}

// readAll reads until the peer closes.
func (h *headReader) readAll(g *grower) error {
	for {
		if err := g.room(0); err != nil {
			return err
		}
		got, err := h.br.Read(g.buf[len(g.buf):cap(g.buf)])
		g.buf = g.buf[:len(g.buf)+got]
		if g.size() > g.max {
			return tooLarge("the body is larger than %s", quantity.Count(g.max, "byte"))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readChunks reads a chunked body and its trailers (RFC 9112 7.1).
func (h *headReader) readChunks(g *grower) ([]Header, error) {
	for {
		// The size lines do not count as head, but each is short.
		size := headReader{br: h.br, left: 4 << 10, strict: true}
		line, err := size.line()
		if err != nil {
			return nil, chunkEnd(err)
		}
		n, err := parseChunkSize(string(line))
		if err != nil {
			return nil, err
		}
		if n == 0 {
			// A bare LF ends a line of the head (RFC 9112 2.2), and nothing in the
			// body's framing: parsers disagree on it there.
			h.strict = true
			trailers, err := h.fields()
			return trailers, chunkEnd(err)
		}
		if err := h.readN(g, n, 0); err != nil {
			return nil, err
		}
		var end [2]byte
		if _, err := io.ReadFull(h.br, end[:]); err != nil {
			return nil, chunkEnd(err)
		}
		if end != [2]byte{'\r', '\n'} {
			return nil, malformed("a chunk of %s is followed by %q, not by a line break", quantity.Count(n, "byte"), end[:])
		}
	}
}

// chunkEnd reports whether an end between chunks is still inside the body.
func chunkEnd(err error) error {
	var own *Error
	if errors.As(err, &own) && own.Kind == KindTooLarge {
		return malformed("the line of a chunk size or the trailers are too long")
	}
	return eofInside(err, 1)
}

func parseChunkSize(line string) (int64, error) {
	digits, _, _ := strings.Cut(line, ";")
	digits = strings.TrimRight(digits, " \t")
	n, err := strconv.ParseUint(digits, 16, 63)
	if err != nil || strings.ContainsAny(digits, "+-_") {
		return 0, malformed("the chunk size %q is not a hexadecimal number", foreign.Clip(line, quoted))
	}
	return int64(n), nil
}
