package destination

import (
	"encoding/json"
	"net/http"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/openapi"
)

// sighted is one exchange of others, its request taken apart.
type sighted struct {
	*reply
	httpMethod string
	number     int // from 1, in the order of the requests

	request *wire.Node // nil when the body is not one JSON value
	badBody bool       // there is a body, and it is no JSON
	// form is what is wrong with the envelope, so that what it is answered with says
	// nothing about a good call.
	form    envelopeForm
	params  *wire.Node
	empty   bool // params is {}
	records int
	batch   *batch // of a sync_batch with a plan
	keyless int    // its records without an identifier
	active  string // its active identifier
	auth    string // the Authorization header
}

// envelopeForm is what is wrong with a request.
type envelopeForm uint8

const (
	goodForm   envelopeForm = iota
	noJSON                  // the body is no JSON value
	notObject               // an array or another value
	noEnvelope              // jsonrpc or method are missing or of another type
	noID                    // the id is missing or no string
	badParams               // params are missing, no object, or without what the method needs
	notPOST
)

// look takes an exchange apart; auth is its Authorization header.
func (p *ruler) look(r *reply, httpMethod, auth string, number int) *sighted {
	c := &sighted{reply: r, httpMethod: httpMethod, auth: auth, number: number}
	if n, err := wire.Parse(r.Request); err == nil {
		c.request = n
	} else {
		c.badBody = len(r.Request) > 0
	}
	c.Method, c.ID = text(c.request.Get("method")), text(c.request.Get("id"))
	c.params = c.request.Get("params")
	c.empty = c.params.Is(wire.Object) && len(c.params.Members) == 0
	c.Object = text(c.params.Get("object", "object_api_name"))
	if c.Method == rpc.MethodSyncBatch {
		c.Object = text(c.params.Get("sync_plan", "object", "object_api_name"))
	}
	c.form = c.envelope()
	if c.Method == rpc.MethodSyncBatch && c.form == goodForm {
		p.readBatch(c)
	}
	return c
}

// odd reports whether the request is outside the published schema.
func (c *sighted) odd() bool {
	return !c.known() || openapi.ValidateParams(c.Method, sample(c.params.Raw)) != nil
}

func text(n *wire.Node) string {
	if n.Is(wire.String) {
		return n.Text
	}
	return ""
}

// envelope says what is wrong with the request.
func (c *sighted) envelope() envelopeForm {
	id := c.request.Get("id")
	switch {
	case c.httpMethod != http.MethodPost:
		return notPOST
	case c.request == nil:
		return noJSON
	case !c.request.Is(wire.Object):
		return notObject
	case text(c.request.Get("jsonrpc")) != rpc.Version || c.Method == "":
		return noEnvelope
	case !id.Is(wire.String):
		return noID
	case !c.params.Is(wire.Object):
		return badParams
	}
	switch c.Method {
	case rpc.MethodListFields, rpc.MethodSupportedOperations:
		if c.Object == "" {
			return badParams
		}
	case rpc.MethodSyncBatch:
		if c.Object == "" || !c.params.Get("records").Is(wire.Array) || !c.params.Get("sync_plan", "schema").Is(wire.Object) ||
			!c.params.Get("sync_plan", "operation").Is(wire.String) {
			return badParams
		}
	}
	return goodForm
}

// readBatch makes of a sync_batch what the judge knows of its own.
func (p *ruler) readBatch(c *sighted) {
	plan := c.params.Get("sync_plan")
	o := p.s.catalog.object(c.Object)
	if o == nil {
		o = &object{Object: rpc.Object{APIName: c.Object, Label: text(plan.Get("object", "label"))}}
	}
	var id rpc.Field
	for _, m := range plan.Get("schema").Members {
		if active, _ := m.Value.Get("active_identifier").Bool(); active {
			if json.Unmarshal(m.Value.Get("field").RawOrNull(), &id) != nil || id.APIName == "" {
				id = rpc.Field{APIName: m.Name}
			}
			c.active = m.Name
			break
		}
	}
	records := c.params.Get("records").Items
	c.records = len(records)
	b := &batch{object: o, operation: text(plan.Get("operation")), reply: c.reply, secrets: p.s.redactor, records: make([]*record, 0, len(records))}
	all := make([]record, len(records))
	for i, n := range records {
		key := n.Get(c.active)
		if c.active == "" || !key.Is(wire.String) && !key.Is(wire.Number) || key.Is(wire.String) && key.Text == "" {
			c.keyless++
			continue
		}
		all[i] = record{object: o, id: id, key: key.Raw}
		b.records = append(b.records, &all[i])
	}
	b.read()
	c.batch = b
}

// refusedOutside reports whether what stands before the endpoint may have answered: a
// guard, a throttle, a gateway with nothing behind it. Where that is no envelope,
// rules about the endpoint's answers say nothing of it.
func (c *sighted) refusedOutside() bool {
	switch c.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return !c.Enveloped()
	}
	return false
}
