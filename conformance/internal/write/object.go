package write

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"golang.org/x/sync/errgroup"
)

// Object is a destination object as discovery found it. Discovery is lenient:
// what it cannot read is left out, and the planning checks say why.
type Object struct {
	rpc.Object
	Fields     []rpc.Field
	Operations []string
	size       int // of the answers that describe it, in bytes

	// What the trial learned, before the checks begin; and is only read afterwards.
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
	Unhealthy string            // its message, when it said success:false
}

func (c *Catalog) Object(name string) *Object {
	for _, o := range c.Objects {
		if o.APIName == name {
			return o
		}
	}
	return nil
}

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
		// One lost connection is no proof: ask once more before giving up.
		again, err := s.Send(ctx, "", line.Request{Method: rpc.MethodListObjects})
		if err != nil {
			return nil, err
		}
		if !again.Ended() && again.Received > 0 {
			// Something is there, and these two methods may hang alone.
			if again, err = s.Send(ctx, "", line.Request{Method: rpc.MethodGetSyncSpeed}); err != nil {
				return nil, err
			}
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
	c.Speed = speed.Speed()
	if c.Speed != nil {
		s.Pace.Declare(*c.Speed)
	}
	if values := speed.Header.Values("X-RateLimit-Limit"); speed.OK() && len(values) > 0 {
		c.RateLimit, _ = strconv.ParseInt(values[0], 10, 64)
	}
	return c, nil
}

// List asks for the objects and describes them.
func (s *Session) List(ctx context.Context, c *Catalog) error {
	listed, err := s.Send(ctx, "", line.Request{Method: rpc.MethodListObjects})
	if err != nil {
		return err
	}
	s.listedBy(ctx, c, listed)
	return nil
}

// listedBy reads the objects that a reply names, and describes them.
func (s *Session) listedBy(ctx context.Context, c *Catalog, listed *exchange.Reply) {
	c.Planning = append(c.Planning, listed)
	c.Listed, c.Objects = listed.Ended(), ReadObjects(listed)
	s.describe(ctx, c.Objects)
}

// Unhealthy returns the message of a test_connection that says success:false.
func Unhealthy(r *exchange.Reply) string {
	res := r.Result()
	if res == nil {
		return ""
	}
	ok := res.Get("success")
	if ok == nil || ok.Kind != wire.Bool || string(ok.Raw) != "false" {
		return ""
	}
	if m := res.Get("error_message"); m != nil && m.Kind == wire.String && m.Text != "" {
		return m.Text
	}
	return "success is false, and no error_message says why"
}

// describe reads fields and operations of every object, a few at a time.
func (s *Session) describe(ctx context.Context, objects []*Object) {
	var calls errgroup.Group
	calls.SetLimit(8)
	for _, o := range objects {
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

func ReadObjects(r *exchange.Reply) []*Object {
	var out []*Object
	for _, n := range r.Items("objects") {
		name, label := n.Get("object_api_name"), n.Get("label")
		if name == nil || name.Kind != wire.String || name.Text == "" {
			continue
		}
		o := &Object{Object: rpc.Object{APIName: name.Text, Label: name.Text}}
		if label != nil && label.Kind == wire.String && label.Text != "" {
			o.Label = label.Text
		}
		if c := n.Get("can_create_fields"); c != nil && c.Kind == wire.String {
			o.CanCreateFields = c.Text
		}
		if !slices.ContainsFunc(out, func(p *Object) bool { return p.APIName == o.APIName }) {
			out = append(out, o)
		}
	}
	return out
}

// Accepts reports whether batches of an operation may be sent to the object.
func (o *Object) Accepts(operation string) bool { return rules.Accepts(o.Operations, operation) }

// Creating is the operation that makes new records, "" when there is none.
func (o *Object) Creating() string {
	for _, op := range []string{rpc.OperationUpsert, rpc.OperationInsert} {
		if o.Accepts(op) {
			return op
		}
	}
	return ""
}

// Modifying is the operation that changes records, "" when there is none.
func (o *Object) Modifying() string {
	for _, op := range []string{rpc.OperationUpdate, rpc.OperationUpsert} {
		if o.Accepts(op) {
			return op
		}
	}
	return ""
}

// Writing lists the operations of batches that the object accepts.
func (o *Object) Writing() []string {
	return lists.Where([]string{rpc.OperationUpsert, rpc.OperationInsert, rpc.OperationUpdate}, o.Accepts)
}

func (o *Object) Field(name string) (rpc.Field, bool) {
	i := slices.IndexFunc(o.Fields, func(f rpc.Field) bool { return f.APIName == name })
	if i < 0 {
		return rpc.Field{}, false
	}
	return o.Fields[i], true
}

// Identifier is the field that batches are matched by: the first string
// identifier, else the first integer one.
func (o *Object) Identifier() (rpc.Field, error) {
	for _, t := range []string{rpc.TypeString, rpc.TypeInteger} {
		for _, f := range o.Fields {
			if f.Identifier && f.Type == t && !f.Array {
				return f, nil
			}
		}
	}
	return rpc.Field{}, line.NotApplicable("object %q has no field that may be the identifier", o.APIName)
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
	l := o.Lessons[f.APIName]
	switch {
	case l == nil:
		return v.Value(f, s, values.Guess)
	case len(l.Choices) > 0 && !f.Array:
		return l.Choices[int(v.Number(s))%len(l.Choices)]
	case l.Format != nil && !f.Array:
		return v.Formatted(l.Format, s)
	}
	return v.Value(f, s, l.Style)
}

// Avoids reports whether the trial found no value that the field accepts.
func (o *Object) Avoids(field string) bool { return o.Lessons[field] != nil && o.Lessons[field].Avoid }

// Unique reports whether the field refuses a value that another record has.
func (o *Object) Unique(field string) bool { return o.Lessons[field] != nil && o.Lessons[field].Unique }

func (o *Object) Lesson(field string) *Lesson {
	if o.Lessons == nil {
		o.Lessons = map[string]*Lesson{}
	}
	if o.Lessons[field] == nil {
		o.Lessons[field] = &Lesson{}
	}
	return o.Lessons[field]
}

// NoNull reports whether the field refuses null.
func (o *Object) NoNull(field string) bool { return o.Lessons[field] != nil && o.Lessons[field].NoNull }

// Identifiers are the fields that may be the active identifier.
func (o *Object) Identifiers() []rpc.Field {
	return slices.DeleteFunc(slices.Clone(o.Fields), func(f rpc.Field) bool {
		return !f.Identifier || f.Array || f.Type != rpc.TypeString && f.Type != rpc.TypeInteger
	})
}

// NoIdentifier is a writable string field that is not declared an identifier.
func (o *Object) NoIdentifier() (rpc.Field, bool) {
	for _, f := range o.Fields {
		if !f.Identifier && f.Type == rpc.TypeString && !f.Array && f.Createable && f.Updateable {
			return f, true
		}
	}
	return rpc.Field{}, false
}

// LeavesOut takes a PASS back where the trial found fields that a check about every
// field cannot use.
func (sc *Scenario) LeavesOut() {
	for _, f := range sc.Object.Fields {
		if l := sc.Object.Lessons[f.APIName]; l != nil && l.Avoid && f.Createable {
			sc.Weaken(engine.Inconclusive("fixtures", "%s refuses every value that was tried, so that nothing was seen of it: %s", f.APIName, foreign.Clip(l.Refusal, 200)))
		}
	}
}
