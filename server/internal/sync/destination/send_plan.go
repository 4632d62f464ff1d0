package destination

import (
	"encoding/json"
	"slices"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/destination/catalogue"
)

// Plan is the sync plan of batches, made once and sent with each of them. It is
// safe for parallel use.
type Plan struct {
	rpc.SyncPlan
	order      []string // of the fields
	identifier string   // "" none
	head       []byte   // params up to the first record
	handling   map[string]Handling
	settings   catalogue.Settings
}

// NewPlan prepares a sync plan. order names the fields of the schema in the
// order of the records; the others follow by name. The schema must not be
// changed afterwards.
func NewPlan(plan rpc.SyncPlan, order []string) *Plan {
	p := &Plan{SyncPlan: plan}
	for _, name := range order {
		if _, has := plan.Schema[name]; has && !slices.Contains(p.order, name) {
			p.order = append(p.order, name)
		}
	}
	var rest []string
	for name := range plan.Schema {
		if !slices.Contains(p.order, name) {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	p.order = append(p.order, rest...)
	p.identifier, _ = plan.ActiveIdentifier()
	p.head = p.appendHead(nil)
	return p
}

// With is the plan with another operation: a mirror sends upsert and delete
// batches.
func (p *Plan) With(operation string) *Plan {
	plan := p.SyncPlan
	plan.Operation = operation
	with := NewPlan(plan, p.order)
	with.handling, with.settings = p.handling, p.settings
	return with
}

// appendHead writes the plan in the published order of keys, the schema in the
// order of the fields.
func (p *Plan) appendHead(dst []byte) []byte {
	member := func(lead string, value any) {
		text, _ := json.Marshal(value) // texts and numbers always marshal
		dst = append(append(dst, lead...), text...)
	}
	member(`{"sync_plan":{"object":{"object_api_name":`, p.Object.APIName)
	member(`,"label":`, p.Object.Label)
	member(`},"operation":`, p.Operation)
	member(`,"sync_run_id":`, p.SyncRunID)
	member(`,"sync_id":`, p.SyncID)
	dst = append(dst, `,"schema":{`...)
	for i, name := range p.order {
		if i > 0 {
			dst = append(dst, ',')
		}
		member("", name)
		member(":", p.Schema[name])
	}
	return append(dst, `}},"records":[`...)
}

// appendParams writes the params of one batch: exactly two keys.
func (p *Plan) appendParams(dst []byte, records [][]byte) []byte {
	size := len(p.head) + 2
	for _, record := range records {
		size += len(record) + 1
	}
	dst = append(slices.Grow(dst, size), p.head...)
	for i, record := range records {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, record...)
	}
	return append(dst, ']', '}')
}

// WireField is a field in the schema of a sync plan: the eight keys of
// list_fields, as far as api.DestinationField keeps them.
func WireField(f api.DestinationField) rpc.Field {
	return rpc.Field{
		APIName: f.FullName, Label: f.Label, Type: f.Type, Array: f.Array, Required: f.RequiredForMapping,
		Identifier: f.CanBeUpsertKey || f.CanBeUpdateKey || f.CanBeInsertKey,
		Createable: f.Createable, Updateable: f.Updateable,
	}
}
