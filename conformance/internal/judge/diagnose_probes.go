package judge

import (
	"slices"

	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
)

// What a confirming run sends to tell causes apart.

// together sends n new records in one batch of a sync of its own, and counts those
// that are there.
func (sc *Scenario) together(operation string, n int) (there int, ok bool) {
	other, b := sc.tries(operation, n, false)
	if b == nil || !b.Succeeded(b.Records[0]) {
		return 0, false
	}
	seen, err := other.Observe(b.Records)
	return len(seen), err == nil
}

// tries sends n new records in one batch of a sync of its own, right after list_fields
// of their object where planned says so. No batch when it could not be sent.
func (sc *Scenario) tries(operation string, n int, planned bool) (*Scenario, *write.Batch) {
	other := sc.apart()
	records, err := other.Make(n, operation, rpc.Field{}, &write.Sending{})
	if err != nil {
		return other, nil
	}
	if planned {
		if _, err := other.Send(objectCalls(sc.Object)[0]); err != nil {
			return other, nil
		}
	}
	b, err := other.WriteOne(operation, records, write.Plan{})
	if err != nil {
		return other, nil
	}
	return other, b
}

// hasResults reports whether one new record is answered by results, right after
// list_fields of an object where there is one.
func (sc *Scenario) hasResults(after *write.Object) bool {
	if after != nil {
		if _, err := sc.apart().Send(objectCalls(after)[0]); err != nil {
			return false
		}
	}
	_, b := sc.tries(sc.LastOperation(), 1, false)
	return b != nil && b.Answered()
}

// otherObject is one that the scenario is not about, nil without one.
func (sc *Scenario) otherObject() *write.Object {
	for _, o := range sc.Catalog.Objects {
		if o.APIName != sc.Object.APIName {
			return o
		}
	}
	return nil
}

// sameValues sends the values of a record under new identifiers, alone in a sync of its
// own, and looks for it.
func (sc *Scenario) sameValues(operation string, r *write.Record) fate {
	other := sc.apart()
	twin := r
	for _, f := range r.Object.Fields {
		_, sent := r.Values[f.APIName]
		switch {
		case !sent:
		case f.Identifier, f.APIName == r.ID.APIName:
			key, err := other.Key(r.Object, f)
			if err != nil {
				return unknown
			}
			twin = twin.With(f.APIName, key)
		case r.Object.Unique(f.APIName):
			twin = twin.With(f.APIName, other.Changed(r, 9).Values[f.APIName])
		}
	}
	b, err := other.WriteOne(operation, []*write.Record{twin}, write.Plan{})
	if err != nil || !b.Succeeded(twin) {
		return unknown
	}
	return other.fateOf(twin)
}

// whereElse looks for a record in the other objects.
func (sc *Scenario) whereElse(r *write.Record) string {
	for _, o := range sc.Catalog.Objects {
		if o.APIName == r.Object.APIName || !slices.Contains(sc.Opts.Objects, o.APIName) {
			continue
		}
		for _, id := range o.Identifiers() {
			if id.Type != r.ID.Type {
				continue
			}
			if seen, err := sc.Observe([]*write.Record{{Object: o, ID: id, Key: r.Key}}); err == nil && len(seen) > 0 {
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
func (sc *Scenario) lone(operation string, planned bool) fate {
	other, b := sc.tries(operation, 1, planned)
	if b == nil || !b.Succeeded(b.Records[0]) {
		return unknown
	}
	return other.fateOf(b.Records[0])
}

// fateOf looks for a record that was acknowledged.
func (sc *Scenario) fateOf(r *write.Record) fate {
	seen, err := sc.Observe([]*write.Record{r})
	switch {
	case err != nil:
		return unknown
	case len(seen) == 1:
		return isStored
	}
	return isGone
}
