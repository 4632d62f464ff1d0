package destsim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// Trigger defines when a fault fires. Zero values do not restrict; set ones
// must all hold. Method, Object, Operation, Identifier, Field and Value
// filter; the others count what comes through the filters.
type Trigger struct {
	Method    string `json:"method,omitempty"`
	Object    string `json:"object,omitempty"`    // object_api_name
	Operation string `json:"operation,omitempty"` // insert, update, upsert or delete
	// Identifier, Field and Value choose records of a batch: those with this
	// value of the active identifier, those that carry the field, with this
	// value of it. They are raw JSON and compared as values.
	Identifier json.RawMessage `json:"identifier,omitempty"`
	Field      string          `json:"field,omitempty"`
	Value      json.RawMessage `json:"value,omitempty"`
	// Count is what the numbers below count: calls (the default), or records
	// for the kinds of fault that act on records.
	Count string `json:"count,omitempty"`
	First int64  `json:"first,omitempty"` // the first N
	Every int64  `json:"every,omitempty"` // every Kth
	From  int64  `json:"from,omitempty"`  // number I, from 1, to
	To    int64  `json:"to,omitempty"`    // number J, inclusive; 0: no end
	// Probability between 0 and 1, drawn from Seed (or from the seed of the
	// simulator and the number of the fault); 0: always.
	Probability float64 `json:"probability,omitempty"`
	Seed        uint64  `json:"seed,omitempty"`
	Times       int64   `json:"times,omitempty"` // fires at most M times
}

func (t *Trigger) check(kind FaultKind) error {
	known := rpc.Methods()
	operations := []string{rpc.OperationInsert, rpc.OperationUpdate, rpc.OperationUpsert, rpc.OperationDelete}
	switch {
	case t.Method != "" && !slices.Contains(known, t.Method):
		return fmt.Errorf("when.method: unknown method %q%s", clip(t.Method), didYouMean(t.Method, known))
	case t.Method != "" && len(kind.Methods) > 0 && !slices.Contains(kind.Methods, t.Method):
		return fmt.Errorf("when.method: this kind of fault never touches %s", t.Method)
	case t.Operation != "" && !slices.Contains(operations, t.Operation):
		return fmt.Errorf("when.operation: unknown operation %q%s", clip(t.Operation), didYouMean(t.Operation, operations))
	case t.batchOnly() && t.Method != "" && t.Method != rpc.MethodSyncBatch:
		return fmt.Errorf("when.method: %s has no operation and no records", t.Method)
	case t.batchOnly() && len(kind.Methods) > 0 && !slices.Contains(kind.Methods, rpc.MethodSyncBatch):
		return errors.New("when: this kind of fault touches no batch, so it has no operation and no records")
	case t.Value != nil && t.Field == "":
		return errors.New("when.value: needs when.field")
	case t.Count != "" && t.Count != "calls" && t.Count != "records":
		return fmt.Errorf("when.count: unknown value %q%s", clip(t.Count), didYouMean(t.Count, []string{"calls", "records"}))
	case t.Count == "records" && !kind.Records:
		return errors.New("when.count: this kind of fault acts on calls, not on records")
	case min(t.First, t.Every, t.From, t.To, t.Times) < 0:
		return errors.New("when: first, every, from, to and times must not be negative")
	case t.To > 0 && t.To < max(t.From, 1):
		return fmt.Errorf("when.to: %d comes before from", t.To)
	case !(t.Probability >= 0 && t.Probability <= 1):
		return errors.New("when.probability: must be between 0 and 1")
	}
	return nil
}

// batchOnly reports whether a filter can hold for a batch only.
func (t *Trigger) batchOnly() bool {
	return t.Operation != "" || t.Identifier != nil || t.Field != ""
}

// ofRecords reports whether a filter looks at records.
func (t *Trigger) ofRecords() bool { return t.Identifier != nil || t.Field != "" }

// decide lets every armed fault look at the call, in the order of arming.
func (b *faultBoard) decide(c *call) *touch {
	b.mu.Lock()
	defer b.mu.Unlock()
	var t *touch
	for _, a := range b.list {
		if !a.Armed {
			continue
		}
		f, fires := a.look(c)
		if !fires {
			continue
		}
		if t == nil {
			t = &touch{}
		}
		t.firings = append(t.firings, &f)
		b.fired(a.Fault.Kind)
	}
	return t
}

// look filters, counts and decides about one call; the board is locked.
func (a *armed) look(c *call) (firing, bool) {
	f := firing{Fault: &a.Fault, kind: a.kind, id: a.ID, turn: a.Fired}
	if !a.lets(c) {
		return f, false
	}
	when := &a.Fault.When
	if a.kind.Records || when.ofRecords() {
		f.hits = a.records(c)
		if !slices.Contains(f.hits, true) {
			return f, false
		}
	}
	if when.Count == "records" {
		any := false
		for i, hit := range f.hits {
			f.hits[i] = hit && a.event()
			any = any || f.hits[i]
		}
		return f, any
	}
	if !a.event() {
		return f, false
	}
	if a.Fault.Delay != nil {
		f.delay = milliseconds(a.Fault.Delay.draw(a.chance))
	}
	return f, true
}

// lets applies the filters that look at the call as a whole.
func (a *armed) lets(c *call) bool {
	when := &a.Fault.When
	switch {
	case len(a.methods) > 0 && !slices.Contains(a.methods, c.method),
		when.Object != "" && when.Object != c.object,
		when.Operation != "" && (!c.isBatch() || c.batch.Plan.Operation != when.Operation):
		return false
	}
	return true
}

// records marks the records of the batch that come through the filters.
func (a *armed) records(c *call) []bool {
	if !c.isBatch() {
		return nil
	}
	when, b := &a.Fault.When, &c.batch.Batch
	hits := make([]bool, b.Len())
	left := len(hits)
	if a.kind.Records && a.Fault.Records > 0 {
		left = a.Fault.Records
	}
	for i := len(hits) - 1; i >= 0 && left > 0; i-- {
		record := b.Record(i)
		if when.Identifier != nil {
			raw, ok := record.Field(b.Identifier)
			if !ok || !sameValue(raw, when.Identifier) {
				continue
			}
		}
		if when.Field != "" {
			raw, ok := record.Field(when.Field)
			if !ok || when.Value != nil && !sameValue(raw, when.Value) {
				continue
			}
		}
		hits[i] = true
		left--
	}
	return hits
}

// event counts one call or record and reports whether the fault fires on it.
func (a *armed) event() bool {
	when := &a.Fault.When
	a.Matched++
	n := a.Matched
	switch {
	case when.Times > 0 && a.Fired >= when.Times,
		when.First > 0 && n > when.First,
		when.Every > 0 && n%when.Every != 0,
		n < when.From,
		when.To > 0 && n > when.To,
		// Drawn last, so that the draws do not depend on the other conditions
		// of other faults, each of which has its own source.
		when.Probability > 0 && a.chance.Float64() >= when.Probability:
		return false
	}
	a.Fired++
	return true
}

// isBatch reports whether the call is a batch that could be decoded.
func (c *call) isBatch() bool {
	return c.method == rpc.MethodSyncBatch && c.err == nil && c.paramsErr == nil && c.batch != nil
}

// sameValue compares two JSON values: strings by their text, whatever their
// escapes, everything else by its literal.
func sameValue(a, b []byte) bool {
	a, b = bytes.TrimSpace(a), bytes.TrimSpace(b)
	if bytes.Equal(a, b) {
		return true
	}
	if len(a) == 0 || len(b) == 0 || a[0] != '"' || b[0] != '"' {
		return false
	}
	x, errX := rawjson.StringText(a)
	y, errY := rawjson.StringText(b)
	return errX == nil && errY == nil && x == y
}
