package loadgen

import "time"

// processorTimes is the time that processors have worked: for this process, and for
// the whole machine where known.
type processorTimes struct {
	At           time.Time
	Own, Machine time.Duration
	Known        bool
}

// Since is what was used between two readings; at is then the end.
func (c processorTimes) Since(before processorTimes) processorTimes {
	return processorTimes{At: c.At, Own: c.Own - before.Own, Machine: c.Machine - before.Machine, Known: c.Known && before.Known}
}
