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

import "github.com/destkit/destkit/loadgen/internal/wire"

// UsageError is a mistake of the caller, in words: nothing was sent.
type UsageError = wire.UsageError
