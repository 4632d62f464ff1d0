// Package cpu reads how long processors have worked.
package cpu

import "time"

// Times is the time that processors have worked: for this process, and for
// the whole machine where known.
type Times struct {
	At           time.Time
	Own, Machine time.Duration
	Known        bool
}

// Since is what was used between two readings; at is then the end.
func (c Times) Since(before Times) Times {
	return Times{At: c.At, Own: c.Own - before.Own, Machine: c.Machine - before.Machine, Known: c.Known && before.Known}
}
