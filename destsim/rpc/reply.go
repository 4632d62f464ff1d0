package rpc

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// readReply reads and decodes the body of a reply within the bound.
func (c *Client) readReply(resp *http.Response) ([]byte, error) {
	most := c.MaxReply
	if most <= 0 {
		most = DefaultMaxReply
	}
	raw := &bounded{r: resp.Body, left: most}
	decoded, err := decodeContent(raw, resp.Header.Get("Content-Encoding"))
	if err != nil {
		return nil, fmt.Errorf("read reply: %w", err)
	}
	var body bytes.Buffer
	// What the head says is room to begin with, within reason: it may lie.
	body.Grow(int(min(max(resp.ContentLength, 0), LargeReply)) + bytes.MinRead)
	from := &bounded{r: decoded, left: most}
	if c.Large != nil {
		n, err := body.ReadFrom(io.LimitReader(from, LargeReply+1))
		if err == nil && n > LargeReply {
			ctx := context.Background()
			if resp.Request != nil {
				ctx = resp.Request.Context()
			}
			err = c.Large(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("read reply: %w", err)
		}
	}
	if _, err := body.ReadFrom(from); err != nil {
		return nil, fmt.Errorf("read reply: %w", err)
	}
	return body.Bytes(), nil
}

// decodeContent undoes a Content-Encoding: gzip and deflate are what the
// service offers.
func decodeContent(r io.Reader, encoding string) (io.Reader, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return r, nil
	case "gzip", "x-gzip":
		return gzip.NewReader(r)
	case "deflate":
		return inflate(r)
	}
	return nil, fmt.Errorf("unknown content encoding %q", encoding)
}

// inflate reads the zlib format, which "deflate" names in HTTP, and the bare
// stream that many servers send under that name. A zlib head has method 8 and
// is a multiple of 31 as a 16-bit number (RFC 1950 section 2.2).
func inflate(r io.Reader) (io.Reader, error) {
	br := bufio.NewReader(r)
	head, err := br.Peek(2)
	if err != nil {
		return nil, fmt.Errorf("read deflate head: %w", err)
	}
	if head[0]&15 == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
		return zlib.NewReader(br)
	}
	return flate.NewReader(br), nil
}

// bounded fails, where io.LimitReader would pretend an end, once more than
// left bytes are there.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrReplyTooLarge
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n + int(b.left), ErrReplyTooLarge
	}
	return n, err
}
