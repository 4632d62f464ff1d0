package rules

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/openapi"
)

// Call is one exchange, its request taken apart.
type Call struct {
	*reply
	Records int
	Batch   *Batch // of a sync_batch with a plan

	httpMethod string
	number     int // from 1, in the order of the requests

	request *wire.Node // nil when the body is not one JSON value
	badBody bool       // there is a body, and it is no JSON
	// form is what is wrong with the envelope, so that what it is answered with says
	// nothing about a good call.
	form    envelopeForm
	params  *wire.Node
	empty   bool   // params is {}
	keyless int    // records of the batch without an identifier
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

// CutAt reports whether the caller broke off its body, which was announced with a length.
func (c *Call) CutAt(length int) bool { return c.badBody && len(c.Request) < length }

// Read takes an exchange apart; auth is its Authorization header.
func Read(r *exchange.Reply, httpMethod, auth string, number int) *Call {
	c := &Call{reply: r, httpMethod: httpMethod, auth: auth, number: number}
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
		c.readBatch()
	}
	return c
}

// Reply is what came back.
func (c *Call) Reply() *exchange.Reply { return c.reply }

// Good reports whether nothing is wrong with the request.
func (c *Call) Good() bool { return c.form == goodForm }

// envelope says what is wrong with the request.
func (c *Call) envelope() envelopeForm {
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

// readBatch reads the keys of a sync_batch, and its results.
func (c *Call) readBatch() {
	plan := c.params.Get("sync_plan")
	for _, m := range plan.Get("schema").Members {
		if active, _ := m.Value.Get("active_identifier").Bool(); active {
			c.active = m.Name
			break
		}
	}
	records := c.params.Get("records").Items
	c.Records = len(records)
	keys := make([]json.RawMessage, 0, len(records))
	for _, n := range records {
		key := n.Get(c.active)
		if c.active == "" || !key.Is(wire.String) && !key.Is(wire.Number) || key.Is(wire.String) && key.Text == "" {
			c.keyless++
			continue
		}
		keys = append(keys, key.Raw)
	}
	b := NewBatch(c.Object, text(plan.Get("operation")), keys, c.reply)
	c.Batch = &b
}

// known reports whether the method is one of the protocol.
func (c *Call) known() bool { return slices.Contains(rpc.Methods(), c.Method) }

// odd reports whether the request is outside the published schema.
func (c *Call) odd() bool {
	return !c.known() || openapi.ValidateParams(c.Method, Sample(c.params.Raw)) != nil
}

func (c *Call) canceled() bool { return c.Kind == wire.KindCanceled }

// enveloped reports whether the endpoint has answered a good call by an envelope.
func (c *Call) enveloped() bool { return c.Result() != nil || c.IsError() }

// almost is the method of the protocol that differs from the one that was called in
// case or space only.
func (c *Call) almost() string {
	if c.known() {
		return ""
	}
	for _, m := range rpc.Methods() {
		if strings.EqualFold(strings.TrimSpace(c.Method), m) {
			return m
		}
	}
	return ""
}

// near reports whether two exchanges were made at about the same time.
func (c *Call) near(o *Call) bool { return c.Started.Sub(o.Started).Abs() <= sameTime }

// label is what a planning call names beside the object.
func (c *Call) label() string { return text(c.params.Get("object", "label")) }

// refusedOutside reports whether what stands before the endpoint may have answered: a
// guard, a throttle, a gateway with nothing behind it. Where that is no envelope,
// rules about the endpoint's answers say nothing of it.
func (c *Call) refusedOutside() bool {
	switch c.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return !c.Enveloped()
	}
	return false
}

// repeats reports whether an identifier stands more than once in the batch.
func (c *Call) repeats() bool {
	seen := make(map[string]bool, len(c.Batch.Keys))
	for _, key := range c.Batch.Keys {
		if seen[string(key)] {
			return true
		}
		seen[string(key)] = true
	}
	return false
}

// sampled is the length up to which params are validated whole; the records of
// a batch are alike, so that of a longer one the first few stand for all.
const sampled = 16 << 10

// Sample is the part of params that is validated.
func Sample(params []byte) []byte {
	if len(params) <= sampled {
		return params
	}
	start := bytes.Index(params, []byte(`"records":[`))
	if start < 0 {
		return params
	}
	start += len(`"records":[`)
	dec := json.NewDecoder(bytes.NewReader(params[start:]))
	var first json.RawMessage
	if dec.Decode(&first) != nil {
		return params
	}
	out := append(params[:start:start], first...)
	return append(out, "]}"...)
}
