package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/destkit/destkit/conformance/hook"
)

// observed is what a read-back says of one key.
type observed struct {
	count  int // 0: absent
	fields map[string]json.RawMessage
}

// observe reads records back through the hook, by the text of their keys. A
// hook that fails or contradicts itself is a HARNESS_ERROR, never a finding.
func (w *world) observe(records []*record) (map[string]observed, error) {
	if err := w.needReadback(); err != nil {
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
		reply, err := hook.Paged(w.readback)(w.ctx, hook.ReadbackRequest{Object: g.object, IdentifierField: g.field, Identifiers: ids[g]})
		if err != nil {
			if w.ctx.Err() != nil {
				return nil, overtime(w.ctx)
			}
			return nil, harness("%w", errors.New(w.redactor.String(err.Error())))
		}
		for _, rec := range reply.Records {
			out[keyText(rec.Identifier)] = observed{count: rec.Count, fields: rec.Fields}
		}
	}
	return out, nil
}

// observeUntil reads back until good says so or the read-back window is over.
func (w *world) observeUntil(records []*record, good func(map[string]observed) bool) (map[string]observed, error) {
	deadline := time.Now().Add(w.opts.ReadbackWindow)
	for {
		seen, err := w.observe(records)
		if err != nil || good(seen) || !time.Now().Before(deadline) {
			return seen, err
		}
		select {
		case <-time.After(min(100*time.Millisecond, w.opts.ReadbackWindow)):
		case <-w.ctx.Done():
			return nil, overtime(w.ctx)
		}
	}
}

// testReadback tests the hook before anything is judged by it: a key that was
// never used must be absent, an acknowledged one present. A hook that says
// otherwise would turn every semantic check into a lie.
func (s *session) testReadback(ctx context.Context) error {
	if s.readback == nil || !s.opts.Write {
		return nil
	}
	w := &world{session: s, ctx: ctx, check: &Check{ID: "HOOK-000", Title: "The read-back hook is sound"}}
	for _, name := range s.opts.Objects {
		o := s.catalog.object(name)
		if o == nil {
			continue
		}
		w.object = o
		fresh, err := w.newRecords(1)
		if err != nil {
			continue // the planning checks say why
		}
		seen, err := w.observe(fresh)
		if err != nil {
			return err
		}
		if len(seen) > 0 {
			return harness("the read-back hook reports the key %s, which was never used", fresh[0].key)
		}
	}
	return nil
}
