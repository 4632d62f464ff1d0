package write

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/causes"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
)

// The reply that a finding shows often has its cause in it: the reason of a refusal, a member under
// another name, results of another batch, a key that went through a number. Where it has, the
// finding names that cause and not the general one of the check.

// aboutMessages are checks and areas that judge how a failure is reported, whatever its message.
var aboutMessages = []string{"RPC-", "HTTP-", "AUTH-", "TLS-", "VER-", "ERR-003", "ERR-004", "RES-005", "RES-006", "RES-007", "SEM-015"}

// quote gives a finding the cause and the fix of the message of these replies that it shows.
func (sc *Scenario) quote(f *conformance.Finding, where []*exchange.Reply) {
	if slices.ContainsFunc(aboutMessages, func(id string) bool { return strings.HasPrefix(sc.Check().ID, id) }) {
		return
	}
	for _, r := range where {
		if r.InPlace() {
			continue
		}
		for _, m := range reasons(r) {
			if m.Status != http.StatusRequestEntityTooLarge && !quotes(f.Actual, m.Text) {
				continue
			}
			m.Names = sc.NamesOf(r)
			b := sc.batchOf(r)
			said, is := causes.Of(m)
			f.Quote = &conformance.Quote{Text: sc.Redactor.String(m.Text), Key: causes.Key(m), When: said.When}
			if !is {
				said, is = missingThoughSent(m.Text, b)
			}
			if f.Quote.Cause = is; is {
				f.Cause, f.Fix = said.Text, said.Fix
			}
			if is && said.OfRecord() && r.IsError() && b != nil && len(b.Records) > 1 {
				f.Cause += " The failure of one record ends its whole batch."
			}
			return
		}
	}
}

var saysMissing = regexp.MustCompile(`(?i)^["'` + "`" + `]?([\w-]+)["'` + "`" + `]?:? (?:is |was )?(?:missing|required|not given|absent|empty)|(?:missing|required|without)(?: \w+)?:? ["'` + "`" + `]?([\w-]+)`)

// missingThoughSent reads a message that misses a member which the records have.
func missingThoughSent(text string, b *Batch) (causes.Cause, bool) {
	m := saysMissing.FindStringSubmatch(text)
	if m == nil || b == nil {
		return causes.Cause{}, false
	}
	name := cmp.Or(m[1], m[2])
	for _, r := range b.Records {
		raw, sent := r.Values[name]
		if !sent || string(raw) == "null" || string(raw) == `""` || b.Operation == rpc.OperationDelete && name != r.ID.APIName {
			return causes.Cause{}, false
		}
	}
	return causes.Cause{
		Name: "missing though sent", Text: fmt.Sprintf("the endpoint says that %s is missing, and it was sent: the code reads it under another name, which is fixed in it, or at another place.", name),
		Fix: "take the fields, and the active identifier, from the schema of the plan.",
	}, true
}

// quotes reports whether a text shows the beginning of a message, in JSON or not.
func quotes(text, message string) bool {
	message, _, _ = strings.Cut(message, "\n")
	if i := strings.IndexFunc(message, func(c rune) bool { return c > unicode.MaxASCII }); i >= 0 {
		message = message[:i]
	}
	letters := lettersOf(message)
	return letters != "" && strings.Contains(lettersOf(text), letters[:min(len(letters), 40)])
}

// lettersOf are the letters and digits of a text.
func lettersOf(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			return c
		}
		return -1
	}, text)
}

// reasons are the messages of a call that was refused, as a whole or for some of its records.
func reasons(r *exchange.Reply) []causes.Message {
	switch {
	case r.IsError():
		return []causes.Message{{Status: r.Status, Method: r.Method, Text: r.ErrorText(), Code: r.ErrorCode()}}
	case r.Result() == nil && r.OK() && r.Status >= http.StatusBadRequest:
		return []causes.Message{{Status: r.Status, Method: r.Method, Text: string(r.Body[:min(len(r.Body), 4<<10)])}}
	}
	var out []causes.Message
	for _, res := range r.RecordResults().List {
		text := res.Text()
		if res.Success == nil || *res.Success || text == "" || slices.ContainsFunc(out, func(o causes.Message) bool { return o.Text == text }) {
			continue
		}
		out = append(out, causes.Message{Text: text, Status: r.Status})
	}
	return out
}

// NamesOf are the names that a statement for this call would hold.
func (sc *Scenario) NamesOf(r *exchange.Reply) []string {
	names := []string{r.Object}
	if o := sc.Catalog.Object(r.Object); o != nil {
		names = append(names, lists.Of(o.Fields, func(f rpc.Field) string { return f.APIName })...)
	}
	return names
}

// member is one that a rule requires.
type member struct {
	name string
	kind wire.NodeKind
}

// ofResult are the members of a result that checks are about, ofRecordResult those of each record.
var (
	ofResult = map[string][]member{
		"CON-001": {{"success", wire.Bool}},
		"RES-001": {{"record_results", wire.Array}},
		"RES-011": {{"record_results", wire.Array}},
		"OPS-001": {{"operations", wire.Array}},
		"SPD-001": {{rules.SpeedKeys[0], wire.Number}, {rules.SpeedKeys[1], wire.Number}, {rules.SpeedKeys[2], wire.Number}},
	}
	ofRecordResult = map[string][]member{"RES-004": {{"identifier", wire.String}}, "RES-005": {{"success", wire.Bool}}}
	// besides are the other members of a result, which are no replacement.
	besides = []string{"identifier", "error_message", "success", "record_results", "operations", "objects", "fields", rules.SpeedKeys[0], rules.SpeedKeys[1], rules.SpeedKeys[2]}
)

// readReply gives a finding the cause that its reply shows.
func (sc *Scenario) readReply(f *conformance.Finding, symptom string, r *exchange.Reply) {
	found := sc.ofMembers(r)
	if found.Text == "" && (sc.Check().ID == "HTTP-003" || r.Reused && sc.Check().Write && !strings.HasPrefix(sc.Check().ID, "DAT-")) && (r.Kind == wire.KindClosed || r.Kind == wire.KindReset) {
		found = Cause{
			Text: "the connection is closed in the place of a reply: an exception or a nil pointer that nothing catches ends the handler, or the process, or a timer closes connections that are in use.",
			Fix:  "catch what a handler throws, and answer it with a JSON-RPC error; the log of the endpoint has the place. Close only connections that have been idle for seconds.",
		}
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

// sentIn reads a batch from the request of a reply that the scenario did not send; nil for another call.
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

// ofMembers looks at the members that the check requires.
func (sc *Scenario) ofMembers(r *exchange.Reply) Cause {
	for _, m := range ofResult[sc.Check().ID] {
		if c, is := causes.Member(r.Result(), m.name, m.kind, besides...); is {
			return Cause{Text: c.Text, Fix: c.Fix}
		}
	}
	for _, m := range ofRecordResult[sc.Check().ID] {
		for _, n := range r.Items("record_results") {
			v := n.Get(m.name)
			right := v.Is(m.kind) || v != nil && m.kind == wire.String // a key may be a number
			if c, is := causes.Member(n, m.name, m.kind, besides...); is && !right {
				return Cause{Text: c.Text, Fix: c.Fix}
			}
		}
	}
	return Cause{}
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
	earlier, other := "", ""
	for _, res := range b.strangers() {
		text := exchange.NodeText(res.Identifier)
		if name := b.fieldWith(text); name != "" {
			other = cmp.Or(other, name)
		} else if sc.Keys != nil && sc.Keys.Made(text) {
			earlier = cmp.Or(earlier, text)
		}
	}
	right := func(k model.Key) bool { return k.Field == b.Records[0].ID.APIName && k.Created }
	switch {
	case other != "" && slices.ContainsFunc(sc.Ledger.Settled(b.Object.APIName), right):
		return Cause{
			Text: "the results carry the value of another field than the active identifier, by which other batches were answered: the plan of another call is used.",
			Fix:  "keep the plan of a call in that call (no global, no object that calls share).",
		}
	case other != "":
		return Cause{
			Text: fmt.Sprintf("the results carry the value of %s and not of the active identifier, %s: the name of the identifier is fixed in the code.", other, b.Records[0].ID.APIName),
			Fix:  "answer the value of the field that the schema of the plan marks as active identifier.",
		}
	case earlier != "":
		return Cause{
			Text: fmt.Sprintf("results of other batches are among them, such as of %s: the list of results is kept from call to call (a global, a default argument, a shared buffer).", foreign.Clip(earlier, 60)),
			Fix:  "begin each call with a new, empty list.",
		}
	}
	return Cause{}
}

// strangers are the results of no record of the batch.
func (b *Batch) strangers() []exchange.Result { return lists.Where(b.List, b.Stranger) }

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

// alteredCause explains what happened to the identifier of a record on its way into the results.
func (b *Batch) alteredCause() Cause {
	for _, res := range b.strangers() {
		got := exchange.NodeText(res.Identifier)
		for _, r := range b.Records {
			sent := exchange.KeyText(r.Key)
			if len(b.ResultsOf(r)) > 0 || !rules.Resembles(sent, got) {
				continue
			}
			// Every difference counts, so that the field is no more than its type.
			pair := values.Pair{Field: rpc.Field{APIName: r.ID.APIName, Type: r.ID.Type}, Sent: r.Key, Stored: json.RawMessage(res.Identifier.Raw)}
			text := keyCauses[values.Classify(pair).Class]
			if text == "" && sent != "" && got != "" && strings.Trim(sent+got, "0123456789.eE+-") == "" {
				text = fmt.Sprintf("go through a floating point number, or through a format of it: %s was sent and %s came back.", foreign.Clip(sent, 40), foreign.Clip(got, 40))
			} else if text != "" {
				text += " before they are answered."
			}
			if text != "" {
				return Cause{Text: "identifiers " + text, Fix: "keep the identifier as it was sent, and answer that."}
			}
		}
	}
	return Cause{}
}

// keyCauses explain what happens to identifiers.
var keyCauses = map[values.Class]string{
	values.Case:       "are put into one case",
	values.Trimmed:    "are trimmed, or their spaces are tidied up,",
	values.Normalised: "are brought into another Unicode form",
	values.Escaped:    "are escaped, for a page, a URL or a statement,",
	values.Unescaped:  "are decoded once more than they were encoded",
	values.Prefix:     "are cut",
	values.Removed:    "lose characters",
	values.Misread:    "are decoded as Latin-1 or Windows-1252",
	values.Charset:    "go through a smaller character set than Unicode",
}
