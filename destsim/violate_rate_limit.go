package destsim

import (
	"cmp"
	"encoding/json"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
)

const rateLimitHeader = "X-RateLimit-Limit" // spec 8

// speedLimit gives the reply to get_sync_speed another rate limit header.
func speedLimit(value string) seams {
	return seams{write: func(c *call, h *httpReply) {
		if c.method == rpc.MethodGetSyncSpeed {
			h.set(rateLimitHeader, value)
		}
	}}
}

// rateLimitViolations are wrong rate limit headers and limits that are kept
// otherwise than declared (RL-*).
func rateLimitViolations() []violation {
	return []violation{
		breaks("RL-001", "X-RateLimit-Limit of get_sync_speed is 100/s", speedLimit("100/s")),
		breaks("RL-001.2", "X-RateLimit-Limit of get_sync_speed is 100;w=60", speedLimit("100;w=60")),
		breaks("RL-001.3", "X-RateLimit-Limit of get_sync_speed is 1.5", speedLimit("1.5")),
		breaks("RL-001.4", "X-RateLimit-Limit of get_sync_speed is 0", speedLimit("0")),
		breaks("RL-001.5", "X-RateLimit-Limit of get_sync_speed is -1", speedLimit("-1")),
		breaks("RL-001.6", "X-RateLimit-Limit of get_sync_speed is 1e3", speedLimit("1e3")),
		breaks("RL-002", "X-RateLimit-Limit of get_sync_speed stands on two lines with the same value",
			seams{write: func(c *call, h *httpReply) {
				if c.method == rpc.MethodGetSyncSpeed {
					value := cmp.Or(h.header.Get(rateLimitHeader), "50000")
					h.set(rateLimitHeader, value)
					h.header.Add(rateLimitHeader, value)
				}
			}}),
		keeps("RL-003", "X-RateLimit-Limit is 50000 and 100000 by turns", func(*Sim) seams {
			var calls atomic.Int64
			return seams{write: func(_ *call, h *httpReply) {
				h.set(rateLimitHeader, strconv.FormatInt(50000*(1+(calls.Add(1)+1)%2), 10))
			}}
		}),
		keeps("RL-004", "X-RateLimit-Limit is 1000, and more than 500 calls of test_connection within one second are answered 429", func(s *Sim) seams {
			admitted := window{most: 500}
			return seams{
				parsed: func(c *call) {
					if c.err == nil && c.method == rpc.MethodTestConnection && !admitted.enter(s.clock()) {
						c.tooFast("more requests per second than the gateway takes")
					}
				},
				write: func(_ *call, h *httpReply) { h.set(rateLimitHeader, "1000") },
			}
		}),
		keeps("RL-005", "from the 129th sync_batch of a sync run within one second on, batches are acknowledged and not stored", func(s *Sim) seams {
			var stored byRun[*window]
			return seams{batch: func(c *call, b *batch) *rpc.Error {
				w := stored.change(b.Plan.SyncRunID, func(w *window) *window {
					if w == nil {
						w = &window{most: 128}
					}
					return w
				})
				if !w.enter(s.clock()) {
					c.answer(json.RawMessage(appendResults(nil, b.acknowledged())))
				}
				return nil
			}}
		}),
	}
}

// window admits so many calls within any second. It keeps the times of the
// last ones that were admitted.
type window struct {
	most  int
	mu    sync.Mutex
	times []time.Time
	next  int // the oldest once times is full
}

func (w *window) enter(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.times) < w.most {
		w.times = append(w.times, now)
		return true
	}
	if now.Sub(w.times[w.next]) < time.Second {
		return false
	}
	w.times[w.next] = now
	w.next = (w.next + 1) % w.most
	return true
}

// acknowledged are results that call every record of the batch a success.
func (b *batch) acknowledged() []result {
	results := make([]result, 0, b.to-b.from)
	for i := b.from; i < b.to; i++ {
		identifier, _ := b.Record(i).Field(b.identifier.APIName)
		results = append(results, result{identifier: identifier, success: true})
	}
	return results
}
