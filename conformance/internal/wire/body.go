package wire

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// readBody reads the body into g as its framing defines, up to a fault.
func (h *headReader) readBody(g *grower, framing string, length int64) {
	switch framing {
	case FramingNone:
	case FramingLength:
		if length > g.max { // the beginning is enough for a report, if the length is true
			h.readN(g, recordedResponse, recordedResponse)
			fail(tooLarge("the body has %s, more than %d", quantity.Count(length, "byte"), g.max))
		}
		h.readN(g, length, length)
	case FramingChunked:
		h.readChunks(g)
	default:
		for h.readSome(g, math.MaxInt64, 0) {
		}
	}
}

// readN reads exactly n bytes of a body of total bytes (0: not known).
func (h *headReader) readN(g *grower, n, total int64) {
	for end := g.size() + n; g.size() < end; {
		if !h.readSome(g, end-g.size(), total) && g.size() < end {
			fail(io.ErrUnexpectedEOF)
		}
	}
}

// readSome reads at most n bytes; it reports whether more can come.
func (h *headReader) readSome(g *grower, n, total int64) bool {
	g.room(total)
	at := len(g.buf)
	got, err := h.br.Read(g.buf[at : int64(at)+min(n, int64(cap(g.buf)-at))])
	g.buf = g.buf[:at+got]
	if g.size() > g.max {
		fail(tooLarge("the body is larger than %s", quantity.Count(g.max, "byte")))
	}
	if err != nil && !errors.Is(err, io.EOF) && int64(got) < n {
		fail(err)
	}
	return err == nil
}

// readChunks reads a chunked body and its trailers (RFC 9112 7.1).
func (h *headReader) readChunks(g *grower) {
	for {
		// The size lines do not count as head, but each is short.
		line := string((&headReader{br: h.br, left: 4 << 10, strict: true}).line())
		digits, _, _ := strings.Cut(line, ";")
		n, err := strconv.ParseInt(strings.TrimRight(digits, " \t"), 16, 64)
		if err != nil || strings.ContainsAny(digits, "+-") {
			fail(malformed("the chunk size %q is not a hexadecimal number", foreign.Clip(line, quoted)))
		}
		if n == 0 {
			h.strict = true
			h.fields(new([]Header))
			return
		}
		h.readN(g, n, 0)
		var end [2]byte
		_, err = io.ReadFull(h.br, end[:])
		fail(eofInside(err, true))
		if end != [2]byte{'\r', '\n'} {
			fail(malformed("a chunk of %s is followed by %q, not by a line break", quantity.Count(n, "byte"), end[:]))
		}
	}
}

// decodeBody undoes the Content-Encoding of a reply. With one that was not offered or is false
// (KindEncoding) the body stays as received.
func (c *Client) decodeBody(q *request, r *Reply, deadline time.Time) error {
	codings := contentCodings(r.Header["Content-Encoding"])
	if len(codings) == 0 || len(r.Raw) == 0 {
		return nil
	}
	if len(codings) > 2 {
		return encodingError("%s on top of each other", quantity.Count(len(codings), "encoding"))
	}
	body := r.Raw
	for _, coding := range slices.Backward(codings) {
		if !q.offers(coding) {
			return encodingError("%q was not offered", foreign.Clip(coding, quoted))
		}
		var err error
		if body, err = c.inflate(coding, body, deadline); err != nil {
			r.partial = body
			if Classify(err, 1) != KindEncoding {
				r.Body = body
			}
			return err
		}
	}
	r.Body = body
	return nil
}

// contentCodings lists the codings in the order in which they were applied.
func contentCodings(values []string) []string {
	var codings []string
	for _, coding := range elements(values) {
		switch coding {
		case "", "identity":
		case "x-gzip": // RFC 9110 8.4.1.3: the same thing
			codings = append(codings, "gzip")
		default:
			codings = append(codings, coding)
		}
	}
	return codings
}

// decodes reports whether this client can decode a coding.
func decodes(coding string) bool { return coding == "gzip" || coding == "deflate" }

// offered are the codings of the request's Accept-Encoding, with their weights.
func (q *request) offered() []string { return elements(canonical(q.header)["Accept-Encoding"]) }

// offers reports whether the request allows a coding that this client can also decode.
func (q *request) offers(coding string) bool {
	offered := q.offered()
	if !decodes(coding) || len(offered) == 0 { // RFC 9110 12.5.3: without the field anything goes
		return decodes(coding)
	}
	for _, one := range offered {
		name, weight, _ := strings.Cut(one, ";")
		if strings.Trim(name, " \t") == coding {
			weight = strings.TrimPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
			return weight == "" || strings.Trim(weight, "0.") != ""
		}
	}
	return false
}

// inflate decodes one layer within the same bounds as a raw body, up to an error.
func (c *Client) inflate(coding string, raw []byte, deadline time.Time) ([]byte, error) {
	src, err := decoder(coding, raw)
	if err != nil {
		return nil, encodingError("the body is not %s: %w", coding, err)
	}
	g := &grower{max: c.opts.MaxBody, budget: &c.budget}
	for {
		g.room(0)
		n, err := src.Read(g.buf[len(g.buf):min(cap(g.buf), len(g.buf)+64<<10)])
		g.buf = g.buf[:len(g.buf)+n]
		switch {
		case g.size() > g.max:
			return g.clip(), tooLarge("the decoded body is larger than %s", quantity.Count(g.max, "byte"))
		case errors.Is(err, io.EOF) && g.lost != nil:
			return g.clip(), g.ended()
		case errors.Is(err, io.EOF):
			return g.take(), nil
		case err != nil:
			return g.clip(), encodingError("the body is not %s: %w", coding, err)
		// A bomb must not hold a call past its deadline; small bodies are not worth the clock.
		case g.size() > 1<<20 && time.Now().After(deadline):
			return g.clip(), &Error{Kind: KindTimeout, Op: "decode content encoding"}
		}
	}
}

// decoder opens one layer. "deflate" is zlib (RFC 9110 8.4.1.2); some servers send the raw stream.
func decoder(coding string, raw []byte) (io.Reader, error) {
	if coding == "gzip" {
		return gzip.NewReader(bytes.NewReader(raw))
	}
	if len(raw) >= 2 && raw[0]&0x0f == 8 && (uint(raw[0])<<8|uint(raw[1]))%31 == 0 {
		return zlib.NewReader(bytes.NewReader(raw))
	}
	return flate.NewReader(bytes.NewReader(raw)), nil
}
