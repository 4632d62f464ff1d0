package write

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
)

// Object is a destination object as discovery found it. Discovery is lenient: it leaves out what it
// cannot read, and the planning checks report why.
type Object struct {
	rpc.Object
	Fields     []rpc.Field
	Operations []string
	size       int // of the answers that describe it, in bytes

	// What the trial learned before the checks begin; it is only read afterwards.
	Lessons map[string]*Lesson
	KeyForm int
	Folded  *foldedKeys // identifiers are stored in another case; nil: as they are sent
}

// Catalog is what the planning calls answered before the checks began.
type Catalog struct {
	Objects   []*Object
	Listed    bool // list_objects was answered, with whatever it was
	Speed     *rpc.Speed
	RateLimit int64
	First     *exchange.Reply   // the reply to the first test_connection
	Planning  []*exchange.Reply // it and those to the calls about no object
	Unhealthy string            // its message, when it reported success:false
}

// Object is the object of a name, nil when it is not listed.
func (c *Catalog) Object(name string) *Object {
	return First(c.Objects, func(o *Object) bool { return o.APIName == name })
}

// First is the first of a list that fits, the zero value without one.
func First[A any](in []A, fits func(A) bool) (first A) {
	if i := slices.IndexFunc(in, fits); i >= 0 {
		first = in[i]
	}
	return first
}

// Named are the objects of the run that are listed.
func (s *Session) Named() []*Object {
	return lists.Where(lists.Of(s.Opts.Objects, s.Catalog.Object), func(o *Object) bool { return o != nil })
}

// Names are those of the objects.
func (c *Catalog) Names() []string {
	return lists.Of(c.Objects, func(o *Object) string { return o.APIName })
}

// Discover makes the planning calls once, as the service does before a sync.
func (s *Session) Discover(ctx context.Context) (*Catalog, error) {
	c := &Catalog{}
	first, err := s.Send(ctx, "", line.Request{Method: rpc.MethodTestConnection})
	if err != nil {
		return nil, err
	}
	c.First, c.Planning = first, []*exchange.Reply{first}
	if !first.Ended() {
		// One lost connection is no proof: call once more before giving up.
		again, err := s.Send(ctx, "", line.Request{Method: rpc.MethodListObjects})
		if err == nil && !again.Ended() && again.Received > 0 {
			// Something is there, and these two methods may hang alone.
			again, err = s.Send(ctx, "", line.Request{Method: rpc.MethodGetSyncSpeed})
		}
		if err != nil {
			return nil, err
		}
		if !again.Ended() {
			return c, nil
		}
	}
	c.Unhealthy = Unhealthy(first)
	listed, err := s.ListBeside(ctx, first)
	if err != nil {
		return nil, err
	}
	s.listedBy(ctx, c, listed)
	speed, err := s.Send(ctx, "", line.Request{Method: rpc.MethodGetSyncSpeed})
	if err != nil {
		return nil, err
	}
	c.Planning = append(c.Planning, speed)
	if c.Speed = speed.Speed(); c.Speed != nil {
		s.Pace.Declare(*c.Speed)
	}
	if values := speed.Header.Values("X-RateLimit-Limit"); speed.OK() && len(values) > 0 {
		c.RateLimit, _ = strconv.ParseInt(values[0], 10, 64)
	}
	return c, nil
}

// List requests the objects and describes them.
func (s *Session) List(ctx context.Context, c *Catalog) error {
	listed, err := s.Send(ctx, "", line.Request{Method: rpc.MethodListObjects})
	if err == nil {
		s.listedBy(ctx, c, listed)
	}
	return err
}

// listedBy reads the objects that a reply names, and describes them, a few at a time.
func (s *Session) listedBy(ctx context.Context, c *Catalog, listed *exchange.Reply) {
	c.Planning = append(c.Planning, listed)
	c.Listed, c.Objects = listed.Ended(), ReadObjects(listed)
	var calls errgroup.Group
	calls.SetLimit(8)
	for _, o := range c.Objects {
		calls.Go(func() error {
			params := line.ObjectParams(o.Object)
			if r, err := s.Send(ctx, "", line.Request{Method: rpc.MethodListFields, Params: params, Object: o.APIName}); err == nil {
				o.Fields, o.size = r.Fields(), len(r.Body)
			}
			if r, err := s.Send(ctx, "", line.Request{Method: rpc.MethodSupportedOperations, Params: params, Object: o.APIName}); err == nil {
				o.Operations, o.size = r.Operations(), o.size+len(r.Body)
			}
			return nil
		})
	}
	_ = calls.Wait() // what was not answered stays empty
}

// Unhealthy returns the message of a test_connection with success:false, "" else.
func Unhealthy(r *exchange.Reply) string {
	res := r.Result()
	if ok, is := res.Get("success").Bool(); !is || ok {
		return ""
	}
	return cmp.Or(textOf(res.Get("error_message")), "success is false, and no error_message says why")
}

// ReadObjects are the objects that a reply to list_objects names.
func ReadObjects(r *exchange.Reply) []*Object {
	var out []*Object
	for _, n := range r.Items("objects") {
		o := &Object{Object: rpc.Object{APIName: textOf(n.Get("object_api_name")), CanCreateFields: textOf(n.Get("can_create_fields"))}}
		o.Label = cmp.Or(textOf(n.Get("label")), o.APIName)
		if o.APIName != "" && !slices.ContainsFunc(out, func(p *Object) bool { return p.APIName == o.APIName }) {
			out = append(out, o)
		}
	}
	return out
}

// Accepts reports whether batches of an operation may be sent to the object.
func (o *Object) Accepts(operation string) bool { return rules.Accepts(o.Operations, operation) }

// FirstOf is the first of the operations that the object accepts, "" when there is none.
func (o *Object) FirstOf(operations ...string) string { return First(operations, o.Accepts) }

// Creating is the operation that makes new records, "" when there is none.
func (o *Object) Creating() string { return o.FirstOf(rpc.OperationUpsert, rpc.OperationInsert) }

// Writing lists the operations of batches that the object accepts.
func (o *Object) Writing() []string {
	return lists.Where([]string{rpc.OperationUpsert, rpc.OperationInsert, rpc.OperationUpdate}, o.Accepts)
}

// Field is the declaration of a field.
func (o *Object) Field(name string) (rpc.Field, bool) {
	i := slices.IndexFunc(o.Fields, func(f rpc.Field) bool { return f.APIName == name })
	if i < 0 {
		return rpc.Field{}, false
	}
	return o.Fields[i], true
}

// FieldOrNew is a field as it is declared, else as one that is created on write.
func (o *Object) FieldOrNew(name string) rpc.Field {
	if f, declared := o.Field(name); declared {
		return f
	}
	return NewField(name)
}

// Identifier is the field that batches are matched by: the first string one, else the first integer one.
func (o *Object) Identifier() (rpc.Field, error) {
	ids := o.Identifiers()
	if len(ids) == 0 {
		return rpc.Field{}, line.NotApplicable("object %q has no field that may be the identifier (fields that could be read: %d)", o.APIName, len(o.Fields))
	}
	return ids[max(0, slices.IndexFunc(ids, func(f rpc.Field) bool { return f.Type == rpc.TypeString }))], nil
}

func (o *Object) String() string { return fmt.Sprintf("object %q", o.APIName) }

// Found keeps what discovery found, nil when that is nothing.
func (s *Session) Found(c *Catalog) { s.Catalog, s.Known = c, c != nil }

// Lesson is what the trial learned about one field.
type Lesson struct {
	Style   values.Style
	Format  values.Format     // named by a refusal; nil: by the name of the field
	Choices []json.RawMessage // the values that a refusal named
	Avoid   bool              // refused in every style: left out where it is optional
	Unique  bool              // refuses a value that another record has
	NoNull  bool              // refuses null, though it is not required
	Refusal string            // the last message, "" when the first style was accepted
	Shut    *exchange.Reply   // the reply that refused null like every value; nil: something may be taken
}

// Learned is an ordinary value as the trial learned it.
func Learned(v values.Maker, o *Object, f rpc.Field, s values.Seed) json.RawMessage {
	switch l := o.learned(f.APIName); {
	case len(l.Choices) > 0 && !f.Array:
		return l.Choices[int(v.Number(s))%len(l.Choices)]
	case l.Format != nil && !f.Array:
		return v.Formatted(l.Format, s)
	default:
		return v.Value(f, s, l.Style)
	}
}

// learned is the lesson about a field, the zero value without one.
func (o *Object) learned(field string) Lesson {
	if l := o.Lessons[field]; l != nil {
		return *l
	}
	return Lesson{}
}

// Avoids reports whether the trial found no value that the field accepts.
func (o *Object) Avoids(field string) bool { return o.learned(field).Avoid }

// Unique reports whether the field refuses a value that another record has.
func (o *Object) Unique(field string) bool { return o.learned(field).Unique }

// NoNull reports whether the field refuses null.
func (o *Object) NoNull(field string) bool { return o.learned(field).NoNull }

// Lesson is what the trial completes.
func (o *Object) Lesson(field string) *Lesson {
	if o.Lessons == nil {
		o.Lessons = map[string]*Lesson{}
	}
	if o.Lessons[field] == nil {
		o.Lessons[field] = &Lesson{}
	}
	return o.Lessons[field]
}

// Identifiers are the fields that may be the active identifier.
func (o *Object) Identifiers() []rpc.Field {
	return slices.DeleteFunc(slices.Clone(o.Fields), func(f rpc.Field) bool {
		return !f.Identifier || f.Array || f.Type != rpc.TypeString && f.Type != rpc.TypeInteger
	})
}

// NoIdentifier are the writable string fields that are not declared identifiers.
func (o *Object) NoIdentifier() []rpc.Field {
	return lists.Where(o.Fields, func(f rpc.Field) bool { return BothWays(f) && f.Type == rpc.TypeString && !f.Array })
}

// LeavesOut takes a PASS back where the trial found fields that a check about every field cannot use.
func (sc *Scenario) LeavesOut() {
	for _, f := range sc.Object.Fields {
		if l := sc.Object.learned(f.APIName); l.Avoid && f.Createable {
			sc.Weaken(engine.Inconclusive("fixtures", "%s refuses every value that was tried, so that nothing was seen of it: %s", f.APIName, foreign.Clip(l.Refusal, 200)))
		}
	}
}
