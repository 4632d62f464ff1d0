package source

import (
	"encoding/binary"
	"io"

	"github.com/jackc/pgx/v5/pgproto3"
)

// frontend reads the messages of a server, whose rows are no longer than the limit:
// the driver would make room for whatever length a message announces.
func (l Limits) frontend(r io.Reader, w io.Writer) *pgproto3.Frontend {
	return pgproto3.NewFrontend(&messageLimit{from: r, limits: l.withDefaults()}, w)
}

// messageLimit follows the messages of the protocol: a letter, four bytes of length
// that count themselves, and so much.
type messageLimit struct {
	from   io.Reader
	limits Limits
	head   [5]byte
	have   int // bytes of the head
	left   int // of the body
}

// Read implements io.Reader. The driver sees the head of a message that is too long
// no more than the rest of it.
func (m *messageLimit) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	for at := 0; at < n; {
		if m.left > 0 {
			skip := min(m.left, n-at)
			m.left, at = m.left-skip, at+skip
			continue
		}
		m.head[m.have] = p[at]
		m.have, at = m.have+1, at+1
		if m.have < len(m.head) {
			continue
		}
		m.have = 0
		if m.left = int(binary.BigEndian.Uint32(m.head[1:])) - 4; m.left > m.limits.Row {
			return max(at-len(m.head), 0), m.limits.errRow()
		}
	}
	return n, err
}
