package wire

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// stream is one direction of an in-memory connection: a bounded buffer with
// deadlines on both sides.
type stream struct {
	mu       sync.Mutex
	cond     *sync.Cond
	buf      []byte
	readers  deadline
	writers  deadline
	finished bool // the writer closed: what is buffered may still be read
	dropped  bool // the reader closed: writing is an error
}

func newStream() *stream {
	s := &stream{}
	s.cond = sync.NewCond(&s.mu)
	return s
}

// deadline of one side of a stream; its fields belong to the stream's lock.
type deadline struct {
	timer  *time.Timer
	passed bool
	serial int // tells a timer that it was replaced
}

func (d *deadline) set(s *stream, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.serial++
	d.passed = false
	if !t.IsZero() {
		if wait := time.Until(t); wait <= 0 {
			d.passed = true
		} else {
			serial := d.serial
			d.timer = time.AfterFunc(wait, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				if d.serial == serial {
					d.passed = true
					s.cond.Broadcast()
				}
			})
		}
	}
	s.cond.Broadcast()
}

func (s *stream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.dropped:
			return 0, net.ErrClosed
		case s.readers.passed:
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case len(s.buf) > 0:
			n := copy(p, s.buf)
			if s.buf = s.buf[n:]; len(s.buf) == 0 {
				s.buf = nil
			}
			s.cond.Broadcast()
			return n, nil
		case s.finished:
			return 0, io.EOF
		}
		s.cond.Wait()
	}
}

func (s *stream) write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	written := 0
	for {
		switch {
		case s.finished:
			return written, net.ErrClosed
		case s.dropped:
			return written, &net.OpError{Op: "write", Net: "memory", Err: syscall.EPIPE}
		case s.writers.passed:
			return written, os.ErrDeadlineExceeded
		case written == len(p):
			return written, nil
		}
		if room := min(pipeBuffer-len(s.buf), len(p)-written); room > 0 {
			s.buf = append(s.buf, p[written:written+room]...)
			written += room
			s.cond.Broadcast()
			continue
		}
		s.cond.Wait()
	}
}

// finish closes the stream from the writer's side, or from the reader's.
func (s *stream) finish(reader bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reader {
		s.dropped = true
		s.buf = nil
	} else {
		s.finished = true
	}
	for _, d := range []*deadline{&s.readers, &s.writers} {
		if d.timer != nil && s.finished && s.dropped {
			d.timer.Stop()
		}
	}
	s.cond.Broadcast()
}
