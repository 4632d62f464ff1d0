package shelf

import "time"

// WithTimeout lets a test wait less for a database, and between its attempts.
func (s *Shelf) WithTimeout(timeout, pause time.Duration) *Shelf {
	s.timeout, s.pause = timeout, pause
	return s
}

// SweepNow deletes old files whenever it was done last.
func (s *Shelf) SweepNow() {
	s.swept = time.Time{}
	s.sweep()
}

// PartSize is the most that one row takes, AppendPart the statement of an append.
const (
	PartSize   = partSize
	AppendPart = appendPart
)
