// Package loadgen is the hammer: it sends batches of a custom destination
// protocol (spec 4.2) as fast as asked or as fast as the target takes them, by a
// schedule or in a closed loop, and checks every record's result on the way.
//
// It owns the run: what is sent (objects, mixes, keys), by which connections and phases,
// the figures, their limits and how they are written. Records, batches, connections and
// the schedule are packages below; pages are made of its results elsewhere. It refuses
// to know the judge, the simulator and the service; it never listens, prints or reads
// the environment.
package loadgen

import (
	"time"

	"github.com/destkit/destkit/loadgen/internal/batch"
	"github.com/destkit/destkit/loadgen/internal/failure"
)

// UsageError is a mistake of the caller, in words: nothing was sent.
type UsageError = failure.UsageError

// OwnSpeed is how many records per second one processor prepares and checks in batches
// of a size, without a network; it is measured for so long.
func OwnSpeed(size int, d time.Duration) (float64, error) {
	bare, err := batch.NewBare(size, 0)
	if err != nil {
		return 0, err
	}
	return bare.Speed(d)
}
