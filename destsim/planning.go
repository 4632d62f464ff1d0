package destsim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/codec"
	"github.com/destkit/destkit/internal/foreign"
)

// The results of the planning methods; get_sync_speed answers
// rpc.Speed.
type (
	connectionResult struct {
		Success      bool   `json:"success"`
		ErrorMessage string `json:"error_message,omitempty"`
	}
	objectsResult struct {
		Objects []rpc.Object `json:"objects"`
	}
	fieldsResult struct {
		Fields []rpc.Field `json:"fields"`
	}
	operationsResult struct {
		Operations []string `json:"operations"`
	}
)

// downstreamDown is what a user reads while the downstream system is broken.
const downstreamDown = "the downstream system is unavailable"

// planning answers the five small methods. Members of params that are not
// known are ignored.
func (c *call) planning() (any, *rpc.Error) {
	s := c.sim
	switch c.method {
	case rpc.MethodTestConnection:
		if s.broken.Load() {
			return connectionResult{ErrorMessage: downstreamDown}, nil
		}
		return connectionResult{Success: true}, nil
	case rpc.MethodListObjects:
		list := []rpc.Object{}
		for _, o := range s.catalogue.Load().objects {
			list = append(list, o.Object)
		}
		return objectsResult{list}, nil
	case rpc.MethodGetSyncSpeed:
		return *s.speed.Load(), nil
	case rpc.MethodListFields:
		o, err := c.objectParam()
		if err != nil {
			return nil, err
		}
		return fieldsResult{o.list()}, nil
	case rpc.MethodSupportedOperations:
		o, err := c.objectParam()
		if err != nil {
			return nil, err
		}
		return operationsResult{append([]string{}, o.operations...)}, nil
	}
	return nil, &rpc.Error{Code: rpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q", clip(c.method))}
}

// objectParam resolves params.object.object_api_name; a label is not needed,
// since only the name is permanent.
func (c *call) objectParam() (*object, *rpc.Error) {
	name, problem := objectName(c.params)
	if problem == "" {
		c.object = name
		if o := c.sim.catalogue.Load().byName[name]; o != nil {
			return o, nil
		}
		problem = fmt.Sprintf("unknown object %q", clip(name))
	}
	return nil, &rpc.Error{Code: rpc.CodeInvalidParams, Message: "invalid params: " + problem}
}

// objectName reads params.object.object_api_name, or returns what is
// wrong. Decoding into maps keeps member names exact.
func objectName(params []byte) (name, problem string) {
	var top, ref map[string]json.RawMessage
	if err := json.Unmarshal(params, &top); err != nil || top["object"] == nil {
		return "", "object is missing"
	}
	if err := json.Unmarshal(top["object"], &ref); err != nil || ref == nil {
		return "", "object must be an object"
	}
	if raw := ref["object_api_name"]; len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &name) == nil {
		return name, ""
	}
	return "", "object.object_api_name must be a string"
}

// clip shortens foreign text for a message.
func clip(text string) string { return foreign.Clip(text, 64) }

// plan is a sync plan seen against the catalogue. It is shared and read-only.
type plan struct {
	catalogue  *catalogue
	raw        []byte
	id         uint64 // codec.Batch.PlanID of the batch that brought it
	object     *object
	operation  string
	identifier *column
	columns    map[string]*column
	quick      bool // see quickBatch
	forms      atomic.Pointer[[]*form]
}

// column is one mapped field. A problem makes every record that carries the
// field fail, not the batch: the other records may well be good.
type column struct {
	*field
	pending bool // not in the catalogue yet: created by the first good record
	problem string
}

// compile checks a plan (spec 4.2, identifier rule): an error here concerns
// every record, so it fails the call. The plan is filled as far as it goes,
// with an error too.
func (s *Sim) compile(b *codec.Batch) (*plan, *rpc.Error) {
	cat := s.catalogue.Load()
	if p := s.plans.find(cat, b); p != nil {
		return p, nil
	}
	p := &plan{catalogue: cat, raw: bytes.Clone(b.RawPlan), id: b.PlanID, operation: b.Plan.Operation}
	if problem := p.resolve(b); problem != "" {
		return p, &rpc.Error{Code: rpc.CodeInvalidParams, Message: "invalid params: " + problem}
	}
	p.quick = p.canBeQuick()
	s.plans.add(p)
	return p, nil
}

// resolve fills a plan and gives "" or the first problem.
func (p *plan) resolve(b *codec.Batch) (problem string) {
	object := b.Plan.Object.APIName
	if p.object = p.catalogue.byName[object]; p.object == nil {
		if object == "" {
			return "sync_plan.object.object_api_name is missing"
		}
		return fmt.Sprintf("unknown object %q", clip(object))
	}
	p.columns = make(map[string]*column, len(b.Plan.Schema))
	for name, mapped := range b.Plan.Schema {
		p.columns[name] = p.column(name, mapped)
	}
	if b.Identifier != "" {
		p.identifier = p.columns[b.Identifier]
	}
	switch {
	case !p.object.accepts(p.operation):
		return fmt.Sprintf("object %q does not accept batches with the operation %q", object, clip(p.operation))
	case p.identifier == nil:
		return "sync_plan.schema must have exactly one active identifier"
	case !p.identifier.Identifier || p.identifier.pending:
		return fmt.Sprintf("field %q is not an identifier of object %q", clip(b.Identifier), object)
	}
	return ""
}

// column resolves one mapped field.
func (p *plan) column(name string, mapped rpc.SchemaField) *column {
	if f := p.object.byName[name]; f != nil {
		return &column{field: f}
	}
	f := &field{
		Field: rpc.Field{
			APIName: name, Label: cmp.Or(mapped.Field.Label, name), Type: mapped.Field.Type, Array: mapped.Field.Array,
			Createable: true, Updateable: true,
		},
		quoted: store.Quote(name), custom: true,
	}
	col := &column{field: f, pending: true}
	switch {
	case !p.object.onWrite():
		col.problem = fmt.Sprintf("field %q does not exist", clip(name))
	case name == "":
		col.problem = "a field without a name cannot be created"
	case !slices.Contains(rpc.FieldTypes(), f.Type):
		col.problem = fmt.Sprintf("field %q cannot be created with the type %q", clip(name), clip(f.Type))
	}
	return col
}

// planCache remembers the last plans by byte equality, because the plan is
// repeated in every batch. It is a memory of requests: an entry counts only for
// the very catalogue that it was compiled against.
type planCache struct {
	mu    sync.Mutex
	plans atomic.Pointer[[]*plan]
}

const plansKept = 16

// find compares numbers first: the bytes were compared to find these.
func (c *planCache) find(cat *catalogue, b *codec.Batch) *plan {
	list := c.plans.Load()
	if list == nil {
		return nil
	}
	for _, p := range *list {
		if p.catalogue == cat && b.PlanID != 0 && p.id == b.PlanID {
			return p
		}
	}
	for _, p := range *list {
		if p.catalogue == cat && bytes.Equal(p.raw, b.RawPlan) {
			return p
		}
	}
	return nil
}

func (c *planCache) add(p *plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := []*plan{p}
	if list := c.plans.Load(); list != nil {
		for _, old := range *list {
			if len(next) < plansKept && old.catalogue == p.catalogue && !bytes.Equal(old.raw, p.raw) {
				next = append(next, old)
			}
		}
	}
	c.plans.Store(&next)
}

// editable gives a copy whose columns may be changed, for violations.
func (p *plan) editable() *plan {
	return &plan{
		catalogue: p.catalogue, raw: p.raw, object: p.object, operation: p.operation,
		identifier: p.identifier, columns: maps.Clone(p.columns),
	}
}
