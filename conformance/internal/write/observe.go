package write

import (
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/internal/hook"
)

// Observed is what a read-back says of one key.
type Observed struct {
	Count  int // 0: absent
	Fields map[string]json.RawMessage
}

// Observe reads records back through the hook, by the text of their keys. A
// hook that fails or contradicts itself is a HARNESS_ERROR, never a finding.
func (sc *Scenario) Observe(records []*Record) (map[string]Observed, error) {
	if err := sc.NeedReadback(); err != nil {
		return nil, err
	}
	if err := sc.AwaitWrites(); err != nil {
		return nil, err
	}
	type group struct{ object, field string }
	ids := map[group][]json.RawMessage{}
	var order []group
	for _, r := range records {
		g := group{r.Object.APIName, r.ID.APIName}
		if ids[g] == nil {
			order = append(order, g)
		}
		ids[g] = append(ids[g], r.Key)
	}
	out := map[string]Observed{}
	for _, g := range order {
		seen, err := sc.LookUp(g.object, g.field, ids[g])
		if err != nil {
			return nil, err
		}
		for _, raw := range ids[g] {
			text := exchange.KeyText(raw)
			if got, there := seen[text]; there {
				out[text] = got
			}
			sc.Ledger.Saw(model.Place{Object: g.object, Field: g.field, Key: text}, seen[text].Sight())
		}
	}
	return out, nil
}

func (o Observed) Sight() model.Sight { return model.Sight{Count: o.Count, Fields: o.Fields} }

// LookUp asks the hook for keys of one object and field; what is not there is left out.
func (sc *Scenario) LookUp(object, field string, ids []json.RawMessage) (map[string]Observed, error) {
	sc.HookAsked = sc.HookAsked || sc.Object != nil && object == sc.Object.APIName
	started := time.Now()
	reply, err := hook.Paged(sc.Readback)(sc.Ctx, hook.ReadbackRequest{Object: object, IdentifierField: field, Identifiers: ids})
	if err != nil {
		if sc.Ctx.Err() != nil {
			return nil, line.Overtime(sc.Ctx)
		}
		if away := sc.hookAway(err, started); away != nil {
			return nil, away
		}
		return nil, line.Harness("%w", errors.New(sc.Redactor.String(err.Error())))
	}
	for _, field := range reply.Hidden {
		sc.hookHides.Store([2]string{object, field}, true)
	}
	out := map[string]Observed{}
	for _, rec := range reply.Records {
		out[exchange.KeyText(rec.Identifier)] = Observed{Count: rec.Count, Fields: rec.Fields}
	}
	if len(out) > 0 {
		sc.HookShown.Store(object, true)
	}
	return out, nil
}

// neverLate remembers, for a run, by which operations nothing came later: it is waited
// for once for each.
type neverLate struct {
	mu   sync.Mutex
	seen map[string]bool
}

// LateWaitOf is how long to look again for what an operation has written, and what
// to call when nothing came.
func (sc *Scenario) LateWaitOf(operation string) (wait time.Duration, inVain func()) {
	n, key := &sc.NeverLate, sc.Object.APIName+" "+operation
	n.mu.Lock()
	defer n.mu.Unlock()
	wait = sc.Opts.LateWait
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

// Poll reads back until what an operation wrote is as wanted, for a bounded time.
func (sc *Scenario) Poll(operation string, records []*Record, good func(map[string]Observed) bool) (map[string]Observed, error) {
	wait, inVain := sc.LateWaitOf(operation)
	deadline := time.Now().Add(wait)
	for {
		seen, err := sc.Observe(records)
		if err != nil || good(seen) {
			return seen, err
		}
		if !time.Now().Before(deadline) {
			inVain()
			return seen, nil
		}
		if err := line.Elapse(sc.Ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// Appears waits for records that were not there.
func (sc *Scenario) Appears(operation string, records []*Record) (after time.Duration, all bool) {
	from := time.Now()
	complete := func(s map[string]Observed) bool { return len(s) == len(records) }
	seen, err := sc.Poll(operation, records, complete)
	return time.Since(from), err == nil && complete(seen)
}
