//go:build !linux

package loadgen

import "time"

// readCPU knows the time only.
func readCPU() processorTimes { return processorTimes{At: time.Now()} }
