package shelf

import "time"

// WithPatience lets a test wait less for a database, and between its tries.
func (s *Shelf) WithPatience(patience, pause time.Duration) *Shelf {
	s.patience, s.pause = patience, pause
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
