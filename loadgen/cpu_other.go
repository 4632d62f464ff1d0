//go:build !linux

package loadgen

import "time"

// readCPU knows the time only.
func readCPU() cpuTimes { return cpuTimes{at: time.Now()} }
