package destination

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

// object is a destination object as discovery found it. Discovery is lenient:
// what it cannot read is left out, and the planning checks say why.
type object struct {
	rpc.Object
	Fields     []rpc.Field
	Operations []string
	size       int // of the answers that describe it, in bytes

	// What the trial learned, before the checks begin; and is only read afterwards.
	lessons map[string]*lesson
	keyForm int
	folded  *foldedKeys // identifiers are stored in another case; nil: as they are sent
}

// catalog is what the planning calls answered before the checks began.
type catalog struct {
	objects   []*object
	listed    bool // list_objects was answered, with whatever it was
	speed     *rpc.Speed
	rateLimit int64
	first     *reply   // the reply to the first test_connection
	planning  []*reply // it and those to the calls about no object
	unhealthy string   // its message, when it said success:false
}

func (c *catalog) object(name string) *object {
	for _, o := range c.objects {
		if o.APIName == name {
			return o
		}
	}
	return nil
}

func (c *catalog) names() []string {
	return lists.Of(c.objects, func(o *object) string { return o.APIName })
}

// discover makes the planning calls once, as the service does before a sync.
func (s *session) discover(ctx context.Context) (*catalog, error) {
	c := &catalog{}
	first, err := s.send(ctx, "", request{method: rpc.MethodTestConnection})
	if err != nil {
		return nil, err
	}
	c.first, c.planning = first, []*reply{first}
	if !first.Ended() {
		// One lost connection is no proof: ask once more before giving up.
		again, err := s.send(ctx, "", request{method: rpc.MethodListObjects})
		if err != nil {
			return nil, err
		}
		if !again.Ended() && again.Received > 0 {
			// Something is there, and these two methods may hang alone.
			if again, err = s.send(ctx, "", request{method: rpc.MethodGetSyncSpeed}); err != nil {
				return nil, err
			}
		}
		if !again.Ended() {
			return c, nil
		}
	}
	c.unhealthy = unhealthy(first)
	listed, err := s.listBeside(ctx, first)
	if err != nil {
		return nil, err
	}
	s.listedBy(ctx, c, listed)
	speed, err := s.send(ctx, "", request{method: rpc.MethodGetSyncSpeed})
	if err != nil {
		return nil, err
	}
	c.planning = append(c.planning, speed)
	c.speed = speed.Speed()
	if c.speed != nil {
		s.pace.declare(*c.speed)
	}
	if values := speed.Header.Values("X-RateLimit-Limit"); speed.OK() && len(values) > 0 {
		c.rateLimit, _ = strconv.ParseInt(values[0], 10, 64)
	}
	return c, nil
}

// list asks for the objects and describes them.
func (s *session) list(ctx context.Context, c *catalog) error {
	listed, err := s.send(ctx, "", request{method: rpc.MethodListObjects})
	if err != nil {
		return err
	}
	s.listedBy(ctx, c, listed)
	return nil
}

// listedBy reads the objects that a reply names, and describes them.
func (s *session) listedBy(ctx context.Context, c *catalog, listed *reply) {
	c.planning = append(c.planning, listed)
	c.listed, c.objects = listed.Ended(), readObjects(listed)
	s.describe(ctx, c.objects)
}

// unhealthy returns the message of a test_connection that says success:false.
func unhealthy(r *reply) string {
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
func (s *session) describe(ctx context.Context, objects []*object) {
	var calls errgroup.Group
	calls.SetLimit(8)
	for _, o := range objects {
		calls.Go(func() error {
			params := objectParams(o.Object)
			if r, err := s.send(ctx, "", request{method: rpc.MethodListFields, params: params, object: o.APIName}); err == nil {
				o.Fields, o.size = r.Fields(), len(r.Body)
			}
			if r, err := s.send(ctx, "", request{method: rpc.MethodSupportedOperations, params: params, object: o.APIName}); err == nil {
				o.Operations, o.size = r.Operations(), o.size+len(r.Body)
			}
			return nil
		})
	}
	_ = calls.Wait() // what was not answered stays empty
}

func readObjects(r *reply) []*object {
	var out []*object
	for _, n := range r.Items("objects") {
		name, label := n.Get("object_api_name"), n.Get("label")
		if name == nil || name.Kind != wire.String || name.Text == "" {
			continue
		}
		o := &object{Object: rpc.Object{APIName: name.Text, Label: name.Text}}
		if label != nil && label.Kind == wire.String && label.Text != "" {
			o.Label = label.Text
		}
		if c := n.Get("can_create_fields"); c != nil && c.Kind == wire.String {
			o.CanCreateFields = c.Text
		}
		if !slices.ContainsFunc(out, func(p *object) bool { return p.APIName == o.APIName }) {
			out = append(out, o)
		}
	}
	return out
}

// accepts reports whether batches of an operation may be sent to the object.
func (o *object) accepts(operation string) bool { return rules.Accepts(o.Operations, operation) }

// creating is the operation that makes new records, "" when there is none.
func (o *object) creating() string {
	for _, op := range []string{rpc.OperationUpsert, rpc.OperationInsert} {
		if o.accepts(op) {
			return op
		}
	}
	return ""
}

// modifying is the operation that changes records, "" when there is none.
func (o *object) modifying() string {
	for _, op := range []string{rpc.OperationUpdate, rpc.OperationUpsert} {
		if o.accepts(op) {
			return op
		}
	}
	return ""
}

// writing lists the operations of batches that the object accepts.
func (o *object) writing() []string {
	return lists.Where([]string{rpc.OperationUpsert, rpc.OperationInsert, rpc.OperationUpdate}, o.accepts)
}

func (o *object) field(name string) (rpc.Field, bool) {
	i := slices.IndexFunc(o.Fields, func(f rpc.Field) bool { return f.APIName == name })
	if i < 0 {
		return rpc.Field{}, false
	}
	return o.Fields[i], true
}

// identifier is the field that batches are matched by: the first string
// identifier, else the first integer one.
func (o *object) identifier() (rpc.Field, error) {
	for _, t := range []string{rpc.TypeString, rpc.TypeInteger} {
		for _, f := range o.Fields {
			if f.Identifier && f.Type == t && !f.Array {
				return f, nil
			}
		}
	}
	return rpc.Field{}, notApplicable("object %q has no field that may be the identifier", o.APIName)
}

func (o *object) String() string { return fmt.Sprintf("object %q", o.APIName) }

// found keeps what discovery found, nil when that is nothing.
func (s *session) found(c *catalog) { s.catalog, s.known = c, c != nil }
