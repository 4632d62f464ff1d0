package loadgen

import "time"

// cpuTimes is the time that processors have worked: for this process, and for
// the whole machine where known.
type cpuTimes struct {
	at           time.Time
	own, machine time.Duration
	known        bool
}

// since is what was used between two readings; at is then the end.
func (c cpuTimes) since(before cpuTimes) cpuTimes {
	return cpuTimes{at: c.at, own: c.own - before.own, machine: c.machine - before.machine, known: c.known && before.known}
}
