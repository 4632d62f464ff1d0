package destination

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/codec"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/rawjson"
)

// Handling is what an application does with a mapped value besides storing it.
// The custom destination protocol has no word for any of it, so it is done for
// emulated types only, before their store is called.
type Handling struct {
	// Preserve keeps the value that the record has, if it has one.
	Preserve bool
	// Merge adds the elements that the array of the record does not hold.
	Merge bool
	// LookupObject and LookupField find the record that the value refers to.
	LookupObject, LookupField string
}

// none reports whether a value is stored as it comes.
func (h Handling) none() bool { return h == Handling{} }

// Handle is the plan with a handling of some of its fields, by name.
func (p *Plan) Handle(fields map[string]Handling) *Plan {
	handled := NewPlan(p.SyncPlan, p.order)
	for name, h := range fields {
		if _, has := p.Schema[name]; has && !h.none() && name != p.identifier {
			if handled.handling == nil {
				handled.handling = map[string]Handling{}
			}
			handled.handling[name] = h
		}
	}
	return handled
}

// stored is what the handling of fields needs to know of the store. It is read
// once for a run and kept up with what the run itself writes.
type stored struct {
	mu      sync.Mutex
	records map[string]map[keyHash]map[string]json.RawMessage // by object and identifier field
	lookups map[string]map[keyHash][]json.RawMessage          // ids by object and field
	missed  bool                                              // the next batch looks again: the record may come
}

// eachRecord reads all records of an object.
func (s *emulatedSender) eachRecord(object string, fn func(id int64, fields map[string]json.RawMessage)) error {
	store, err := s.emulated.store()
	if err != nil {
		return err
	}
	if store.Records == nil {
		return fmt.Errorf("list records of %q: the store does not show them", foreign.Clip(object, 64))
	}
	for after := int64(0); ; {
		page, _, err := store.Records(object, after, swapPage)
		if err != nil {
			return fmt.Errorf("list records of %q: %w", foreign.Clip(object, 64), err)
		}
		for _, text := range page {
			var record struct {
				ID     int64                      `json:"id"`
				Fields map[string]json.RawMessage `json:"fields"`
			}
			if err := json.Unmarshal(text, &record); err != nil {
				return fmt.Errorf("read record of %q: %w", foreign.Clip(object, 64), err)
			}
			after = max(after, record.ID)
			fn(record.ID, record.Fields)
		}
		if len(page) < swapPage {
			return nil
		}
	}
}

// valueOf represents a value whether it is a number or its text.
func valueOf(raw []byte) keyHash {
	if text, err := rawjson.StringText(raw); err == nil {
		return hashOf(rawjson.AppendString(nil, text))
	}
	return hashOf(rawjson.AppendString(nil, string(bytes.TrimSpace(raw))))
}

// lookup gives the numbers in the store of the records that a value may refer to.
func (s *emulatedSender) lookup(h Handling, value []byte) ([]json.RawMessage, error) {
	place := h.LookupObject + "\x00" + h.LookupField
	index := s.seen.lookups[place]
	if index == nil {
		index = map[keyHash][]json.RawMessage{}
		err := s.eachRecord(h.LookupObject, func(id int64, fields map[string]json.RawMessage) {
			raw, has := fields[h.LookupField]
			if !has || rawjson.IsNull(raw) {
				return
			}
			index[valueOf(raw)] = append(index[valueOf(raw)], strconv.AppendInt(nil, id, 10))
		})
		if err != nil {
			return nil, err
		}
		if s.seen.lookups == nil {
			s.seen.lookups = map[string]map[keyHash][]json.RawMessage{}
		}
		s.seen.lookups[place] = index
	}
	return index[valueOf(value)], nil
}

// existing gives the records of the plan's object by their identifiers.
func (s *emulatedSender) existing(plan *Plan) (map[keyHash]map[string]json.RawMessage, error) {
	place := plan.Object.APIName + "\x00" + plan.identifier
	if found := s.seen.records[place]; found != nil {
		return found, nil
	}
	found := map[keyHash]map[string]json.RawMessage{}
	err := s.eachRecord(plan.Object.APIName, func(_ int64, fields map[string]json.RawMessage) {
		kept := map[string]json.RawMessage{}
		for name := range plan.handling {
			if raw, has := fields[name]; has && !rawjson.IsNull(raw) {
				kept[name] = raw
			}
		}
		if raw, has := fields[plan.identifier]; has && !rawjson.IsNull(raw) {
			found[valueOf(raw)] = kept
		}
	})
	if err != nil {
		return nil, err
	}
	if s.seen.records == nil {
		s.seen.records = map[string]map[keyHash]map[string]json.RawMessage{}
	}
	s.seen.records[place] = found
	return found, nil
}

// sendHandled prepares the records, sends those that can be, and refuses those
// whose references lead nowhere.
func (s *emulatedSender) sendHandled(ctx context.Context, plan *Plan, records [][]byte) (Reply, error) {
	s.seen.mu.Lock() // batches of one run take turns: each sees what the last one wrote
	defer s.seen.mu.Unlock()
	if s.seen.missed {
		s.seen.missed, s.seen.lookups = false, nil
	}
	unprepared := func(err error) (Reply, error) {
		return Reply{}, &CallError{Method: rpc.MethodSyncBatch, Outcome: OutcomeNetwork, Message: s.clean.String(err.Error())}
	}
	rows, err := readRows(plan, records)
	if err != nil {
		return unprepared(err)
	}
	existing, err := s.existing(plan)
	if err != nil {
		return unprepared(err)
	}
	// Records that refer to nothing are refused here, in the words that an
	// application would use; the others must not wait for them.
	var ready [][]byte
	values := map[keyHash]map[string]json.RawMessage{}
	var refused []rpc.RecordResult
	for i := range rows.len() {
		record, kept, problem, err := s.prepare(plan, rows.at(i), existing[valueOf(rows.identifier(i))])
		switch {
		case err != nil:
			return unprepared(err)
		case problem != "":
			refused = append(refused, rpc.RecordResult{Identifier: rows.identifier(i), ErrorMessage: problem})
		default:
			ready = append(ready, record)
			values[valueOf(rows.identifier(i))] = kept
		}
	}
	if len(ready) == 0 {
		return Reply{Results: refused}, nil
	}
	// Records are prepared for each attempt.
	reply, err := s.callSender.Send(once(ctx), plan, plan.stamped(ready))
	if err != nil { // it is unknown what was written: it is read again
		s.seen.records = nil
		return reply, err
	}
	for i := range reply.Results {
		key := valueOf(reply.Results[i].Identifier)
		if kept, sent := values[key]; sent && reply.Results[i].Success {
			existing[key] = kept
		}
	}
	reply.Results = append(reply.Results, refused...)
	return reply, nil
}

// prepare rewrites one record. kept are the values of the handled fields
// that the destination has afterwards; problem refuses the record.
func (s *emulatedSender) prepare(plan *Plan, record codec.RawRecord, before map[string]json.RawMessage) (out []byte, kept map[string]json.RawMessage, problem string, err error) {
	out, kept = append(out, '{'), map[string]json.RawMessage{}
	for name, raw := range before {
		kept[name] = raw
	}
	for j := range record.Len() {
		key, raw := record.At(j)
		name := string(key)
		h := plan.handling[name]
		if h.LookupObject != "" && !rawjson.IsNull(raw) {
			if raw, problem, err = s.refer(plan, name, h, raw); err != nil || problem != "" {
				return nil, nil, problem, err
			}
		}
		// A value that is not sent is not changed.
		if h.Preserve && before[name] != nil {
			continue
		}
		if h.Merge && before[name] != nil {
			raw = mergeArrays(before[name], raw)
		}
		if !h.none() {
			if kept[name] = bytes.Clone(raw); rawjson.IsNull(raw) {
				delete(kept, name)
			}
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(rawjson.AppendString(out, name), ':'), raw...)
	}
	return append(out, '}'), kept, "", nil
}

// refer returns the id that a value refers to, in the type of the field.
func (s *emulatedSender) refer(plan *Plan, name string, h Handling, raw []byte) (id []byte, problem string, err error) {
	ids, err := s.lookup(h, raw)
	switch {
	case err != nil:
		return nil, "", err
	case len(ids) == 0:
		s.seen.missed = true
		return nil, fmt.Sprintf("field %q: no record of %q has this %s", foreign.Clip(name, 64), foreign.Clip(h.LookupObject, 64), foreign.Clip(h.LookupField, 64)), nil
	case len(ids) > 1:
		return nil, fmt.Sprintf("field %q: %d records of %q have this %s", foreign.Clip(name, 64), len(ids), foreign.Clip(h.LookupObject, 64), foreign.Clip(h.LookupField, 64)), nil
	}
	id = ids[0]
	if plan.Schema[name].Field.Type == rpc.TypeString && id[0] != '"' {
		id = rawjson.AppendString(nil, string(id))
	}
	return id, "", nil
}

// mergeArrays adds what the first array does not hold, in order; null adds
// nothing.
func mergeArrays(before, more []byte) []byte {
	var list, added []json.RawMessage
	if json.Unmarshal(before, &list) != nil || json.Unmarshal(more, &added) != nil {
		return more
	}
	held := keySet{}
	for _, raw := range list {
		held[hashOf(raw)] = true
	}
	for _, raw := range added {
		if !held[hashOf(raw)] {
			held[hashOf(raw)] = true
			list = append(list, raw)
		}
	}
	out := []byte{'['}
	for i, raw := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	return append(out, ']')
}
