package destsim

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// FaultKind describes one kind of fault.
type FaultKind struct {
	Name string `json:"name"`
	Does string `json:"does"`
	// Takes lists the parameters besides kind and when.
	Takes []string `json:"takes"`
	// Methods lists the only methods that it touches; empty: all.
	Methods []string `json:"methods"`
	// Records means that it acts on single records of a batch.
	Records bool `json:"records"`

	at []string // the values that At may have
}

var (
	batchMethod     = []string{rpc.MethodSyncBatch}
	aroundCommit    = []string{"before", "after"}
	throughoutBatch = []string{"before", "after", "between"}
)

// faultKinds is the catalogue.
var faultKinds = []FaultKind{
	{Name: "delay", Does: "waits, by a distribution, before the call is executed or before it is answered", Takes: []string{"at", "delay"}, at: aroundCommit},
	{Name: "hang", Does: "gives no answer until the client goes away", Takes: []string{"at"}, at: aroundCommit},
	{Name: "rpc_error", Does: "answers a JSON-RPC error object", Takes: []string{"at", "code", "message", "data"}, at: aroundCommit},
	{Name: "http_status", Does: "answers another HTTP status", Takes: []string{"at", "status", "headers", "body"}, at: aroundCommit},
	{Name: "throttle", Does: "answers 429 with Retry-After as seconds, as a date, absent or as garbage", Takes: []string{"at", "retry_after", "seconds"}, at: aroundCommit},
	{Name: "reset", Does: "resets the connection before or after the batch is stored, or between two of its records", Takes: []string{"at", "records"}, at: throughoutBatch},
	{Name: "close", Does: "closes the connection without an answer, at the same places", Takes: []string{"at", "records"}, at: throughoutBatch},
	{Name: "truncate", Does: "announces the whole body, sends a part and closes", Takes: []string{"bytes"}},
	{Name: "stall", Does: "stops in the middle of the body for a while", Takes: []string{"bytes", "pause_ms"}},
	{Name: "slow_body", Does: "sends the body in small pieces with pauses", Takes: []string{"bytes", "pause_ms"}},
	{Name: "wrong_id", Does: "answers with another id", Takes: []string{"id"}},
	{Name: "wrong_identifiers", Does: "answers for identifiers that were not sent", Takes: []string{"records"}, Methods: batchMethod, Records: true},
	{Name: "missing_results", Does: "leaves results out", Takes: []string{"records"}, Methods: batchMethod, Records: true},
	{Name: "repeated_results", Does: "gives results twice", Takes: []string{"records"}, Methods: batchMethod, Records: true},
	{Name: "contradictory_results", Does: "gives a second result that says the opposite", Takes: []string{"records"}, Methods: batchMethod, Records: true},
	{Name: "extra_results", Does: "adds results for identifiers that were not sent", Takes: []string{"records"}, Methods: batchMethod},
	{Name: "record_failure", Does: "fails records, nothing of them is stored", Takes: []string{"records", "message"}, Methods: batchMethod, Records: true},
	{Name: "acknowledge_unstored", Does: "reports success for records that it does not store", Takes: []string{"records"}, Methods: batchMethod, Records: true},
	{Name: "refuse_stored", Does: "stores records and reports failure", Takes: []string{"records", "message"}, Methods: batchMethod, Records: true},
	{Name: "schema", Does: "shows a changed schema, and acts by it", Takes: []string{"drift"}, Methods: []string{
		rpc.MethodListObjects, rpc.MethodListFields, rpc.MethodSupportedOperations, rpc.MethodSyncBatch,
	}},
	{Name: "speed", Does: "answers other speeds, one after the other", Takes: []string{"speeds"}, Methods: []string{rpc.MethodGetSyncSpeed}},
	{Name: "rate_limit", Does: "sends other values of X-RateLimit-Limit, one after the other", Takes: []string{"limits"}},
}

// FaultKinds lists every kind of fault that can be armed.
func FaultKinds() []FaultKind {
	list := slices.Clone(faultKinds)
	for i := range list {
		list[i].Methods = append([]string{}, list[i].Methods...) // never null in JSON
	}
	return list
}

// methods are those that a fault can touch; empty: all.
func (f *Fault) methods(kind FaultKind) []string {
	switch {
	case f.When.Method != "":
		return []string{f.When.Method}
	case f.When.batchOnly() || f.At == "between":
		return batchMethod
	}
	return kind.Methods
}

// check finds the kind and everything that does not fit it.
func (f *Fault) check() (FaultKind, error) {
	names := make([]string, len(faultKinds))
	for i, k := range faultKinds {
		names[i] = k.Name
		if k.Name == f.Kind {
			return k, f.checkKind(k)
		}
	}
	return FaultKind{}, fmt.Errorf("kind: %w", unknownWord("kind", f.Kind, names))
}

func (f *Fault) checkKind(kind FaultKind) error {
	for place, raw := range map[string]json.RawMessage{
		"data": f.Data, "id": f.ID, "when.identifier": f.When.Identifier, "when.value": f.When.Value,
	} {
		if raw != nil && !json.Valid(raw) {
			return fmt.Errorf("%s: is not a JSON value", place)
		}
	}
	if err := onlyMembers(f, kind.Name, append([]string{"kind", "when"}, kind.Takes...)); err != nil {
		return err
	}
	if f.At != "" && !slices.Contains(kind.at, f.At) {
		return fmt.Errorf("at: unknown value %q%s", clip(f.At), didYouMean(f.At, kind.at))
	}
	if f.At == "between" && f.When.Method != "" && f.When.Method != rpc.MethodSyncBatch {
		return fmt.Errorf("at: %s has no records to be between", f.When.Method)
	}
	if f.Records > 0 && len(kind.at) > 0 && f.At != "between" {
		return errors.New("records: counts with at between only")
	}
	if min(f.Bytes, f.Records, f.Seconds) < 0 || !(f.PauseMS >= 0 && f.PauseMS <= 3600000) {
		return errors.New("bytes, records, seconds and pause_ms must not be negative, and a pause not longer than an hour")
	}
	if err := f.checkParameters(); err != nil {
		return err
	}
	return f.When.check(kind)
}

// checkParameters requires the mandatory parameters of a kind.
func (f *Fault) checkParameters() error {
	switch f.Kind {
	case "delay":
		if f.Delay == nil {
			return errors.New("delay: is missing")
		}
		return f.Delay.check()
	case "http_status":
		if f.Status < 200 || f.Status > 599 {
			return fmt.Errorf("status: must be between 200 and 599, not %d", f.Status)
		}
		for name, value := range f.Headers {
			if name == "" || textproto.TrimString(name) != name || strings.ContainsAny(name, " :\t\r\n") || strings.ContainsAny(value, "\r\n") {
				return fmt.Errorf("headers[%q]: not a valid header name and value", clip(name))
			}
		}
	case "throttle":
		known := []string{"seconds", "date", "absent", "garbage"}
		if f.RetryAfter != "" && !slices.Contains(known, f.RetryAfter) {
			return fmt.Errorf("retry_after: unknown value %q%s", clip(f.RetryAfter), didYouMean(f.RetryAfter, known))
		}
	case "schema":
		if f.Drift == nil {
			return errors.New("drift: is missing")
		}
		return f.Drift.check()
	case "speed":
		if len(f.Speeds) == 0 {
			return errors.New("speeds: must have at least one entry")
		}
	case "rate_limit":
		if len(f.Limits) == 0 {
			return errors.New("limits: must have at least one entry")
		}
		for i, value := range f.Limits {
			if strings.ContainsAny(value, "\r\n") {
				return fmt.Errorf("limits[%d]: not a valid header value", i)
			}
		}
	}
	return nil
}

// onlyMembers complains about a member that is set and not among the known: a
// parameter that is ignored would let a test believe in what never happens.
func onlyMembers(v any, of string, known []string) error {
	var members map[string]json.RawMessage
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("read %s: %w", of, err)
	}
	if err := json.Unmarshal(raw, &members); err != nil {
		return fmt.Errorf("read %s: %w", of, err)
	}
	var strange []string
	for name := range members {
		if !slices.Contains(known, name) {
			strange = append(strange, name)
		}
	}
	if len(strange) == 0 {
		return nil
	}
	slices.Sort(strange)
	return fmt.Errorf("%s: %s does not take it", strings.Join(strange, ", "), of)
}

// Drift is a schema that was changed in the destination system while the
// service went on with the old one. It exists for as long as its fault fires:
// the planning calls show it and batches are treated by it, but the
// destination's own schema stays as it is.
type Drift struct {
	// Action is remove_field, add_field, retype_field, require_field,
	// remove_object or set_operations.
	Action     string   `json:"action"`
	Object     string   `json:"object,omitempty"` // object_api_name; "": all objects
	Field      string   `json:"field,omitempty"`
	Type       string   `json:"type,omitempty"`       // add_field (string when empty), retype_field
	Operations []string `json:"operations,omitempty"` // set_operations
}

func (d *Drift) check() error {
	takes := map[string][]string{
		"remove_field": {"field"}, "add_field": {"field", "type"}, "retype_field": {"field", "type"},
		"require_field": {"field"}, "remove_object": nil, "set_operations": {"operations"},
	}
	actions := []string{"remove_field", "add_field", "retype_field", "require_field", "remove_object", "set_operations"}
	if !slices.Contains(actions, d.Action) {
		return fmt.Errorf("drift.action: unknown action %q%s", clip(d.Action), didYouMean(d.Action, actions))
	}
	if err := onlyMembers(d, "drift."+d.Action, append(takes[d.Action], "action", "object")); err != nil {
		return err
	}
	switch {
	case slices.Contains(takes[d.Action], "field") && d.Field == "":
		return errors.New("drift.field: is missing")
	case d.Action == "retype_field" && d.Type == "":
		return errors.New("drift.type: is missing")
	case d.Type != "" && !slices.Contains(rpc.FieldTypes(), d.Type):
		return fmt.Errorf("drift.type: unknown type %q%s", clip(d.Type), didYouMean(d.Type, rpc.FieldTypes()))
	case d.Action == "remove_object" && d.Object == "":
		return errors.New("drift.object: is missing")
	case d.Action == "set_operations" && len(d.Operations) == 0:
		return errors.New("drift.operations: must have at least one entry")
	}
	for i, operation := range d.Operations {
		if err := checkOperation(operation); err != nil {
			return fmt.Errorf("drift.operations[%d]: %w", i, err)
		}
	}
	return nil
}

func (d *Drift) of(object string) bool { return d.Object == "" || d.Object == object }

// plan changes the answer of a planning call; the value is the call's own.
func (d *Drift) plan(c *call, value any) any {
	switch v := value.(type) {
	case objectsResult:
		if d.Action == "remove_object" {
			v.Objects = slices.DeleteFunc(v.Objects, func(o rpc.Object) bool { return o.APIName == d.Object })
		}
		return v
	case fieldsResult:
		if d.of(c.object) {
			v.Fields = d.fields(v.Fields)
		}
		return v
	case operationsResult:
		if d.of(c.object) && d.Action == "set_operations" {
			v.Operations = d.Operations
		}
		return v
	}
	return value
}

func (d *Drift) fields(fields []rpc.Field) []rpc.Field {
	switch d.Action {
	case "remove_field":
		return slices.DeleteFunc(fields, func(f rpc.Field) bool { return f.APIName == d.Field })
	case "add_field":
		return append(fields, rpc.Field{
			APIName: d.Field, Label: d.Field, Type: cmp.Or(d.Type, rpc.TypeString), Createable: true, Updateable: true,
		})
	}
	for i := range fields {
		switch {
		case fields[i].APIName != d.Field:
		case d.Action == "retype_field":
			fields[i].Type = d.Type
		case d.Action == "require_field":
			fields[i].Required = true
		}
	}
	return fields
}

// refuse returns why a planning call about an object or a whole batch fails.
func (d *Drift) refuse(object, operation string) *rpc.Error {
	switch {
	case object == "" || !d.of(object):
		return nil
	case d.Action == "remove_object":
		return &rpc.Error{Code: rpc.CodeInvalidParams, Message: fmt.Sprintf("invalid params: unknown object %q", clip(object))}
	case d.Action == "set_operations" && operation != "" && !slices.Contains(d.accepts(), operation):
		return &rpc.Error{Code: rpc.CodeInvalidParams, Message: fmt.Sprintf(
			"invalid params: object %q does not accept batches with the operation %q", clip(object), clip(operation))}
	}
	return nil
}

// accepts are the operations of batches: mirror is sent as upsert and delete.
func (d *Drift) accepts() []string {
	if slices.Contains(d.Operations, rpc.OperationMirror) {
		return append([]string{rpc.OperationUpsert, rpc.OperationDelete}, d.Operations...)
	}
	return d.Operations
}

// batch treats a batch by the changed schema: its plan is seen against copies
// of the object and the field that are changed.
func (d *Drift) batch(b *batch) {
	if d.Field == "" || !d.of(b.object.APIName) {
		return
	}
	changed := &field{
		Field:  rpc.Field{APIName: d.Field, Label: d.Field, Type: cmp.Or(d.Type, rpc.TypeString), Createable: true, Updateable: true},
		quoted: store.Quote(d.Field),
	}
	if f := b.object.byName[d.Field]; f != nil {
		*changed = *f
	}
	col := &column{field: changed}
	switch d.Action {
	case "remove_field":
		col.problem = fmt.Sprintf("field %q does not exist", clip(d.Field))
	case "retype_field":
		changed.Type = d.Type
	case "require_field":
		changed.Required = true
		object := *b.object
		object.required = append(slices.Clone(object.required), changed)
		b.object = &object
	}
	if b.plan.columns[d.Field] == nil {
		return
	}
	b.plan = b.plan.editable()
	b.plan.columns[d.Field] = col
	if b.identifier.APIName == d.Field {
		b.identifier = col
	}
}
