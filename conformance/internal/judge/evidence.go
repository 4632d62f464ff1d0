package judge

import (
	"context"
	"slices"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
)

// observeUntil reads back until good says so or the read-back window is over.
func (sc *Scenario) observeUntil(records []*write.Record, good func(map[string]write.Observed) bool) (map[string]write.Observed, error) {
	if err := sc.AwaitWrites(); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(sc.Opts.ReadbackWindow)
	for {
		seen, err := sc.Observe(records)
		if err != nil || good(seen) || !time.Now().Before(deadline) {
			return seen, err
		}
		if err := line.Elapse(sc.Ctx, min(100*time.Millisecond, sc.Opts.ReadbackWindow)); err != nil {
			return nil, err
		}
	}
}

// TestReadback tests the hook before anything is judged by it: a key that was
// never used must be absent, an acknowledged one present. A hook that says
// otherwise would turn every semantic check into a lie.
func (s *Judge) TestReadback(ctx context.Context, checks []*conformance.Check) error {
	if !s.HookTested(checks) {
		return nil
	}
	for _, name := range s.Opts.Objects {
		o := s.Catalog.Object(name)
		if o == nil {
			continue
		}
		sc := s.NewScenario(ctx, &conformance.Check{ID: "HOOK-000", Title: "The read-back hook is sound"}, o)
		// An interrupted test says nothing about the hook.
		err := sc.testHook()
		if status, _, _ := line.Decided(err); status == conformance.HarnessError {
			return err
		}
	}
	return nil
}

// testHook tests the hook on one object. What keeps records from being made is
// left to the checks: they say why.
func (sc *Scenario) testHook() error {
	fresh, err := sc.NewRecords(1)
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
	made := sc.makeKnown()
	if len(made) == 0 {
		return nil
	}
	if err := sc.LearnFolding(sc.BatchAt(made[0]), made[0]); err != nil {
		return err
	}
	// The key that was never used is asked for once more, beside those that were.
	if err := never(sc.observeUntil(slices.Concat(fresh, made), some)); err != nil || sc.j.shown(sc.Object) {
		return err
	}
	return sc.contradicted(made)
}

func some(seen map[string]write.Observed) bool { return len(seen) > 0 }

// makeKnown writes one record with every operation that creates and returns
// those whose results say success.
func (sc *Scenario) makeKnown() []*write.Record {
	var out []*write.Record
	for _, op := range []string{rpc.OperationUpsert, rpc.OperationInsert} {
		if !sc.Object.Accepts(op) {
			continue
		}
		made, err := sc.NewRecords(1)
		if err != nil {
			return out
		}
		if b, err := sc.WriteOne(op, made, write.Plan{}); err == nil && b.Succeeded(made[0]) {
			out = append(out, made[0])
		}
	}
	return out
}

// contradicted asks the endpoint itself when the hook shows none of the records
// that it acknowledged: an update that is refused for a key that was never used
// and accepted for one of these says that the record is there. Without such a
// witness the endpoint may be to blame as well, and the checks judge it.
func (sc *Scenario) contradicted(made []*write.Record) error {
	if !sc.Object.Accepts(rpc.OperationUpdate) {
		return nil
	}
	probe, err := sc.NewRecords(1)
	if err != nil {
		return nil
	}
	if found, skipped := sc.updates(probe[0]); found || !skipped {
		return nil
	}
	for _, r := range made {
		if found, _ := sc.updates(r); !found {
			continue
		}
		// An endpoint that writes after its acknowledgement may have caught up.
		if _, err := sc.observeUntil(made, some); err != nil || sc.j.shown(sc.Object) {
			return err
		}
		return line.Harness("the read-back hook does not show the record %s of %q, which was acknowledged and which an update found: "+
			"the hook looks elsewhere than the endpoint writes", r.Key, sc.Object.APIName)
	}
	return nil
}

// updates sends an update of a record and reports whether its result says that
// the record was found, or that it was skipped.
func (sc *Scenario) updates(r *write.Record) (found, skipped bool) {
	b, err := sc.WriteOne(rpc.OperationUpdate, []*write.Record{sc.Changed(r, write.WitnessVersion).Updateable()}, write.Plan{})
	if err != nil {
		return false, false
	}
	skipped = sc.Skipped(b, r)
	return !skipped && b.Succeeded(r), skipped
}

// shown reports whether the hook has shown a record of the object in this run.
func (s *Judge) shown(o *write.Object) bool {
	_, ok := s.HookShown.Load(o.APIName)
	return ok
}
