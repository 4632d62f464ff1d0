package destination

import (
	"slices"
	"sync"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
)

// What a confirming run sends to tell causes apart.

// neverLate remembers, for a run, by which operations nothing came later: it is waited
// for once for each.
type neverLate struct {
	mu   sync.Mutex
	seen map[string]bool
}

// lateWaitOf is how long to look again for what an operation has written, and what
// to call when nothing came.
func (sc *scenario) lateWaitOf(operation string) (wait time.Duration, inVain func()) {
	n, key := &sc.neverLate, sc.object.APIName+" "+operation
	n.mu.Lock()
	defer n.mu.Unlock()
	wait = sc.opts.LateWait
	if n.seen[key] {
		wait /= 10
	}
	return wait, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.seen == nil {
			n.seen = map[string]bool{}
		}
		n.seen[key] = true
	}
}

// together sends n new records in one batch of a sync of its own, and counts those
// that are there.
func (sc *scenario) together(operation string, n int) (there int, ok bool) {
	other, b := sc.tries(operation, n, false)
	if b == nil || !b.succeeded(b.records[0]) {
		return 0, false
	}
	seen, err := other.observe(b.records)
	return len(seen), err == nil
}

// tries sends n new records in one batch of a sync of its own, right after list_fields
// of their object where planned says so. No batch when it could not be sent.
func (sc *scenario) tries(operation string, n int, planned bool) (*scenario, *batch) {
	other := sc.apart()
	records, err := other.make(n, operation, rpc.Field{}, &sending{})
	if err != nil {
		return other, nil
	}
	if planned {
		if _, err := other.send(objectCalls(sc.object)[0]); err != nil {
			return other, nil
		}
	}
	b, err := other.writeOne(operation, records, plan{})
	if err != nil {
		return other, nil
	}
	return other, b
}

// hasResults reports whether one new record is answered by results, right after
// list_fields of an object where there is one.
func (sc *scenario) hasResults(after *object) bool {
	if after != nil {
		if _, err := sc.apart().send(objectCalls(after)[0]); err != nil {
			return false
		}
	}
	_, b := sc.tries(sc.lastOperation(), 1, false)
	return b != nil && b.answered()
}

// otherObject is one that the scenario is not about, nil without one.
func (sc *scenario) otherObject() *object {
	for _, o := range sc.catalog.objects {
		if o.APIName != sc.object.APIName {
			return o
		}
	}
	return nil
}

// sameValues sends the values of a record under new identifiers, alone in a sync of its
// own, and looks for it.
func (sc *scenario) sameValues(operation string, r *record) fate {
	other := sc.apart()
	twin := r
	for _, f := range r.object.Fields {
		_, sent := r.values[f.APIName]
		switch {
		case !sent:
		case f.Identifier, f.APIName == r.id.APIName:
			key, err := other.key(r.object, f)
			if err != nil {
				return unknown
			}
			twin = twin.with(f.APIName, key)
		case r.object.unique(f.APIName):
			twin = twin.with(f.APIName, other.changed(r, 9).values[f.APIName])
		}
	}
	b, err := other.writeOne(operation, []*record{twin}, plan{})
	if err != nil || !b.succeeded(twin) {
		return unknown
	}
	return other.fateOf(twin)
}

// apart is a scenario of the same check with a sync run of its own.
func (sc *scenario) apart() *scenario {
	other := sc.newScenario(sc.ctx, sc.Check(), sc.object)
	other.model = sc.newView()
	return other
}

// poll reads back until what an operation wrote is as wanted, for a bounded time.
func (sc *scenario) poll(operation string, records []*record, good func(map[string]observed) bool) (map[string]observed, error) {
	wait, inVain := sc.lateWaitOf(operation)
	deadline := time.Now().Add(wait)
	for {
		seen, err := sc.observe(records)
		if err != nil || good(seen) {
			return seen, err
		}
		if !time.Now().Before(deadline) {
			inVain()
			return seen, nil
		}
		if err := elapse(sc.ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// appears waits for records that were not there.
func (sc *scenario) appears(operation string, records []*record) (after time.Duration, all bool) {
	from := time.Now()
	complete := func(s map[string]observed) bool { return len(s) == len(records) }
	seen, err := sc.poll(operation, records, complete)
	return time.Since(from), err == nil && complete(seen)
}

// whereElse looks for a record in the other objects.
func (sc *scenario) whereElse(r *record) string {
	for _, o := range sc.catalog.objects {
		if o.APIName == r.object.APIName || !slices.Contains(sc.opts.Objects, o.APIName) {
			continue
		}
		for _, id := range o.identifiers() {
			if id.Type != r.id.Type {
				continue
			}
			if seen, err := sc.observe([]*record{{object: o, id: id, key: r.key}}); err == nil && len(seen) > 0 {
				return o.APIName
			}
		}
	}
	return ""
}

// fate is what became of one record that was sent to find a cause.
type fate string

const (
	isStored fate = "stored"
	isGone   fate = "gone"
	unknown  fate = "unknown"
)

// lone sends one new record in a sync of its own and looks for it.
func (sc *scenario) lone(operation string, planned bool) fate {
	other, b := sc.tries(operation, 1, planned)
	if b == nil || !b.succeeded(b.records[0]) {
		return unknown
	}
	return other.fateOf(b.records[0])
}

// fateOf looks for a record that was acknowledged.
func (sc *scenario) fateOf(r *record) fate {
	seen, err := sc.observe([]*record{r})
	switch {
	case err != nil:
		return unknown
	case len(seen) == 1:
		return isStored
	}
	return isGone
}
