//go:build !linux

package loadgen

import "time"

// precise sleeps for some nanoseconds.
func precise(ns int64) { time.Sleep(time.Duration(ns)) }
