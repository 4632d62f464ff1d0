package destsim

import (
	"sync"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

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
