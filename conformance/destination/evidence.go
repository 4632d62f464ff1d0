package destination

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/hook"
)

// observed is what a read-back says of one key.
type observed struct {
	count  int // 0: absent
	fields map[string]json.RawMessage
}

// observe reads records back through the hook, by the text of their keys. A
// hook that fails or contradicts itself is a HARNESS_ERROR, never a finding.
func (sc *scenario) observe(records []*record) (map[string]observed, error) {
	if err := sc.needReadback(); err != nil {
		return nil, err
	}
	if err := sc.awaitWrites(); err != nil {
		return nil, err
	}
	type group struct{ object, field string }
	ids := map[group][]json.RawMessage{}
	var order []group
	for _, r := range records {
		g := group{r.object.APIName, r.id.APIName}
		if ids[g] == nil {
			order = append(order, g)
		}
		ids[g] = append(ids[g], r.key)
	}
	out := map[string]observed{}
	for _, g := range order {
		seen, err := sc.lookUp(g.object, g.field, ids[g])
		if err != nil {
			return nil, err
		}
		for _, raw := range ids[g] {
			text := exchange.KeyText(raw)
			if got, there := seen[text]; there {
				out[text] = got
			}
			sc.ledger.Saw(place{Object: g.object, Field: g.field, Key: text}, seen[text].sight())
		}
	}
	return out, nil
}

func (o observed) sight() model.Sight { return model.Sight{Count: o.count, Fields: o.fields} }

// lookUp asks the hook for keys of one object and field; what is not there is left out.
func (sc *scenario) lookUp(object, field string, ids []json.RawMessage) (map[string]observed, error) {
	sc.hookAsked = sc.hookAsked || sc.object != nil && object == sc.object.APIName
	started := time.Now()
	reply, err := hook.Paged(sc.readback)(sc.ctx, hook.ReadbackRequest{Object: object, IdentifierField: field, Identifiers: ids})
	if err != nil {
		if sc.ctx.Err() != nil {
			return nil, overtime(sc.ctx)
		}
		if away := sc.hookAway(err, started); away != nil {
			return nil, away
		}
		return nil, harness("%w", errors.New(sc.redactor.String(err.Error())))
	}
	for _, field := range reply.Hidden {
		sc.hookHides.Store([2]string{object, field}, true)
	}
	out := map[string]observed{}
	for _, rec := range reply.Records {
		out[exchange.KeyText(rec.Identifier)] = observed{count: rec.Count, fields: rec.Fields}
	}
	if len(out) > 0 {
		sc.hookShown.Store(object, true)
	}
	return out, nil
}

// observeUntil reads back until good says so or the read-back window is over.
func (sc *scenario) observeUntil(records []*record, good func(map[string]observed) bool) (map[string]observed, error) {
	if err := sc.awaitWrites(); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(sc.opts.ReadbackWindow)
	for {
		seen, err := sc.observe(records)
		if err != nil || good(seen) || !time.Now().Before(deadline) {
			return seen, err
		}
		if err := elapse(sc.ctx, min(100*time.Millisecond, sc.opts.ReadbackWindow)); err != nil {
			return nil, err
		}
	}
}

// hookRecords is the most that the test of the hook writes into an object: one
// record for each of two operations, and three updates as witnesses.
const hookRecords = 5

// hookTested reports whether some check asks the hook, so that it is tested first.
func (s *session) hookTested(checks []*conformance.Check) bool {
	asks := func(c *conformance.Check) bool { return c.Write && (c.ReadbackRequired || c.ReadbackDecides) }
	return s.readback != nil && s.opts.Write && slices.ContainsFunc(checks, asks)
}

// testReadback tests the hook before anything is judged by it: a key that was
// never used must be absent, an acknowledged one present. A hook that says
// otherwise would turn every semantic check into a lie.
func (s *session) testReadback(ctx context.Context, checks []*conformance.Check) error {
	if !s.hookTested(checks) {
		return nil
	}
	for _, name := range s.opts.Objects {
		o := s.catalog.object(name)
		if o == nil {
			continue
		}
		sc := s.newScenario(ctx, &conformance.Check{ID: "HOOK-000", Title: "The read-back hook is sound"}, o)
		// An interrupted test says nothing about the hook.
		if err := sc.testHook(); statusOf(err) == conformance.HarnessError {
			return err
		}
	}
	return nil
}

// testHook tests the hook on one object. What keeps records from being made is
// left to the checks: they say why.
func (sc *scenario) testHook() error {
	fresh, err := sc.newRecords(1)
	if err != nil {
		return nil
	}
	never := func(seen map[string]observed, err error) error {
		if _, there := seen[exchange.KeyText(fresh[0].key)]; there {
			return harness("the read-back hook reports the key %s of %q, which was never used", fresh[0].key, sc.object.APIName)
		}
		return err
	}
	if err := never(sc.observe(fresh)); err != nil {
		return err
	}
	made := sc.makeKnown()
	if len(made) == 0 {
		return nil
	}
	if err := sc.learnFolding(sc.batchAt(made[0]), made[0]); err != nil {
		return err
	}
	// The key that was never used is asked for once more, beside those that were.
	if err := never(sc.observeUntil(slices.Concat(fresh, made), some)); err != nil || sc.shown(sc.object) {
		return err
	}
	return sc.contradicted(made)
}

func some(seen map[string]observed) bool { return len(seen) > 0 }

// makeKnown writes one record with every operation that creates and returns
// those whose results say success.
func (sc *scenario) makeKnown() []*record {
	var out []*record
	for _, op := range []string{rpc.OperationUpsert, rpc.OperationInsert} {
		if !sc.object.accepts(op) {
			continue
		}
		made, err := sc.newRecords(1)
		if err != nil {
			return out
		}
		if b, err := sc.writeOne(op, made, plan{}); err == nil && b.succeeded(made[0]) {
			out = append(out, made[0])
		}
	}
	return out
}

// contradicted asks the endpoint itself when the hook shows none of the records
// that it acknowledged: an update that is refused for a key that was never used
// and accepted for one of these says that the record is there. Without such a
// witness the endpoint may be to blame as well, and the checks judge it.
func (sc *scenario) contradicted(made []*record) error {
	if !sc.object.accepts(rpc.OperationUpdate) {
		return nil
	}
	probe, err := sc.newRecords(1)
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
		if _, err := sc.observeUntil(made, some); err != nil || sc.shown(sc.object) {
			return err
		}
		return harness("the read-back hook does not show the record %s of %q, which was acknowledged and which an update found: "+
			"the hook looks elsewhere than the endpoint writes", r.key, sc.object.APIName)
	}
	return nil
}

// updates sends an update of a record and reports whether its result says that
// the record was found, or that it was skipped.
func (sc *scenario) updates(r *record) (found, skipped bool) {
	b, err := sc.writeOne(rpc.OperationUpdate, []*record{sc.changed(r, witnessVersion).updateable()}, plan{})
	if err != nil {
		return false, false
	}
	skipped = sc.skipped(b, r)
	return !skipped && b.succeeded(r), skipped
}

// shown reports whether the hook has shown a record of the object in this run.
func (s *session) shown(o *object) bool {
	_, ok := s.hookShown.Load(o.APIName)
	return ok
}
