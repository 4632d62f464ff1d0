package wire

import (
	"io"
	"sync/atomic"

	"github.com/destkit/destkit/internal/quantity"
)

// Replies come from outside. Each has a bound, and what all connections hold
// of them together has one as well, which is counted before it is spent.

const (
	// freeRoom of a connection is not counted.
	freeRoom = 64 << 10
	// replyRoom and recordRoom bound the reply to a batch: an error page, and for
	// each record its identifier with a message.
	replyRoom, recordRoom = 512 << 10, 4 << 10
	// mostReplies and usualRecord bound what all connections hold at once.
	mostReplies, usualRecord = 64 << 20, 256
	// MostPlanning bounds the reply to a planning call.
	MostPlanning = 8 << 20
)

// memory counts what the connections of a run hold of replies.
type memory struct {
	most int64
	used atomic.Int64
}

// Bound fits the bounds to batches of a size over so many connections.
func (e *Endpoint) Bound(size, connections int, given int64) {
	if given <= 0 {
		e.Transport.MaxReply = min(int64(replyRoom)+int64(size)*recordRoom, defaultMaxReply)
	}
	e.memory.most = mostReplies + int64(connections)*int64(size)*usualRecord
}

// beyondFree is the part of a buffer that counts.
func beyondFree(size int) int64 { return max(int64(size)-freeRoom, 0) }

// grow gives a larger buffer with what the old one holds, of room for need bytes at
// least; false: all connections together have no more.
func (m *memory) grow(old []byte, held, need int) ([]byte, bool) {
	size := max(2*len(old), need, firstRoom)
	if cost := beyondFree(size); cost > 0 && m.used.Add(cost) > m.most {
		m.used.Add(-cost)
		return old, false
	}
	next := make([]byte, size)
	copy(next, old[:held])
	m.give(old)
	return next, true
}

// give returns a buffer that is not held any more.
func (m *memory) give(buf []byte) {
	if n := beyondFree(len(buf)); n > 0 {
		m.used.Add(-n)
	}
}

// read reads all of r into a buffer, most bytes of it at the most.
func (m *memory) read(buf []byte, r io.Reader, most int64) (all, body []byte, err error) {
	n := 0
	for {
		if n == len(buf) {
			grown, ok := m.grow(buf, n, n+1)
			if !ok {
				return buf, nil, m.full()
			}
			buf = grown
		}
		got, err := r.Read(buf[n:])
		if n += got; int64(n) > most {
			return buf, nil, tooLarge(most)
		}
		switch err {
		case nil:
		case io.EOF:
			return buf, buf[:n], nil
		default:
			return buf, nil, err
		}
	}
}

func (m *memory) full() *Failure {
	return Newf(KindTooLarge, "the replies to all connections have together more than %s", quantity.Count(m.most, "byte"))
}
