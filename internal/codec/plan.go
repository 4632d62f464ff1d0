package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/rawjson"
)

const (
	// planSlots bounds how many plans a PlanCache remembers.
	planSlots = 32
	// planBytes is the longest plan that is remembered.
	planBytes = 1 << 20
)

// PlanCache remembers the decoded sync plans of the last batches by byte
// equality of their raw text: the plan is repeated in every batch, and with
// one record it is nine tenths of the bytes. It holds 32 plans of at most
// 1 MiB, drops the oldest, and may be shared by any number of goroutines. The
// zero value is ready for use.
//
// It caches a decoding of the request, never anything that a destination knows
// (spec 4.2, statelessness rule 1).
type PlanCache struct {
	mu      sync.Mutex
	last    uint64                       // the id given last
	entries atomic.Pointer[[]*planEntry] // newest first, never changed in place
}

// planEntry is one decoded plan; it is never changed once made.
type planEntry struct {
	id         uint64 // from 1 in a PlanCache, 0 outside
	raw        []byte
	plan       rpc.SyncPlan
	identifier string
}

// find returns the remembered plan that text starts with. A plan is an object
// and so delimits itself: equal bytes are the whole value.
func (c *PlanCache) find(text []byte) *planEntry {
	entries := c.entries.Load()
	if entries == nil {
		return nil
	}
	for _, e := range *entries {
		if bytes.HasPrefix(text, e.raw) {
			return e
		}
	}
	return nil
}

func (c *PlanCache) add(e *planEntry) {
	if len(e.raw) > planBytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	e.id = c.last
	next := make([]*planEntry, 1, planSlots)
	next[0] = e
	if old := c.entries.Load(); old != nil {
		next = append(next, (*old)[:min(len(*old), planSlots-1)]...)
	}
	c.entries.Store(&next)
}

// newPlanEntry decodes a validated raw plan.
func newPlanEntry(raw []byte) (*planEntry, error) {
	e := &planEntry{raw: bytes.Clone(raw)}
	if err := decodePlan(e.raw, &e.plan); err != nil {
		return nil, err
	}
	e.identifier, _ = e.plan.ActiveIdentifier()
	return e, nil
}

// decodePlan decodes a validated plan. Keys are matched exactly, unlike
// encoding/json; absent and additional keys are left to the caller's rules
// (the text of 2021 had no sync_id), wrong types are an error.
func decodePlan(raw []byte, p *rpc.SyncPlan) error {
	var m [5][]byte
	if !rawjson.Pick(raw, m[:], "object", "operation", "sync_run_id", "sync_id", "schema") {
		return fmt.Errorf("sync_plan is not an object")
	}
	if m[0] != nil {
		var o [2][]byte
		if !rawjson.Pick(m[0], o[:], "object_api_name", "label") {
			return fmt.Errorf("sync_plan.object is not an object")
		}
		if err := leaf("sync_plan.object.object_api_name", o[0], &p.Object.APIName); err != nil {
			return err
		}
		if err := leaf("sync_plan.object.label", o[1], &p.Object.Label); err != nil {
			return err
		}
	}
	if err := leaf("sync_plan.operation", m[1], &p.Operation); err != nil {
		return err
	}
	if err := leaf("sync_plan.sync_run_id", m[2], &p.SyncRunID); err != nil {
		return err
	}
	if err := leaf("sync_plan.sync_id", m[3], &p.SyncID); err != nil {
		return err
	}
	if m[4] == nil {
		return nil
	}
	return decodeSchema(m[4], p)
}

func decodeSchema(raw []byte, p *rpc.SyncPlan) error {
	walk, ok := rawjson.WalkObject(raw)
	if !ok {
		return fmt.Errorf("sync_plan.schema is not an object")
	}
	p.Schema = make(map[string]rpc.SchemaField)
	for key, val, ok := walk.Next(); ok; key, val, ok = walk.Next() {
		var f rpc.SchemaField
		if err := decodeSchemaField(fmt.Sprintf("sync_plan.schema[%q]", key), val, &f); err != nil {
			return err
		}
		p.Schema[string(key)] = f
	}
	return nil
}

func decodeSchemaField(at string, raw []byte, f *rpc.SchemaField) error {
	var m [2][]byte
	if !rawjson.Pick(raw, m[:], "active_identifier", "field") {
		return fmt.Errorf("%s is not an object", at)
	}
	if err := leaf(at+".active_identifier", m[0], &f.ActiveIdentifier); err != nil {
		return err
	}
	if m[1] == nil {
		return nil
	}
	at += ".field"
	var v [8][]byte
	if !rawjson.Pick(m[1], v[:], "field_api_name", "label", "identifier", "required",
		"createable", "updateable", "type", "array") {
		return fmt.Errorf("%s is not an object", at)
	}
	for k, dst := range []any{&f.Field.APIName, &f.Field.Label, &f.Field.Identifier, &f.Field.Required,
		&f.Field.Createable, &f.Field.Updateable, &f.Field.Type, &f.Field.Array} {
		if err := leaf(at, v[k], dst); err != nil {
			return err
		}
	}
	return nil
}

// leaf decodes one scalar; an absent one is left alone.
func leaf(at string, raw []byte, dst any) error {
	if raw == nil {
		return nil
	}
	if err := json.Unmarshal(raw, dst); err != nil {
		return fmt.Errorf("%s has the wrong type: %s", at, foreign.Clip(raw, 64))
	}
	return nil
}
