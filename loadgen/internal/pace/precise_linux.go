package pace

import "syscall"

// precise sleeps for some nanoseconds, or less where a signal comes. The
// scheduler's own timers wake up to a millisecond late where nothing else
// runs, and that would be the latency of every request.
func precise(ns int64) {
	ts := syscall.NsecToTimespec(ns)
	_ = syscall.Nanosleep(&ts, nil)
}
