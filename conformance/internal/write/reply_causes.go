package write

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/causes"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
)

// The reply that a finding shows often has its cause in it: a member under another name,
// results of another batch, a key that went through a number. Where it has, the finding
// says that and not what the check says of endpoints in general.

// member is one that a rule asks for.
type member struct {
	name string
	kind wire.NodeKind
}

// ofResult are the members of a result that checks are about, ofRecordResult those of each
// result of a record.
var (
	ofResult = map[string][]member{
		"CON-001": {{"success", wire.Bool}},
		"RES-001": {{"record_results", wire.Array}},
		"RES-011": {{"record_results", wire.Array}},
		"OPS-001": {{"operations", wire.Array}},
		"SPD-001": {{rules.SpeedKeys[0], wire.Number}, {rules.SpeedKeys[1], wire.Number}, {rules.SpeedKeys[2], wire.Number}},
	}
	ofRecordResult = map[string]member{"RES-004": {"identifier", wire.String}, "RES-005": {"success", wire.Bool}}
	// besides are the other members of a result, in whose place nothing else stands.
	besides = []string{"identifier", "error_message", "success", "record_results", "operations", "objects", "fields", rules.SpeedKeys[0], rules.SpeedKeys[1], rules.SpeedKeys[2]}
)

// readReply gives a finding the cause that its reply shows.
func (sc *Scenario) readReply(f *conformance.Finding, symptom string, where []*exchange.Reply) {
	if len(where) == 0 || where[0] == nil {
		return
	}
	r := where[0]
	found := sc.ofMembers(r)
	if found.Text == "" && sc.Check().ID == "HTTP-003" {
		found = ofLostReply(r)
	}
	if b := sc.batchOf(r); b != nil && found.Text == "" {
		found = sc.ofResults(b, symptom)
	}
	if found.Text != "" {
		f.Cause, f.Fix = found.Text, found.Fix
	}
}

// batchOf is the batch that a reply answers, nil when it is another call.
func (sc *Scenario) batchOf(r *exchange.Reply) *Batch {
	for _, b := range sc.Batches {
		if b.Reply == r {
			return b
		}
	}
	return sentIn(r)
}

// sentIn reads a batch from the request of a reply, where another scenario or another
// caller has sent it; nil where that is no batch.
func sentIn(r *exchange.Reply) *Batch {
	if r.Method != rpc.MethodSyncBatch {
		return nil
	}
	root, err := wire.Parse(r.Request)
	params := root.Get("params")
	if err != nil || !params.Get("sync_plan", "schema").Is(wire.Object) || !params.Get("records").Is(wire.Array) {
		return nil
	}
	b := &Batch{Object: &Object{}, Operation: textOf(params.Get("sync_plan", "operation")), Reply: r}
	b.Object.APIName = textOf(params.Get("sync_plan", "object", "object_api_name"))
	var id rpc.Field
	for _, m := range params.Get("sync_plan", "schema").Members {
		if active, _ := m.Value.Get("active_identifier").Bool(); active {
			id = rpc.Field{APIName: m.Name, Type: textOf(m.Value.Get("field", "type")), Identifier: true}
		}
	}
	for _, n := range params.Get("records").Items {
		one := &Record{Object: b.Object, ID: id, Values: map[string]json.RawMessage{}}
		for _, m := range n.Members {
			one.Values[m.Name] = json.RawMessage(m.Value.Raw)
		}
		if one.Key = one.Values[id.APIName]; one.Key == nil {
			return nil
		}
		b.Records = append(b.Records, one)
	}
	b.Read()
	return b
}

func textOf(n *wire.Node) string {
	if n == nil {
		return ""
	}
	return n.Text
}

// ofMembers looks at the members that the check asks for.
func (sc *Scenario) ofMembers(r *exchange.Reply) Cause {
	for _, m := range ofResult[sc.Check().ID] {
		if c, is := causes.Member(r.Result(), m.name, m.kind, besides...); is {
			return Cause{Text: c.Text, Fix: c.Fix}
		}
	}
	m, asks := ofRecordResult[sc.Check().ID]
	if !asks {
		return Cause{}
	}
	for _, n := range r.Items("record_results") {
		v := n.Get(m.name)
		if v.Is(m.kind) || v != nil && m.kind == wire.String { // a key may be a number
			continue
		}
		if c, is := causes.Member(n, m.name, m.kind, besides...); is {
			return Cause{Text: c.Text, Fix: c.Fix}
		}
	}
	return Cause{}
}

// ofLostReply tells a call that ended its handler from one that was put off.
func ofLostReply(r *exchange.Reply) Cause {
	if r.Kind != wire.KindClosed && r.Kind != wire.KindReset {
		return Cause{}
	}
	return Cause{
		Text: "the connection is closed in the place of a reply: an exception or a nil pointer that nothing catches ends the handler, or the process.",
		Fix:  "catch what a handler throws, and answer it with a JSON-RPC error; the log of the endpoint has the place.",
	}
}

// ofResults compares the results of a batch with its records.
func (sc *Scenario) ofResults(b *Batch, symptom string) Cause {
	switch {
	case symptom == rules.SymptomNoneAtAll, symptom == rules.SymptomNoResult && len(b.List) == 0 && !slices.ContainsFunc(sc.Batches, func(o *Batch) bool { return len(o.List) > 0 }):
		return Cause{
			Text: "the list of results is empty: the reply is made before the records are worked through (a promise or a task that is not awaited), or the records were used up before they were written (a generator, a stream).",
			Fix:  "make the reply when each record of the batch has its result.",
		}
	case symptom == rules.SymptomAltered:
		return b.alteredCause()
	case symptom != rules.SymptomNoResult && symptom != rules.SymptomContradict && symptom != "" || !b.Answered():
		return Cause{}
	}
	var earlier, other []string
	for _, res := range b.List {
		if !b.Stranger(res) {
			continue
		}
		text := exchange.NodeText(res.Identifier)
		if name := b.fieldWith(text); name != "" {
			other = append(other, name)
		} else if sc.Keys != nil && sc.Keys.Made(text) {
			earlier = append(earlier, text)
		}
	}
	switch {
	case len(other) > 0:
		return Cause{
			Text: fmt.Sprintf("the results carry the value of %s and not of the active identifier, %s: the name of the identifier is fixed in the code.", other[0], b.Records[0].ID.APIName),
			Fix:  "answer the value of the field that the schema of the plan marks as active identifier.",
		}
	case len(earlier) > 0:
		return Cause{
			Text: fmt.Sprintf("results of other batches are among them, such as of %s: the list of results is kept from call to call (a global, a default argument, a shared buffer).", foreign.Clip(earlier[0], 60)),
			Fix:  "begin each call with an empty list of its own.",
		}
	}
	return Cause{}
}

// fieldWith is another field of a record of the batch with this value, "" when none has.
func (b *Batch) fieldWith(text string) string {
	for _, r := range b.Records {
		for name, raw := range r.Values {
			if name != r.ID.APIName && exchange.KeyText(raw) == text {
				return name
			}
		}
	}
	return ""
}

// alteredCause says what became of the identifier of a record on its way into the results.
func (b *Batch) alteredCause() Cause {
	for _, res := range b.List {
		if !b.Stranger(res) {
			continue
		}
		got := exchange.NodeText(res.Identifier)
		for _, r := range b.Records {
			sent := exchange.KeyText(r.Key)
			if len(b.ResultsOf(r)) > 0 || !rules.Resembles(sent, got) {
				continue
			}
			if said, is := keyCauses[values.Classify(values.Pair{Field: keyField(r.ID), Sent: r.Key, Stored: json.RawMessage(res.Identifier.Raw)}).Class]; is {
				return Cause{Text: "identifiers " + said + " before they are answered.", Fix: fixOfKeys}
			}
			if isNumber(sent) && isNumber(got) {
				return Cause{Text: fmt.Sprintf("identifiers go through a floating point number, or through a format of it: %s was sent and %s came back.", foreign.Clip(sent, 40), foreign.Clip(got, 40)),
					Fix: "keep an identifier as it was sent, and answer that."}
			}
		}
	}
	return Cause{}
}

const fixOfKeys = "keep the identifier as it was sent, and answer that."

// keyField is the field of an identifier, of which every difference counts.
func keyField(f rpc.Field) rpc.Field { return rpc.Field{APIName: f.APIName, Type: f.Type} }

// keyCauses say what becomes of identifiers.
var keyCauses = map[values.Class]string{
	values.Case:       "are put into one case",
	values.Trimmed:    "are trimmed, or their spaces are tidied up,",
	values.Normalised: "are brought into another Unicode form",
	values.Escaped:    "are escaped, for a page, a URL or a statement,",
	values.Unescaped:  "are decoded once more than they were encoded",
	values.Prefix:     "are cut",
	values.Removed:    "lose characters",
	values.Charset:    "go through a smaller character set than Unicode",
}

func isNumber(text string) bool {
	return text != "" && strings.Trim(text, "0123456789.eE+-") == ""
}
