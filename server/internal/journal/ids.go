package journal

import (
	"fmt"
	"sync/atomic"
)

// requestIDs gives the ids of requests. They count, so that the same calls get the
// same ids.
type requestIDs struct{ last atomic.Int64 }

// Next is the number of the next request.
func (r *requestIDs) Next() int64 { return r.last.Add(1) }

// At is the last id, for a snapshot.
func (r *requestIDs) At() int64 { return r.last.Load() }

// Restore lets ids go on as they did in a snapshot.
func (r *requestIDs) Restore(last int64) { r.last.Store(last) }

// requestID has a fixed width, so that ids sort as they were given.
func requestID(number int64) string { return fmt.Sprintf("req_%012d", number) }
