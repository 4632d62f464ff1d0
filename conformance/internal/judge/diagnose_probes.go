package judge

import (
	"context"
	"slices"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

// Probes that distinguish causes, and test the read-back hook.

// tries sends records in one batch; nil where it could not be sent.
func (sc *Scenario) tries(operation string, records ...*write.Record) *write.Batch {
	b, err := sc.WriteOne(operation, write.ForOperation(operation, records), write.Plan{})
	if err != nil {
		return nil
	}
	return b
}

// sends reports whether the first of the records is acknowledged.
func (sc *Scenario) sends(operation string, records ...*write.Record) bool {
	b := sc.tries(operation, records...)
	return b != nil && b.Succeeded(records[0])
}

// shows is what a read-back shows of a record; false where it fails.
func (sc *Scenario) shows(r *write.Record) (write.Observed, bool) {
	seen, err := sc.Observe([]*write.Record{r})
	return seen[exchange.KeyText(r.Key)], err == nil
}

// storedAs sends a record in a batch with others, and reads it back; false if not acknowledged.
func (sc *Scenario) storedAs(operation string, r *write.Record, beside ...*write.Record) (write.Observed, bool) {
	if !sc.sends(operation, slices.Concat([]*write.Record{r}, beside)...) {
		return write.Observed{}, false
	}
	return sc.shows(r)
}

// creates sends n new records in one batch, right after list_fields of an object if one is given; nil on failure.
func (sc *Scenario) creates(operation string, n int, after *write.Object) *write.Batch {
	made, err := sc.fresh(n, operation)
	if err == nil && after != nil {
		_, err = sc.Send(objectCalls(after)[0])
	}
	if err != nil {
		return nil
	}
	return sc.tries(operation, made...)
}

// created is a new record that is acknowledged, nil where none is.
func (sc *Scenario) created(operation string) *write.Record {
	if b := sc.creates(operation, 1, nil); b != nil && b.Succeeded(b.Records[0]) {
		return b.Records[0]
	}
	return nil
}

// together creates records in a separate sync, and counts those that exist; false if not known.
func (sc *Scenario) together(operation string, n int, after *write.Object) (there int, ok bool) {
	other := sc.apart()
	b := other.creates(operation, n, after)
	if b == nil || !b.Succeeded(b.Records[0]) {
		return 0, false
	}
	seen, err := other.Observe(b.Records)
	return len(seen), err == nil
}

// hasResults reports whether one new record is answered by results, right after list_fields of an object.
func (sc *Scenario) hasResults(after *write.Object) bool {
	b := sc.apart().creates(sc.LastOperation(), 1, after)
	return b != nil && b.Answered()
}

// refusedForItself reports whether an ordinary change has an error too: then it is not the plan.
func (sc *Scenario) refusedForItself(p write.Purpose) bool {
	r := sc.created(sc.Object.Creating())
	if r == nil {
		return true
	}
	b := sc.tries(p.Operation, sc.Changed(r, 1))
	return b == nil || b.Reply.IsError()
}

// sameValues sends the values of a record alone under new identifiers, and looks for it; false: not known.
func (sc *Scenario) sameValues(operation string, r *write.Record) (there, ok bool) {
	other := sc.apart()
	twin := r
	for _, f := range r.Object.Fields {
		_, sent := r.Values[f.APIName]
		switch {
		case !sent:
		case f.Identifier, f.APIName == r.ID.APIName:
			key, err := other.Key(r.Object, f)
			if err != nil {
				return false, false
			}
			twin = twin.With(f.APIName, key)
		case r.Object.Unique(f.APIName):
			twin = twin.With(f.APIName, other.Changed(r, 9).Values[f.APIName])
		}
	}
	got, ok := other.storedAs(operation, twin)
	return got.Count > 0, ok
}

// whereElse looks for a record in the other objects.
func (sc *Scenario) whereElse(r *write.Record) string {
	for _, o := range sc.otherObjects(r.Object) {
		if !slices.Contains(sc.Opts.Objects, o.APIName) {
			continue
		}
		for _, id := range o.Identifiers() {
			if id.Type != r.ID.Type {
				continue
			}
			if got, _ := sc.shows(&write.Record{Object: o, ID: id, Key: r.Key}); got.Count > 0 {
				return o.APIName
			}
		}
	}
	return ""
}

// TestReadback tests the hook before anything is judged by it: a key that was never used must be absent, an
// acknowledged one present.
func (s *Judge) TestReadback(ctx context.Context, checks []*conformance.Check) error {
	if !s.HookTested(checks) {
		return nil
	}
	for _, o := range s.Named() {
		sc := s.NewScenario(ctx, &conformance.Check{ID: "HOOK-000", Title: "The read-back hook is sound"}, o)
		// An interrupted test is no evidence about the hook.
		err := sc.testHook()
		if status, _, _ := engine.Decided(err); status == conformance.HarnessError {
			return err
		}
	}
	return nil
}

// testHook tests the hook on one object. The checks report what prevents creating records.
func (sc *Scenario) testHook() error {
	fresh, err := sc.fresh(1, rpc.OperationInsert)
	if err != nil {
		return nil
	}
	never := func(seen map[string]write.Observed, err error) error {
		if _, there := seen[exchange.KeyText(fresh[0].Key)]; there {
			return line.Harness("the read-back hook reports the key %s of %q, which was never used", fresh[0].Key, sc.Object.APIName)
		}
		return err
	}
	if err := never(sc.Observe(fresh)); err != nil {
		return err
	}
	var made []*write.Record
	for _, operation := range lists.Where([]string{rpc.OperationUpsert, rpc.OperationInsert}, sc.Object.Accepts) {
		if r := sc.created(operation); r != nil {
			made = append(made, r)
		}
	}
	if len(made) == 0 {
		return nil
	}
	if err := sc.LearnFolding(sc.BatchAt(made[0]), made[0]); err != nil {
		return err
	}
	// The key that was never used is read back once more, together with the used ones.
	if err := never(sc.ObserveUntil(slices.Concat(fresh, made), some)); err != nil || sc.j.shown(sc.Object) {
		return err
	}
	return sc.contradicted(made)
}

func some(seen map[string]write.Observed) bool { return len(seen) > 0 }

// contradicted queries the endpoint when the hook shows nothing: an update that finds an
// acknowledged record, and skips an unused key, proves it. Else the endpoint may be at fault too.
func (sc *Scenario) contradicted(made []*write.Record) error {
	if !sc.Object.Accepts(rpc.OperationUpdate) {
		return nil
	}
	probe, err := sc.fresh(1, rpc.OperationInsert)
	if err != nil {
		return nil
	}
	updated := func(r *write.Record) (succeeded, skipped bool) {
		b := sc.tries(rpc.OperationUpdate, sc.Changed(r, write.WitnessVersion))
		return b != nil && b.Succeeded(r), b != nil && sc.Skipped(b, r)
	}
	if _, skipped := updated(probe[0]); !skipped {
		return nil
	}
	for _, r := range made {
		if succeeded, skipped := updated(r); skipped || !succeeded {
			continue
		}
		// An endpoint that writes after its acknowledgement may have caught up.
		if _, err := sc.ObserveUntil(made, some); err != nil || sc.j.shown(sc.Object) {
			return err
		}
		return line.Harness("the read-back hook does not show the record %s of %q, which was acknowledged and which an update found: "+
			"the hook looks elsewhere than the endpoint writes", r.Key, sc.Object.APIName)
	}
	return nil
}

// shown reports whether the hook has shown a record of the object in this run.
func (s *Judge) shown(o *write.Object) bool {
	_, ok := s.HookShown.Load(o.APIName)
	return ok
}
