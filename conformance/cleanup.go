package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/destkit/destkit/conformance/hook"
	"github.com/destkit/destkit/conformance/journal"
	"github.com/destkit/destkit/destsim/rpc"
)

// cleanUpTime bounds the clean-up at the end of a run; what it does not reach
// is named in the report and stays in the journal.
const cleanUpTime = 30 * time.Second

// cleanUp removes what the run wrote. Only journalled keys are ever deleted,
// through delete batches where the object takes them, else through the hook.
func (s *session) cleanUp(ctx context.Context, r *Report) {
	r.Residue.Journal = s.opts.Journal
	if s.catalog == nil {
		return
	}
	// A run that was interrupted cleans up all the same, for a shorter while.
	limit := cleanUpTime
	if ctx.Err() != nil {
		limit = cleanUpTime / 3
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	s.cleanKeys(clean, &r.Residue)
}

// cleanUpCheck stands in the records of clean-up calls.
var cleanUpCheck = &Check{ID: "CLEAN", Title: "Clean-up"}

// cleanKeys deletes the pending keys of the journal and sorts what is left.
func (s *session) cleanKeys(ctx context.Context, res *Residue) {
	type group struct{ object, field string }
	groups := map[group][]journal.Key{}
	var order []group
	for _, k := range s.journal.Pending() {
		g := group{k.Object, k.Field}
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], k)
	}
	for _, g := range order {
		for part := range slices.Chunk(groups[g], 500) {
			// Each part is a sync run of its own.
			w := s.newWorld(ctx, cleanUpCheck, nil)
			w.cleanGroup(g.object, g.field, part, res)
		}
	}
}

func (w *world) cleanGroup(name, field string, pending []journal.Key, res *Residue) {
	left := pending
	why := "the object takes no delete batches, and no cleanup hook is configured"
	if o := w.catalog.object(name); o != nil && o.accepts(rpc.OperationDelete) {
		left, why = w.deleteKeys(o, field, left)
	}
	if len(left) > 0 && w.opts.Hooks.Cleanup.Set() {
		left, why = w.hookKeys(name, field, left)
	}
	gone := slices.DeleteFunc(slices.Clone(pending), func(k journal.Key) bool { return slices.ContainsFunc(left, sameKey(k)) })
	if len(gone) > 0 {
		if err := w.journal.Cleaned(gone); err != nil {
			why = err.Error()
		}
	}
	for _, k := range gone {
		if k.State != journal.Refused {
			res.Cleaned++
		}
	}
	for _, k := range left {
		l := Leftover{Object: k.Object, Field: k.Field, Identifier: string(k.Identifier), Reason: w.redactor.String(why)}
		switch k.State {
		case journal.Refused: // every write of it was refused: nothing is there
		case journal.Unknown:
			res.Unknown = append(res.Unknown, l)
		default:
			res.Refused = append(res.Refused, l)
		}
	}
}

func sameKey(k journal.Key) func(journal.Key) bool {
	return func(o journal.Key) bool {
		return o.Object == k.Object && o.Field == k.Field && string(o.Identifier) == string(k.Identifier)
	}
}

// deleteKeys sends delete batches and returns the keys that may still be there.
func (w *world) deleteKeys(o *object, field string, pending []journal.Key) (left []journal.Key, why string) {
	id, ok := o.field(field)
	if !ok {
		return pending, fmt.Sprintf("field %q is gone", field)
	}
	size := 500
	if w.catalog.speed != nil {
		size = int(min(500, w.catalog.speed.MaximumBatchSize))
	}
	for part := range slices.Chunk(pending, max(1, size)) {
		records := make([]*record, len(part))
		for i, k := range part {
			records[i] = &record{object: o, id: id, key: k.Identifier, values: map[string]json.RawMessage{field: k.Identifier}}
		}
		r, err := w.session.send(w.ctx, w.check.ID, request{
			method: rpc.MethodSyncBatch, params: w.batchParams(rpc.OperationDelete, records, w.ordinary(o, id)),
			object: o.APIName, records: len(records), odd: true,
		})
		if err != nil {
			left, why = append(left, part...), err.Error()
			continue
		}
		b := &batch{object: o, operation: rpc.OperationDelete, records: records, reply: r}
		b.read()
		for i, k := range part {
			if !b.succeeded(records[i]) {
				left, why = append(left, k), "delete: "+b.why(records[i])
			}
		}
	}
	return left, why
}

// hookKeys asks the author's cleanup hook to remove keys.
func (w *world) hookKeys(object, field string, pending []journal.Key) (left []journal.Key, why string) {
	ids := make([]json.RawMessage, len(pending))
	for i, k := range pending {
		ids[i] = k.Identifier
	}
	_, err := hook.Call(w.ctx, w.opts.Hooks.Cleanup, w.hooks, w.opts.Hooks.Timeout, "cleanup",
		map[string]any{"action": "begin", "object": object, "identifier_field": field, "identifiers": ids})
	if err != nil {
		return pending, "cleanup hook: " + err.Error()
	}
	return nil, ""
}

// Clean resumes the clean-up of an earlier run from its journal: it deletes only
// journalled keys and says exactly what is left behind.
func Clean(ctx context.Context, target Target, opts Options) (*Residue, error) {
	path := opts.Journal
	if path == "" {
		return nil, usage("the journal is missing: destkit clean --journal FILE URL")
	}
	opts.Journal = ""
	s, err := newSession(target, opts)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if s.journal, err = journal.Open(path); err != nil {
		return nil, usage("%v", err)
	}
	defer s.journal.Close()
	c, err := s.discover(ctx)
	if err != nil {
		return nil, err
	}
	if len(c.objects) == 0 && !s.opts.Hooks.Cleanup.Set() {
		return nil, fmt.Errorf("read the objects of the endpoint: %s", s.redactor.String(c.first.trouble()))
	}
	s.catalog = c
	res := &Residue{Journal: path, Refused: []Leftover{}, Unknown: []Leftover{}}
	s.cleanKeys(ctx, res)
	return res, nil
}
