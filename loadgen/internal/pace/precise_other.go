//go:build !linux

package pace

import "time"

// precise sleeps for some nanoseconds.
func precise(ns int64) { time.Sleep(time.Duration(ns)) }
