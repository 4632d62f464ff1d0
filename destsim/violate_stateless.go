package destsim

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// statelessViolations are memory that a destination must not have (STA-*).
func statelessViolations() []violation {
	return slices.Concat(connectedViolations(), rememberingViolations())
}

// rememberingViolations are STA-001, STA-003, STA-004, STA-006 and STA-007.
func rememberingViolations() []violation {
	return []violation{
		keeps("STA-001", "list_fields is answered from a cache for Delays.Cache; a field that a batch creates clears it", cachedFields),
		keeps("STA-003", "the batch that follows a batch without records in its sync run is answered by the first identifier of that one's object", func(*Sim) seams { return rememberedObject() }),
		keeps("STA-003.2", "a batch that comes right after list_fields and supported_operations of another object, or after these and get_sync_speed, is written into that object", func(*Sim) seams { return strayBatches() }),
		keeps("STA-004", "an upsert record whose content was written before is acknowledged and not executed", func(*Sim) seams { return rememberedRecords() }),
		keeps("STA-006", "an update batch whose object, operation and records equal an earlier one is answered by the earlier result and not executed", func(*Sim) seams { return rememberedResults() }),
		keeps("STA-007", `after a restart the first call of supported_operations is an error -32000 "warming up"`, func(*Sim) seams {
			var cold atomic.Bool
			return seams{
				restart: func(*Sim) { cold.Store(true) },
				parsed: func(c *call) {
					if gives(c, rpc.MethodSupportedOperations) && cold.CompareAndSwap(true, false) {
						c.fail(rpc.CodeServerError, "warming up")
					}
				},
			}
		}),
	}
}

// cachedFields is STA-001. The destination knows of the fields that it creates
// itself, so those are listed at once; only a change from outside stays unseen.
func cachedFields(s *Sim) seams {
	type entry struct {
		fields any
		custom int // fields that batches had created by then
		until  time.Time
	}
	var mu sync.Mutex
	cache := map[string]entry{}
	return seams{
		plan: func(c *call, value any) any {
			if c.method != rpc.MethodListFields {
				return value
			}
			custom := s.catalogue.Load().byName[c.object].customFields()
			mu.Lock()
			defer mu.Unlock()
			if e, is := cache[c.object]; is && e.custom == custom && s.clock().Before(e.until) {
				return e.fields
			}
			cache[c.object] = entry{value, custom, s.clock().Add(s.delays.Cache)}
			return value
		},
		restart: func(*Sim) {
			mu.Lock()
			defer mu.Unlock()
			clear(cache)
		},
	}
}

// customFields counts the fields that were created on write.
func (o *object) customFields() (n int) {
	if o == nil {
		return 0
	}
	for _, f := range o.fields {
		if f.custom {
			n++
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
		batch: func(c *call, b *batch) *rpc.Error {
			left.change(b.Plan.SyncRunID, func(o *object) *object {
				if b.Len() == 0 {
					return b.object
				}
				if o != nil {
					stale.set(c, o)
				}
				return nil
			})
			return nil
		},
		results: func(c *call, rs []result) []result {
			o := stale.take(c)
			if o == nil {
				return rs
			}
			for i := range rs {
				rs[i].identifier, _ = c.batch.Record(c.batch.from + i).Field(o.firstIdentifier().APIName)
			}
			return rs
		},
	}
}

// rememberedRecords is STA-004.
func rememberedRecords() seams {
	var mu sync.Mutex
	seen := map[fingerprint]bool{}
	return seams{apply: func(_ *call, r *record, next next) result {
		if r.operation != rpc.OperationUpsert {
			return next(r)
		}
		content := r.batch.fingerprint(r.raw)
		mu.Lock()
		known := seen[content]
		mu.Unlock()
		if known {
			return r.ok()
		}
		done := next(r)
		if done.success {
			mu.Lock()
			seen[content] = true
			mu.Unlock()
		}
		return done
	}}
}

// rememberedResults is STA-006.
func rememberedResults() seams {
	var mu sync.Mutex
	results := map[fingerprint][]byte{}
	var contents perCall[fingerprint]
	return seams{
		batch: func(c *call, b *batch) *rpc.Error {
			if b.operation != rpc.OperationUpdate || b.Len() == 0 {
				return nil
			}
			content := b.fingerprint(b.all()...)
			mu.Lock()
			defer mu.Unlock()
			if result, is := results[content]; is {
				c.answer(json.RawMessage(result))
				return nil
			}
			contents.set(c, content)
			return nil
		},
		answered: func(c *call) {
			content := contents.take(c)
			if c.err != nil || content == (fingerprint{}) {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			results[content] = bytes.Clone(c.result)
		},
	}
}

// strayBatches is STA-003.2: what was planned last decides where a batch goes.
// Results are those of the plan that the batch brings, and nothing of it is
// stored there.
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
			if astray.get(c) == nil {
				return rows
			}
			return frozen{rows}
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
		answered: func(c *call) { astray.take(c) },
	}
}

// plannedLast knows the object of which the latest calls have asked for both
// the fields and the operations, as planning does. Any other call than
// get_sync_speed makes it forget that, so that calls that have nothing to do
// with one another rarely look like a planned sync.
type plannedLast struct {
	mu                 sync.Mutex
	object             string
	fields, operations bool
}

// call gives the object that was planned before the call, "" for none.
func (p *plannedLast) call(c *call) (before string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fields && p.operations {
		before = p.object
	}
	switch c.method {
	case rpc.MethodListFields, rpc.MethodSupportedOperations:
		if c.object != p.object {
			p.object, p.fields, p.operations = c.object, false, false
		}
		p.fields = p.fields || c.method == rpc.MethodListFields
		p.operations = p.operations || c.method == rpc.MethodSupportedOperations
	case rpc.MethodGetSyncSpeed:
	default:
		p.object, p.fields, p.operations = "", false, false
	}
	return before
}
