package destsim

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// The sizes that the violations under load look at.
const (
	poolBatch = 4  // SPD-007 acts on batches of exactly so many records
	poolSize  = 2  // and has so many connections
	slowBatch = 50 // SPD-008 acts on batches of so many records or more
)

const rateLimitHeader = "X-RateLimit-Limit" // spec 8

// speedViolations are wrong answers of get_sync_speed, batches below its declared
// limits, wrong rate limit headers, limits that are kept otherwise, and answers that
// come late (SPD-*, RL-*, TIM-*).
var speedViolations = []violation{
	breaks("SPD-001", `get_sync_speed answers "maximum_batch_size":"100"`, speedMember("maximum_batch_size", "100")),
	breaks("SPD-001.2", `get_sync_speed answers "maximum_parallel_batches":0`, speedMember("maximum_parallel_batches", 0)),
	breaks("SPD-001.3", `get_sync_speed answers "maximum_records_per_second":2.5`, speedMember("maximum_records_per_second", 2.5)),
	breaks("SPD-001.4", `get_sync_speed leaves "maximum_parallel_batches" out`, speedMember("maximum_parallel_batches", nil)),
	breaks("SPD-002", "get_sync_speed with empty params is an error",
		needsPlan(func(params map[string]any) bool { return len(params) == 0 })),
	breaks("SPD-002.2", "get_sync_speed without a sync_plan in its params is an error",
		needsPlan(func(params map[string]any) bool { return params["sync_plan"] == nil })),
	breaks("SPD-003", `get_sync_speed answers "maximum_batch_size":100000000`, speedMember("maximum_batch_size", 100000000)),
	breaks("SPD-004", "X-RateLimit-Limit is 500 on every reply", limitOf(anyCall, "500")),
	counts("SPD-005", "get_sync_speed lowers maximum_records_per_second by 1 with every call", func(next func() int64) seams {
		return planned(func(_ *call, speed rpc.Speed) any {
			speed.MaximumRecordsPerSecond = max(1, speed.MaximumRecordsPerSecond-next()+1)
			return speed
		})
	}),
	breaks("SPD-006", "a batch of more than half of maximum_batch_size is answered 413", batched(func(c *call, b *batch) {
		if int64(b.Len()) > c.sim.speed.Load().MaximumBatchSize/2 {
			c.refuse(http.StatusRequestEntityTooLarge, codeTooLarge, "the batch is too large")
		}
	})),
	breaks("SPD-006.2", "the last record of a batch of maximum_batch_size is acknowledged and not written",
		unwritten(func(r *record, _ *store.Row) bool {
			n := r.batch.Len()
			return int64(n) >= r.batch.call.sim.speed.Load().MaximumBatchSize && n > 1 && r.index == n-1
		})),
	keeps("SPD-007", "a batch of exactly four records is an error while two others of its kind and sync run are processed, which takes at least Delays.Work", func() seams {
		var busy byRun[int]
		return batched(func(c *call, b *batch) {
			if b.Len() != poolBatch {
				return
			}
			run := b.Plan.SyncRunID
			defer busy.change(run, func(n int) int { return n - 1 })
			if busy.change(run, oneMore) > poolSize {
				c.fail(rpc.CodeServerError, "no connection is left in the pool")
				return
			}
			c.sleep(c.sim.delays.Work)
		})
	}),
	keeps("SPD-008", "from the third on, each batch of at least 50 records of one sync run takes a tenth of Delays.Batch longer than the one before", func() seams {
		var batches byRun[int]
		return batched(func(c *call, b *batch) {
			if b.Len() >= slowBatch {
				if n := batches.change(b.Plan.SyncRunID, oneMore); n > 2 {
					c.sleep(time.Duration(n-2) * c.sim.delays.Batch / 10)
				}
			}
		})
	}),

	breaks("RL-001", "X-RateLimit-Limit of get_sync_speed is 100/s", limitOf(asksSpeed, "100/s")),
	breaks("RL-001.2", "X-RateLimit-Limit of get_sync_speed is 100;w=60", limitOf(asksSpeed, "100;w=60")),
	breaks("RL-001.3", "X-RateLimit-Limit of get_sync_speed is 1.5", limitOf(asksSpeed, "1.5")),
	breaks("RL-001.4", "X-RateLimit-Limit of get_sync_speed is 0", limitOf(asksSpeed, "0")),
	breaks("RL-001.5", "X-RateLimit-Limit of get_sync_speed is -1", limitOf(asksSpeed, "-1")),
	breaks("RL-001.6", "X-RateLimit-Limit of get_sync_speed is 1e3", limitOf(asksSpeed, "1e3")),
	breaks("RL-002", "X-RateLimit-Limit of get_sync_speed stands on two lines with the same value", written(asksSpeed, func(_ *call, h *httpReply) {
		value := cmp.Or(h.header.Get(rateLimitHeader), "50000")
		h.set(rateLimitHeader, value)
		h.header.Add(rateLimitHeader, value)
	})),
	counts("RL-003", "X-RateLimit-Limit is 50000 and 100000 by turns", func(next func() int64) seams {
		return seams{write: func(_ *call, h *httpReply) { h.set(rateLimitHeader, strconv.FormatInt(50000*(1+(next()+1)%2), 10)) }}
	}),
	keeps("RL-004", "X-RateLimit-Limit is 1000, and more than 500 calls of test_connection within one second are answered 429", func() seams {
		admitted, limited := window{most: 500}, limitOf(anyCall, "1000")
		limited.parsed = func(c *call) {
			if gives(c, rpc.MethodTestConnection) && !admitted.enter(c.sim.clock()) {
				c.tooFast("more requests per second than the gateway takes")
			}
		}
		return limited
	}),
	keeps("RL-005", "from the 129th sync_batch of a sync run within one second on, batches are acknowledged and not stored", func() seams {
		var stored byRun[*window]
		return batched(func(c *call, b *batch) {
			w := stored.change(b.Plan.SyncRunID, func(w *window) *window { return cmp.Or(w, &window{most: 128}) })
			if !w.enter(c.sim.clock()) {
				b.acknowledge()
			}
		})
	}),

	breaks("TIM-001", "supported_operations of the last object takes Delays.Planning",
		called(lastOperations, func(c *call) { c.sleep(c.sim.delays.Planning) })),
	breaks("TIM-002", "a batch of the declared size whose plan maps more than identifiers and required fields takes Delays.Batch", batched(func(c *call, b *batch) {
		if int64(b.Len()) == c.sim.speed.Load().MaximumBatchSize && b.plan.mapsOptional() {
			c.sleep(c.sim.delays.Batch)
		}
	})),
	breaks("TIM-003", "supported_operations of the last object sends half of its body and stands still for Delays.Stall",
		written(lastOperations, func(c *call, h *httpReply) { h.stall, h.stallAt = c.sim.delays.Stall, len(h.body)/2 })),
}

// speedMember sets one member of the result of get_sync_speed; nil drops it.
func speedMember(name string, value any) seams {
	return planned(func(_ *call, v rpc.Speed) any {
		members := tree(v).(map[string]any)
		if members[name] = value; value == nil {
			delete(members, name)
		}
		return members
	})
}

// needsPlan refuses get_sync_speed with params of a kind.
func needsPlan(refuses func(params map[string]any) bool) seams {
	return called(speedReply, func(c *call) {
		if params, ok := tree(json.RawMessage(c.params)).(map[string]any); ok && refuses(params) {
			c.fail(rpc.CodeInvalidParams, "invalid params: sync_plan is missing")
		}
	})
}

func anyCall(*call) bool { return true }

func asksSpeed(c *call) bool { return c.method == rpc.MethodGetSyncSpeed }

// limitOf gives the replies that are meant another rate limit header.
func limitOf(meant func(c *call) bool, value string) seams {
	return written(meant, func(_ *call, h *httpReply) { h.set(rateLimitHeader, value) })
}

// window admits so many calls within any second. It keeps the times of the
// last ones that were admitted.
type window struct {
	most  int
	mu    sync.Mutex
	times []time.Time
}

func (w *window) enter(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.times = slices.DeleteFunc(w.times, func(t time.Time) bool { return now.Sub(t) >= time.Second })
	if len(w.times) >= w.most {
		return false
	}
	w.times = append(w.times, now)
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

// acknowledge answers the batch in that way and writes nothing.
func (b *batch) acknowledge() { b.call.answer(json.RawMessage(appendResults(nil, b.acknowledged()))) }

// lastOperations reports whether a call requests the operations of the object
// that is listed last.
func lastOperations(c *call) bool { return gives(c, rpc.MethodSupportedOperations) && c.ofLast() }

// mapsOptional reports whether a plan maps a field that a record can do without.
func (p *plan) mapsOptional() bool {
	for _, col := range p.columns {
		if !col.Identifier && !col.Required {
			return true
		}
	}
	return false
}
