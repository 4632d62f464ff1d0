package destsim

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// speedViolations are get_sync_speed and X-RateLimit-Limit (SPD-*, RL-*).
func speedViolations() []violation {
	return slices.Concat(declaredSpeedViolations(), keptSpeedViolations(), rateLimitViolations())
}

// speedMember sets one member of the result of get_sync_speed; nil drops it.
func speedMember(name string, value any) seams {
	return seams{plan: func(_ *call, v any) any {
		if _, ok := v.(rpc.Speed); !ok {
			return v
		}
		members := tree(v).(map[string]any)
		if members[name] = value; value == nil {
			delete(members, name)
		}
		return members
	}}
}

// needsPlan refuses get_sync_speed with params of a kind.
func needsPlan(refuses func(params map[string]any) bool) seams {
	return seams{parsed: func(c *call) {
		if c.err != nil || c.method != rpc.MethodGetSyncSpeed {
			return
		}
		if params, ok := tree(json.RawMessage(c.params)).(map[string]any); ok && refuses(params) {
			c.fail(rpc.CodeInvalidParams, "invalid params: sync_plan is missing")
		}
	}}
}

// declaredSpeedViolations are wrong answers of get_sync_speed (SPD-001 to
// SPD-005).
func declaredSpeedViolations() []violation {
	return []violation{
		breaks("SPD-001", `get_sync_speed answers "maximum_batch_size":"100"`, speedMember("maximum_batch_size", "100")),
		breaks("SPD-001.2", `get_sync_speed answers "maximum_parallel_batches":0`, speedMember("maximum_parallel_batches", 0)),
		breaks("SPD-001.3", `get_sync_speed answers "maximum_records_per_second":2.5`, speedMember("maximum_records_per_second", 2.5)),
		breaks("SPD-001.4", `get_sync_speed leaves "maximum_parallel_batches" out`, speedMember("maximum_parallel_batches", nil)),
		breaks("SPD-002", "get_sync_speed with empty params is an error",
			needsPlan(func(params map[string]any) bool { return len(params) == 0 })),
		breaks("SPD-002.2", "get_sync_speed without a sync_plan in its params is an error",
			needsPlan(func(params map[string]any) bool { return params["sync_plan"] == nil })),
		breaks("SPD-003", `get_sync_speed answers "maximum_batch_size":100000000`, speedMember("maximum_batch_size", 100000000)),
		breaks("SPD-004", "X-RateLimit-Limit is 500 on every reply",
			seams{write: func(_ *call, h *httpReply) { h.set(rateLimitHeader, "500") }}),
		keeps("SPD-005", "get_sync_speed lowers maximum_records_per_second by 1 with every call", func(*Sim) seams {
			var calls atomic.Int64
			return seams{plan: func(_ *call, value any) any {
				speed, ok := value.(rpc.Speed)
				if ok {
					speed.MaximumRecordsPerSecond = max(1, speed.MaximumRecordsPerSecond-calls.Add(1)+1)
					return speed
				}
				return value
			}}
		}),
	}
}

// keptSpeedViolations are batches below what get_sync_speed declares (SPD-006
// to SPD-008).
func keptSpeedViolations() []violation {
	return []violation{
		breaks("SPD-006", "a batch of more than half of maximum_batch_size is answered 413",
			seams{batch: func(c *call, b *batch) *rpc.Error {
				if int64(b.Len()) > c.sim.speed.Load().MaximumBatchSize/2 {
					c.refuse(http.StatusRequestEntityTooLarge, codeTooLarge, "the batch is too large")
				}
				return nil
			}}),
		breaks("SPD-006.2", "the last record of a batch of maximum_batch_size is acknowledged and not written",
			unwritten(func(r *record, _ *store.Row) bool {
				n := r.batch.Len()
				return int64(n) >= r.batch.call.sim.speed.Load().MaximumBatchSize && n > 1 && r.index == n-1
			})),
		keeps("SPD-007", "a batch of exactly four records is an error while two others of its kind and sync run are processed, which takes at least Delays.Work", func(s *Sim) seams {
			var busy byRun[int]
			return seams{batch: func(c *call, b *batch) *rpc.Error {
				if b.Len() != poolBatch {
					return nil
				}
				run := b.Plan.SyncRunID
				defer busy.change(run, func(n int) int { return n - 1 })
				if busy.change(run, func(n int) int { return n + 1 }) > poolSize {
					return &rpc.Error{Code: rpc.CodeServerError, Message: "no connection is left in the pool"}
				}
				c.sleep(s.delays.Work)
				return nil
			}}
		}),
		keeps("SPD-008", "from the third on, each batch of at least 50 records of one sync run takes a third of Delays.Batch longer than the one before", func(s *Sim) seams {
			var batches byRun[int]
			return seams{batch: func(c *call, b *batch) *rpc.Error {
				if b.Len() < slowBatch {
					return nil
				}
				if n := batches.change(b.Plan.SyncRunID, func(n int) int { return n + 1 }); n > 2 {
					c.sleep(time.Duration(n-2) * s.delays.Batch / 3)
				}
				return nil
			}}
		}),
	}
}

// The sizes that the violations under load look at.
const (
	poolBatch = 4  // SPD-007 acts on batches of exactly so many records
	poolSize  = 2  // and has so many connections
	slowBatch = 50 // SPD-008 acts on batches of so many records or more
)

// byRun keeps a value per sync run. The zero value is ready for use.
type byRun[T any] struct {
	mu   sync.Mutex
	runs map[int64]T
}

// change replaces the value of a run and gives the new one.
func (b *byRun[T]) change(run int64, fn func(T) T) T {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.runs == nil {
		b.runs = map[int64]T{}
	}
	b.runs[run] = fn(b.runs[run])
	return b.runs[run]
}

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

// timeViolations are answers that come late (TIM-*).
func timeViolations() []violation {
	return []violation{
		breaks("TIM-001", "supported_operations of the last object takes Delays.Planning",
			seams{parsed: func(c *call) {
				if c.lastOperations() {
					c.sleep(c.sim.delays.Planning)
				}
			}}),
		breaks("TIM-002", "a batch of the declared size whose plan maps more than identifiers and required fields takes Delays.Batch",
			seams{batch: func(c *call, b *batch) *rpc.Error {
				if int64(b.Len()) == c.sim.speed.Load().MaximumBatchSize && b.plan.mapsOptional() {
					c.sleep(c.sim.delays.Batch)
				}
				return nil
			}}),
		breaks("TIM-003", "supported_operations of the last object sends half of its body and stands still for Delays.Stall",
			seams{write: func(c *call, h *httpReply) {
				if c.lastOperations() {
					h.stall, h.stallAt = c.sim.delays.Stall, len(h.body)/2
				}
			}}),
	}
}

// lastOperations reports whether a call asks for the operations of the object
// that is listed last.
func (c *call) lastOperations() bool {
	return gives(c, rpc.MethodSupportedOperations) && c.ofLast()
}

// mapsOptional reports whether a plan maps a field that a record can do without.
func (p *plan) mapsOptional() bool {
	for _, col := range p.columns {
		if !col.Identifier && !col.Required {
			return true
		}
	}
	return false
}
