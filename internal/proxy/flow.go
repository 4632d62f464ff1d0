package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
)

// Sizes of buffers in bytes.
const (
	readSize = 32 << 10
	headSize = 512      // before anything has come
	outSize  = 64 << 10 // bytes collected before a write
	maxHead  = 256 << 10
	// mostAsked bounds the head of a request: with mostConnections, 32 MiB of heads that stall.
	mostAsked = 16 << 10
	maxLine   = 4 << 10 // of a chunk size
)

// Errors of a flow.
var (
	errHeadTooLarge = errors.New("the head is too large")
	errFraming      = errors.New("the framing is not that of HTTP/1.1")
)

// flow carries bytes in one direction. Bytes to be passed on are collected and
// written before the next read waits, so that nothing is delayed.
type flow struct {
	src net.Conn
	dst net.Conn
	buf []byte
	r,
	w int
	out      []byte
	writeErr error                 // the destination takes no more
	began    func()                // the first byte of a message is there; nil: not needed
	within   func(head bool)       // a head began that is not whole yet, and it ended; nil: not needed
	capture  func(b []byte, n int) // n of the bytes are content, the rest is framing; nil: not needed
}

// newFlow begins with a small buffer: a connection that says nothing is cheap.
func newFlow(src net.Conn) *flow { return &flow{src: src, buf: make([]byte, headSize)} }

// widen makes the buffer large enough for bodies, once there is something to read.
func (f *flow) widen() {
	if len(f.buf) < readSize {
		f.buf = append(f.buf, make([]byte, readSize-len(f.buf))...)
	}
}

// buffered are the bytes that were read and not yet taken.
func (f *flow) buffered() []byte { return f.buf[f.r:f.w] }

// fill waits for more bytes, after everything that was collected is on its way.
func (f *flow) fill() error {
	f.flush()
	if f.r == f.w {
		f.r, f.w = 0, 0
	}
	if f.w == len(f.buf) {
		if f.r > 0 {
			copy(f.buf, f.buf[f.r:f.w])
			f.w -= f.r
			f.r = 0
		} else {
			f.buf = append(f.buf, make([]byte, len(f.buf))...)
		}
	}
	n, err := f.src.Read(f.buf[f.w:])
	f.w += n
	if n > 0 {
		if f.began != nil {
			f.began()
		}
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// flush writes the collected bytes.
func (f *flow) flush() {
	if len(f.out) == 0 {
		return
	}
	if f.writeErr == nil && f.dst != nil {
		_, f.writeErr = f.dst.Write(f.out)
	}
	f.out = f.out[:0]
	if cap(f.out) > 4*outSize {
		f.out = nil
	}
}

// pass takes n bytes of the buffer and passes them on; content of them are content.
func (f *flow) pass(n int, content bool) {
	b := f.buf[f.r : f.r+n]
	f.r += n
	f.send(b)
	if f.capture != nil {
		kept := 0
		if content {
			kept = n
		}
		f.capture(b, kept)
	}
}

func (f *flow) send(b []byte) {
	if len(f.out)+len(b) > outSize {
		f.flush()
		if len(b) > outSize/2 {
			if f.writeErr == nil && f.dst != nil {
				_, f.writeErr = f.dst.Write(b)
			}
			return
		}
	}
	f.out = append(f.out, b...)
}

// head waits for a whole head and returns it, still in the buffer, with the empty
// line at its end.
func (f *flow) head(most int) ([]byte, error) {
	scanned, begun := 0, false
	for {
		if n := headEnd(f.buffered(), scanned); n > 0 {
			return f.buf[f.r : f.r+n], nil
		}
		scanned = max(0, f.w-f.r-3)
		if f.w-f.r >= most {
			return nil, errHeadTooLarge
		}
		if f.within != nil && f.w > f.r && !begun {
			begun = true
			f.within(true)
			defer f.within(false)
		}
		if err := f.fill(); err != nil {
			return nil, err
		}
	}
}

// headEnd is the length of the head in b, 0 when its end is not there. A bare LF
// ends a line, as RFC 9112 2.2 allows.
func headEnd(b []byte, from int) int {
	for i := from; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '\n')
		if n < 0 {
			return 0
		}
		i += n
		switch rest := b[i+1:]; {
		case len(rest) > 0 && rest[0] == '\n':
			return i + 2
		case len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n':
			return i + 3
		}
	}
	return 0
}

// body passes a body on: n bytes, chunks, or everything up to the end.
func (f *flow) body(fr framing) error {
	switch fr.kind {
	case framedNone:
		return nil
	case framedLength:
		return f.length(fr.length)
	case framedChunked:
		return f.chunks()
	}
	return f.rest()
}

func (f *flow) length(n int64) error {
	for n > 0 {
		if f.r == f.w {
			if err := f.fill(); err != nil {
				return inside(err)
			}
		}
		take := int(min(n, int64(f.w-f.r)))
		f.pass(take, true)
		n -= int64(take)
	}
	return nil
}

// rest passes everything on up to the end of the connection.
func (f *flow) rest() error {
	for {
		if f.r < f.w {
			f.pass(f.w-f.r, true)
		}
		if err := f.fill(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// chunks passes a chunked body on with its trailers, as it came.
func (f *flow) chunks() error {
	for {
		n, err := f.line(maxLine)
		if err != nil {
			return err
		}
		size, ok := chunkSize(f.buf[f.r : f.r+n])
		if !ok {
			return errFraming
		}
		f.pass(n, false)
		if size == 0 {
			return f.trailers()
		}
		if err := f.length(size); err != nil {
			return err
		}
		if n, err = f.line(2); err != nil {
			return err
		}
		if end := f.buf[f.r : f.r+n]; string(end) != "\r\n" {
			return errFraming
		}
		f.pass(n, false)
	}
}

func (f *flow) trailers() error {
	for sum := 0; ; {
		n, err := f.line(maxHead)
		if err != nil {
			return err
		}
		if sum += n; sum > maxHead {
			return errHeadTooLarge
		}
		line := f.buf[f.r : f.r+n]
		empty := n <= 2 && len(bytes.Trim(line, "\r\n")) == 0
		f.pass(n, false)
		if empty {
			return nil
		}
	}
}

// line waits for a line of at most so many bytes, its end included, and returns its
// length.
func (f *flow) line(most int) (int, error) {
	for {
		if i := bytes.IndexByte(f.buffered(), '\n'); i >= 0 {
			if i+1 > most {
				return 0, errFraming
			}
			return i + 1, nil
		}
		if f.w-f.r >= most {
			return 0, errFraming
		}
		if err := f.fill(); err != nil {
			return 0, inside(err)
		}
	}
}

// inside keeps an end in the middle of a message apart from one between two.
func inside(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
