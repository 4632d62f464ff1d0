package destsim

import (
	"bytes"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// statelessViolations are memory that a destination must not have (STA-*).
var statelessViolations = []violation{
	keeps("STA-001", "list_fields is answered from a cache for Delays.Cache; a field that a batch creates clears it", cachedFields),
	keeps("STA-002", "sync_batch with 7, 8 or 9 records is an error when it is the first call of its connection",
		atFirst(func(first func(c *call) bool) seams {
			return refused(rpc.CodeServerError, "call list_fields first", func(b *batch) bool { return b.warming() && first(b.call) })
		})),
	keeps("STA-002.2", "sync_batch with 7, 8 or 9 records is acknowledged and not written when it is the first call of its connection",
		atFirst(func(first func(c *call) bool) seams {
			return unwritten(func(r *record, _ *store.Row) bool { return r.batch.warming() && first(r.batch.call) })
		})),
	keeps("STA-003", "the batch that follows a batch without records in its sync run is answered by the first identifier of that one's object", rememberedObject),
	keeps("STA-003.2", "a batch that comes right after list_fields and supported_operations of another object, or after these and get_sync_speed, is written into that object", strayBatches),
	keeps("STA-004", "an upsert record whose content was written before is acknowledged and not executed", rememberedRecords,
		Also{"FLD-014", "values that change back are remembered"}, Also{"DAT-016", "arrays that change back are remembered"}),
	keeps("STA-005", `supported_operations without a cookie is an error -32000 "no session" when it is the first call of its connection`,
		atFirst(func(first func(c *call) bool) seams {
			return called(giving(rpc.MethodSupportedOperations), func(c *call) {
				if first(c) && len(c.r.Cookies()) == 0 {
					c.fail(rpc.CodeServerError, "no session")
				}
			})
		})),
	keeps("STA-006", "an update batch whose object, operation and records equal an earlier one is answered by the earlier result and not executed", rememberedResults),
	keeps("STA-007", `after a restart the first call of supported_operations is an error -32000 "warming up"`, func() seams {
		var cold atomic.Bool
		s := called(giving(rpc.MethodSupportedOperations), func(c *call) {
			if cold.CompareAndSwap(true, false) {
				c.fail(rpc.CodeServerError, "warming up")
			}
		})
		s.restart = func(*Sim) { cold.Store(true) }
		return s
	}),
}

// warming reports whether a batch has the size that STA-002 looks at.
func (b *batch) warming() bool { return 7 <= b.Len() && b.Len() <= 9 }

// cachedFields is STA-001. The destination knows of the fields that it creates
// itself, so those are listed at once; only a change from outside stays unseen.
func cachedFields() seams {
	type entry struct {
		fields any
		custom int // fields that batches had created by then
		until  time.Time
	}
	var cache shared[string, entry]
	cached := planned(func(c *call, v fieldsResult) any {
		now, custom := c.sim.clock(), c.sim.catalogue.Load().byName[c.object].customFields()
		return cache.change(c.object, func(e entry) entry {
			if e.custom == custom && now.Before(e.until) {
				return e
			}
			return entry{v, custom, now.Add(c.sim.delays.Cache)}
		}).fields
	})
	cached.restart = func(*Sim) { cache.clear() }
	return cached
}

// customFields counts the fields that were created on write.
func (o *object) customFields() (n int) {
	if o != nil {
		for _, f := range o.fields {
			if f.custom {
				n++
			}
		}
	}
	return n
}

// rememberedObject is STA-003: the plan of a batch without records is kept for
// the next batch of its sync run, and nothing looks at the plan of that one.
func rememberedObject() seams {
	var left byRun[*object]
	var stale perCall[*object]
	return seams{
		batch: func(c *call, b *batch) {
			if stale.set(c, left.take(b.Plan.SyncRunID)); b.Len() == 0 {
				left.set(b.Plan.SyncRunID, b.object)
			}
		},
		results: func(c *call, rs []result) []result {
			if o := stale.take(c); o != nil {
				for i := range rs {
					rs[i].identifier, _ = c.batch.Record(c.batch.from + i).Field(o.firstIdentifier().APIName)
				}
			}
			return rs
		},
		answered: stale.forget,
	}
}

// rememberedRecords is STA-004.
func rememberedRecords() seams {
	var seen shared[fingerprint, bool]
	return seams{apply: func(_ *call, r *record, next next) result {
		if r.operation != rpc.OperationUpsert {
			return next(r)
		}
		content := r.batch.fingerprint(r.index, r.index+1)
		if seen.get(content) {
			return r.ok()
		}
		done := next(r)
		if done.success {
			seen.set(content, true)
		}
		return done
	}}
}

// rememberedResults is STA-006.
func rememberedResults() seams {
	var results shared[fingerprint, []byte]
	var contents perCall[fingerprint]
	return seams{
		batch: func(c *call, b *batch) {
			if b.operation != rpc.OperationUpdate || b.Len() == 0 {
				return
			}
			content := b.fingerprint(0, b.Len())
			if result := results.get(content); result != nil {
				c.answer(json.RawMessage(result))
				return
			}
			contents.set(c, content)
		},
		answered: func(c *call) {
			if content := contents.take(c); c.err == nil && content != (fingerprint{}) {
				results.set(content, bytes.Clone(c.result))
			}
		},
	}
}

// strayBatches is STA-003.2: the last plan decides where a batch goes. Results
// are those of the plan that the batch brings, and nothing of it is stored
// there.
func strayBatches() seams {
	var last plannedLast
	var astray perCall[*object]
	return seams{
		parsed: func(c *call) {
			name := last.call(c)
			o := c.sim.catalogue.Load().byName[name]
			if c.method == rpc.MethodSyncBatch && c.err == nil && o != nil && name != c.object {
				astray.set(c, o)
			}
		},
		rows: func(c *call, _ *record, rows store.Rows) store.Rows {
			if astray.get(c) != nil {
				return frozen(rows)
			}
			return rows
		},
		apply: func(c *call, r *record, next next) result {
			done := next(r)
			o := astray.get(c)
			if o == nil || !done.success || done.skipped || r.operation == rpc.OperationDelete {
				return done
			}
			if first := o.firstIdentifier(); first != nil && first.Type == r.active.Type {
				r.createIn(o)
			}
			return done
		},
		answered: astray.forget,
	}
}

// plannedLast knows the object of which the latest calls have requested both
// the fields and the operations, as planning does. Any other call than
// get_sync_speed makes it forget that, so that calls that have nothing to do
// with one another rarely look like a planned sync.
type plannedLast struct {
	mu     sync.Mutex
	object string
	asked  map[string]bool // by method
}

// call gives the object that was planned before the call, "" for none.
func (p *plannedLast) call(c *call) (before string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked) == 2 {
		before = p.object
	}
	switch c.method {
	case rpc.MethodListFields, rpc.MethodSupportedOperations:
		if c.object != p.object || p.asked == nil {
			p.object, p.asked = c.object, map[string]bool{}
		}
		p.asked[c.method] = true
	case rpc.MethodGetSyncSpeed:
	default:
		p.object, p.asked = "", nil
	}
	return before
}
