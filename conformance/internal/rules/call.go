package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// Call is one exchange, its request taken apart.
type Call struct {
	*reply
	Records int
	Batch   *Batch // of a sync_batch with a plan

	httpMethod string
	number     int // from 1, in the order of the requests

	request *wire.Node   // nil when the body is not one JSON value
	badBody bool         // there is a body, and it is no JSON
	form    envelopeForm // the answer to another than goodForm shows nothing about a good call
	params  *wire.Node
	empty   bool   // params is {}
	keyless int    // records of the batch without an identifier
	active  string // its active identifier
	auth    string // the Authorization header
}

// envelopeForm is the fault of a request, if any.
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

// envelope returns the fault of the request.
func (c *Call) envelope() envelopeForm {
	switch {
	case c.httpMethod != http.MethodPost:
		return notPOST
	case c.request == nil:
		return noJSON
	case !c.request.Is(wire.Object):
		return notObject
	case text(c.request.Get("jsonrpc")) != rpc.Version || c.Method == "":
		return noEnvelope
	case !c.request.Get("id").Is(wire.String):
		return noID
	case !c.params.Is(wire.Object),
		c.Object == "" && slices.Contains([]string{rpc.MethodListFields, rpc.MethodSupportedOperations, rpc.MethodSyncBatch}, c.Method),
		c.Method == rpc.MethodSyncBatch && (!c.params.Get("records").Is(wire.Array) || !c.params.Get("sync_plan", "schema").Is(wire.Object) ||
			!c.params.Get("sync_plan", "operation").Is(wire.String)):
		return badParams
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
		if key := n.Get(c.active); c.active != "" && (key.Is(wire.Number) || text(key) != "") {
			keys = append(keys, key.Raw)
		}
	}
	c.keyless = c.Records - len(keys)
	b := NewBatch(c.Object, text(plan.Get("operation")), keys, c.reply)
	c.Batch = &b
}

// known reports whether the method is one of the protocol.
func (c *Call) known() bool { return slices.Contains(rpc.Methods(), c.Method) }

// enveloped reports whether the endpoint has answered a good call by an envelope.
func (c *Call) enveloped() bool { return c.Result() != nil || c.IsError() }

// almostKnown reports whether the method differs from one of the protocol in case or space only.
func (c *Call) almostKnown() bool {
	return !c.known() && slices.ContainsFunc(rpc.Methods(), func(m string) bool { return strings.EqualFold(strings.TrimSpace(c.Method), m) })
}

// near reports whether two exchanges were made at about the same time.
func (c *Call) near(o *Call) bool { return c.Started.Sub(o.Started).Abs() <= sameTime }

// label is the label of the object in a planning call.
func (c *Call) label() string { return text(c.params.Get("object", "label")) }

// refusedOutside reports whether a guard, a throttle or a gateway before the endpoint may have
// answered: such an answer is no evidence for rules about the endpoint's answers.
func (c *Call) refusedOutside() bool {
	return (forbidden(c.reply) || c.Passing()) && !c.Enveloped()
}

// forbidden reports whether the status refuses the caller.
func forbidden(r *reply) bool {
	return r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden
}

// Sample is the part of params that is validated: the records of a large batch are alike.
func Sample(params []byte) []byte {
	const records = `"records":[`
	start := bytes.Index(params, []byte(records)) + len(records)
	if len(params) <= 16<<10 || start < len(records) {
		return params
	}
	var first json.RawMessage
	if json.NewDecoder(bytes.NewReader(params[start:])).Decode(&first) != nil {
		return params
	}
	return append(append(params[:start:start], first...), "]}"...)
}

// Batch is a sync_batch call: the keys of its records, and what came back.
type Batch struct {
	Object, Operation string
	Keys              []json.RawMessage // as they were sent, of the records that have one
	Reply             *exchange.Reply
	exchange.Results

	texts []string         // of the keys
	sent  map[string][]int // places in Keys by text
}

// NewBatch reads the results of a reply to sync_batch.
func NewBatch(object, operation string, keys []json.RawMessage, r *exchange.Reply) Batch {
	b := Batch{Object: object, Operation: operation, Keys: keys, Reply: r, Results: r.RecordResults(), sent: make(map[string][]int, len(keys))}
	for i, raw := range keys {
		text := exchange.KeyText(raw)
		b.texts, b.sent[text] = append(b.texts, text), append(b.sent[text], i)
	}
	return b
}

// says picks the results with a status.
func says(success bool) func(r result) bool {
	return func(r result) bool { return r.Success != nil && *r.Success == success }
}

// Statuses count the results that report success, and failure.
func (b *Batch) Statuses() (succeeded, failed int) {
	return len(lists.Where(b.List, says(true))), len(lists.Where(b.List, says(false)))
}

// repeated is the cause where each record of the batch is answered more than once.
func (b *Batch) repeated() string {
	n := len(b.List) / max(1, len(b.Keys))
	for text, at := range b.sent {
		if len(b.ByKey[text]) != n*len(at) {
			return ""
		}
	}
	if n < 2 || len(b.sent) < 2 {
		return ""
	}
	return fmt.Sprintf("each record of the batch has %s: a part of it is written and reported, is not emptied when it is full, and is written and reported again.", quantity.Count(n, "result"))
}

// Stranger reports whether a result names a record which was not sent.
func (b *Batch) Stranger(r result) bool {
	return r.Identifier != nil && r.Identifier.Kind != wire.Null && len(b.sent[exchange.NodeText(r.Identifier)]) == 0
}

// misnamed is the place of a key without a result, of which an identifier is an altered copy.
func (b *Batch) misnamed(got string) (int, bool) {
	i := slices.IndexFunc(b.texts, func(key string) bool { return len(b.ByKey[key]) == 0 && Resembles(key, got) })
	return i, i >= 0
}

// Anonymous reports whether there is a result for each record, and an identifier in none.
func (b *Batch) Anonymous() bool {
	return len(b.List) > 0 && len(b.List) == len(b.Keys) && !slices.ContainsFunc(b.List, func(r result) bool { return r.Identifier != nil || r.Node.Kind != wire.Object })
}

// noResultSymptom distinguishes a record whose result names an altered identifier from one without.
func (b *Batch) noResultSymptom(text string) string {
	for key, at := range b.ByKey { // an altered one may be that of another record, which has results to spare
		if key != text && len(at) > len(b.sent[key]) && Resembles(text, key) && (len(b.sent[key]) > 0 || b.Stranger(b.List[at[0]])) {
			return SymptomAltered
		}
	}
	return SymptomNoResult
}

// Why describes what came instead of a success for a key.
func (b *Batch) Why(key json.RawMessage) string {
	all := b.Of(exchange.KeyText(key))
	switch {
	case !b.IsArray:
		return b.Reply.Short()
	case len(all) == 0 && b.Anonymous():
		return "no result carries an identifier"
	case len(all) == 0:
		return "no result came back"
	}
	return strings.Join(lists.Of(all, func(res result) string { return foreign.Clip(string(res.Node.Raw), 160) }), " and ")
}

// withoutIdentifiers adds a breach, once, about a batch with a result for each record and
// an identifier in none: the records can be matched by position, which the service does not.
func (l *Look) withoutIdentifiers(b *Batch) bool {
	if !b.Anonymous() {
		return false
	}
	if slices.ContainsFunc(l.Breaches, func(b Breach) bool { return b.Symptom == SymptomNoIdentifier }) {
		return true
	}
	said, under := "", ""
	first := b.List[0].Node
	for _, m := range first.Members {
		if m.Value.Kind != wire.Bool && exchange.NodeText(m.Value) == b.texts[0] {
			said = fmt.Sprintf("; the key is in the member %q", m.Name)
			under = fmt.Sprintf(" (the key is under another name, %q)", m.Name)
			break
		}
	}
	breach := l.brokenIn(b, `an "identifier" in every record result`, fmt.Sprintf("%s came back for %s, in none an identifier%s: %s",
		quantity.Count(len(b.List), "result"), quantity.Count(len(b.Keys), "record"), said, foreign.Clip(string(first.Raw), 160)))
	breach.Symptom, breach.Observed = SymptomNoIdentifier, true
	breach.Cause = "the results carry no identifier" + under + ": the service matches results and records by it, and not by their position, so that each record counts as failed."
	breach.Fix = `put the identifier of the record, as it was sent, into the member "identifier" of each result, successes and failures.`
	return true
}
