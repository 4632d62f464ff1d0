package shelf

import "time"

// WithPatience lets a test wait less for a database, and for each answer.
func (s *Shelf) WithPatience(patience, attempt time.Duration) *Shelf {
	s.patience, s.attempt = patience, attempt
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
